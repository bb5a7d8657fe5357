"""The run folder survives kills, torn lines and second processes, and keeps no secret."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval.errors import InputError
from irteval.journal import Answer, JournalLine, RunFolder, now, read_answers


def line(item: str, score: float | None = 1.0, subject: str = "s", **more: object) -> JournalLine:
    return JournalLine(subject=subject, item=item, score=score, time="2026-01-01T00:00:00+00:00", **more)


def test_what_is_told_comes_back(tmp_path: Path) -> None:
    told = [line("007", 1.0, step=0, probability=0.5), line("NA", None, status="error", cost=0.1)]
    with RunFolder.create(tmp_path / "run", {"budget": 50}) as folder:
        folder.append_asked([line("007", None, status="asked", step=0, probability=0.5)])
        folder.append_told(told[:1])
        folder.append_told(told[1:])
        folder.append_told([])
    again = RunFolder.open(tmp_path / "run")
    assert again.settings == {"budget": 50}
    assert again.told() == told
    assert [asked.status for asked in again.asked()] == ["asked"]
    assert again.notes == []


def test_journal_is_plain_json_lines(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        folder.append_told([line("ä", 1 / 3, trials=3, step=2)])
    document = json.loads((tmp_path / "journal.jsonl").read_text())
    keys = ("time", "subject", "item", "score", "trials", "status", "step", "probability")
    assert set(keys) <= set(document)
    assert document["item"] == "ä"
    assert document["score"] == 1 / 3


def test_torn_last_line_is_dropped_and_mended(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        folder.append_told([line("a"), line("b")])
    journal = tmp_path / "journal.jsonl"
    with open(journal, "ab") as file:
        file.write(b'{"item":"c","sco')
    reader = RunFolder.open(tmp_path)
    assert [told.item for told in reader.told()] == ["a", "b"]
    assert "cut short" in reader.notes[0]
    with RunFolder.open(tmp_path) as folder:
        folder.append_told([line("d")])
        assert [told.item for told in folder.told()] == ["a", "b", "d"]
        assert len(folder.notes) == 1


def test_last_line_without_line_feed_counts(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        folder.append_told([line("a"), line("b")])
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-1])
    assert [told.item for told in RunFolder.open(tmp_path).told()] == ["a", "b"]
    with RunFolder.open(tmp_path) as folder:
        folder.append_told([line("c")])
        assert [told.item for told in folder.told()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (b'{"item": "x", "sco', None),
        (b"[1, 2]", None),
        (b'{"subject": "s", "item": 7, "score": 1, "time": "t"}', "item"),
        (b'{"subject": "s", "item": "i", "score": 1.7, "time": "t"}', "score"),
        (b'{"subject": "s", "item": "i", "score": "banana", "time": "t"}', "score"),
        (b'{"subject": "s", "item": "i", "time": "t"}', "score"),
        (b'{"subject": "s", "item": "i", "score": 1, "time": "t", "step": -1}', "step"),
        (b'{"subject": "s", "item": "i", "score": 1, "time": "t", "probability": 2}', "probability"),
        (b'{"subject": "s", "item": "i", "score": 1, "time": "t", "status": "so-so"}', "status"),
    ],
)
def test_bad_line_elsewhere_is_named(tmp_path: Path, bad: bytes, field: str | None) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        folder.append_told([line("a")])
    journal = tmp_path / "journal.jsonl"
    good = journal.read_bytes()
    journal.write_bytes(good + bad + b"\n" + good)
    with pytest.raises(InputError) as caught:
        RunFolder.open(tmp_path).told()
    assert (caught.value.file, caught.value.line, caught.value.field) == (str(journal), 2, field)
    assert "\n" not in str(caught.value)


def test_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        folder.append_told([line("a")])
        with monkeypatch.context() as full:

            def fail(descriptor: int) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            full.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="No space left"):
                folder.append_told([line("b"), line("c")])
            with pytest.raises(OSError, match="No space left"):
                folder.write_estimates({"estimates": []})
        folder.append_told([line("d")])
        assert [told.item for told in folder.told()] == ["a", "d"]
        assert folder.estimates() is None


def test_killed_writer_leaves_whole_batches_and_frees_the_lock(tmp_path: Path) -> None:
    """A process that appends without end is killed at no particular moment; the next one goes on."""
    program = (
        "import sys\n"
        "from irteval.journal import JournalLine, RunFolder, now\n"
        "folder = RunFolder.create(sys.argv[1], {'budget': 5})\n"
        "for step in range(10**6):\n"
        "    items = (f'{step}-{k}' for k in range(16))\n"
        "    folder.append_told(\n"
        "        JournalLine(subject='s', item=item, score=1, time=now(), step=step) for item in items)\n"
        "    print(step, flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    confirmed = [int(writer.stdout.readline()) for _ in range(20)][-1]
    with pytest.raises(InputError, match=f"in use by process {writer.pid}"):
        RunFolder.open(tmp_path / "run").lock()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with RunFolder.create_or_resume(tmp_path / "run", {"budget": 5}) as folder:
        told = folder.told()
        assert len({(entry.step, entry.item) for entry in told}) == len(told)
        assert sum(entry.step <= confirmed for entry in told if entry.step is not None) == 16 * (
            confirmed + 1
        )
        folder.append_told([line("last")])
        assert folder.told()[-1].item == "last"


def test_reader_needs_no_lock(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        folder.append_told([line("a")])
        assert len(RunFolder.open(tmp_path).told()) == 1
        with pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
            RunFolder.open(tmp_path).append_told([line("b")])
    RunFolder.open(tmp_path).append_told([line("b")])


def test_secrets_are_not_written(tmp_path: Path) -> None:
    settings = {
        "api_key": "sk-1",
        "max_tokens": 100,
        "server": {"hf_token": "sk-2", "Authorization": "sk-3", "url": "http://localhost"},
        "drivers": [{"password": "sk-4"}],
    }
    with RunFolder.create(tmp_path, settings) as folder:
        assert folder.settings["max_tokens"] == 100
        assert folder.settings["server"] == {"url": "http://localhost"}
    assert "sk-" not in (tmp_path / "run.json").read_text()
    RunFolder.create_or_resume(tmp_path, settings).close()


def test_other_settings_are_refused_in_one_line(tmp_path: Path) -> None:
    RunFolder.create_or_resume(tmp_path, {"budget": 50, "target": None, "subjects": ("a",)}).close()
    RunFolder.create_or_resume(tmp_path, {"subjects": ["a"], "target": None, "budget": 50}).close()
    with pytest.raises(InputError, match="budget 50, now it is 100") as caught:
        RunFolder.create_or_resume(tmp_path, {"budget": 100, "target": None, "subjects": ["a"]})
    assert caught.value.field == "budget"
    assert "\n" not in str(caught.value)


def test_create_does_not_write_over_what_is_there(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", {}) as folder:
        folder.append_told([line("a")])
    with pytest.raises(InputError, match="holds a run already"):
        RunFolder.create(tmp_path / "run", {})
    with RunFolder.create(tmp_path / "run", {}, overwrite=True) as folder:
        assert folder.told() == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        RunFolder.create(tmp_path / "other", {}, overwrite=True)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("{", None),
        ("[]", "format_version"),
        ('{"format_version": 99}', "format_version"),
        ('{"format_version": 1}', "settings"),
    ],
)
def test_unreadable_settings_are_named(tmp_path: Path, content: str, field: str | None) -> None:
    with pytest.raises(InputError, match="no run folder"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"run\.json") as caught:
        RunFolder.open(tmp_path)
    assert caught.value.field == field


def test_trajectory_and_estimates(tmp_path: Path) -> None:
    rows = pd.DataFrame({"subject": ["s", "s"], "step": [0, 1], "score": [0.5, 0.6]})
    with RunFolder.create(tmp_path, {}) as folder:
        folder.write_trajectory(rows)
        folder.write_estimates({"estimates": [{"subject": "s", "score": np.float64(0.6), "lo": np.nan}]})
        assert folder.estimates() == {"estimates": [{"subject": "s", "score": 0.6, "lo": None}]}
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "trajectory.parquet"), rows)


def test_told_responses_as_a_matrix(tmp_path: Path) -> None:
    told = [
        line("b", 0.0, step=0, probability=0.5),
        line("a", 1.0, step=1),
        line("b", 1.0, step=0, probability=0.5),
        line("a", None, subject="r", status="error", step=0, probability=1.0),
    ]
    with RunFolder.create(tmp_path / "missing", {}) as folder:
        with pytest.raises(InputError, match="no response"):
            folder.responses()
        folder.append_told(told)
        responses = folder.responses()
    assert (responses.subjects, responses.items) == (("s",), ("a", "b"))
    np.testing.assert_array_equal(responses.dense(), [[1, 1]])
    np.testing.assert_array_equal(responses.probability, [[np.nan, 0.5]])
    np.testing.assert_array_equal(responses.step, [[1, 0]])
    with RunFolder.create(tmp_path / "wrong", {"errors": "wrong"}) as folder:
        folder.append_told(told)
        np.testing.assert_array_equal(folder.responses().dense(), [[0, np.nan], [1, 1]])


def test_answers_of_a_harness() -> None:
    content = b'{"item": "a", "score": true}\n\n{"item": "b", "score": null, "status": "timeout", "x": 1}'
    assert read_answers(content, "-") == [
        Answer(item="a", score=1.0),
        Answer(item="b", score=None, status="timeout"),
    ]
    for bad, field in (
        (b'{"item": "a", "score": 0}', "item"),
        (b'{"item": "a"}', "score"),
        (b'{"item": 7, "score": 1}', "item"),
        (b"nonsense", None),
    ):
        with pytest.raises(InputError) as caught:
            read_answers(b'{"item": "a", "score": 1}\n' + bad, "answers.jsonl")
        assert (caught.value.file, caught.value.line, caught.value.field) == ("answers.jsonl", 2, field)


def test_time_is_utc() -> None:
    assert now().endswith("+00:00")
