"""Logs of Inspect: archives, finished or not, and documents."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import zstandard

from irteval.errors import InputError
from irteval.responses.importing import import_logs
from irteval.responses.logs.archive import Archive
from tests.responses.logs.conftest import inspect_document, inspect_sample


@pytest.fixture
def logs(shared) -> Path:
    return shared / "samples" / "inspect" / "logs"


@pytest.fixture
def document(tmp_path):
    """A function of samples that writes them as one document."""

    def write(samples, name="log.json", **spec):
        path = tmp_path / name
        path.write_text(json.dumps(inspect_document(samples, **spec)))
        return path

    return write


def members(path: Path) -> dict[str, bytes]:
    with Archive(path) as archive:
        return {name: archive.read(name) for name in archive.names}


def write_archive(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def test_an_archive_and_a_document_of_the_same_items_share_their_keys(logs):
    archive = next((logs / "base").glob("*toy-arith*.eval"))
    one, other = import_logs(archive).frame, import_logs(logs / "json").frame
    assert set(one["item"]) == set(other["item"])
    assert len(one) == 20


def test_every_scorer_and_the_headline_by_default(logs):
    archive = next((logs / "base").glob("*toy-arith*.eval"))
    assert set(import_logs(archive).frame["metric"]) == {"match"}
    every = import_logs(archive, metric="all").frame
    assert set(every["metric"]) == {"match", "digit_overlap", "dict_scorer.exact", "dict_scorer.near"}
    header = json.loads(members(archive)["header.json"])
    for score in header["results"]["scores"]:
        name = score["name"] if score["name"] == score["scorer"] else f"{score['scorer']}.{score['name']}"
        value = score["metrics"].get("accuracy", score["metrics"].get("mean"))["value"]
        assert every.loc[every["metric"] == name, "score"].mean() == pytest.approx(value)


def test_epochs_are_trials(logs):
    frame = import_logs(logs / "epochs").frame
    assert len(frame) == 60
    assert set(frame["trials"]) == {3}
    kept = import_logs(logs / "epochs", metric="all", filter="all").frame
    assert set(kept["trial"]) == {1, 2, 3}


def test_usage_and_time(logs):
    frame = import_logs(logs / "base").frame
    assert (frame["tokens_in"] > 0).all()
    assert (frame["seconds"] > 0).all()


def test_a_failed_task_says_so(logs):
    result = import_logs(logs / "failed_task")
    assert result.summary["statuses"] == {"ok": 7, "error": 1}
    assert any("status 'error'" in note and "of 20 planned" in note for note in result.notes)


def test_an_unfinished_archive_is_read_from_its_journal(logs, tmp_path):
    content = members(next((logs / "base").glob("*toy-arith*.eval")))
    for name in ("header.json", "summaries.json", "reductions.json"):
        del content[name]
    result = import_logs(write_archive(tmp_path / "log.eval", content))
    assert len(result.frame) == 20
    assert any("not finished" in note for note in result.notes)


def test_a_retry_counts_reused_samples_once(shared):
    """The log of a retry holds the good samples of the run that failed, and those that were run again."""
    logs = list((shared / "samples" / "inspect" / "adaptive").glob("*apSEos2uuBcb*.eval"))
    assert len(logs) == 2
    result = import_logs(logs)
    assert result.summary["policies"]["repeats"]["equal_copies"] > 30
    assert "trials" not in result.frame


def test_numbered_ids_are_positions(document):
    """Inspect numbers samples without ids by their place; a shuffled run numbers them anew."""
    texts = ["what?", "where?", "why?"]
    one = document([inspect_sample(k, "C") | {"input": text} for k, text in enumerate(texts)], "a.json")
    two = document(
        [inspect_sample(k, "I") | {"input": text} for k, text in enumerate(texts[::-1])],
        "b.json",
        model="mock/two",
    )
    frame = import_logs([one, two]).frame
    assert frame["item"].nunique() == 3


def test_messages_differ_in_their_ids_only(document):
    def sample(message_id):
        messages = [{"id": message_id, "role": "user", "content": [{"type": "text", "text": "what?"}]}]
        return inspect_sample(1, "C") | {"input": messages}

    one, two = document([sample("a")], "a.json"), document([sample("b")], "b.json", model="mock/two")
    assert import_logs([one, two]).frame["item"].nunique() == 1


def test_the_same_epoch_twice_with_two_scores_is_refused(document):
    path = document([inspect_sample("a", "C"), inspect_sample("a", "I")])
    with pytest.raises(InputError, match="the same trial of the same run") as error:
        import_logs(path)
    assert error.value.line == 2


class TestArchives:
    @pytest.fixture
    def content(self):
        whole = inspect_document([])
        samples = [inspect_sample("a", "C")]
        return {"header.json": json.dumps(whole).encode(), "summaries.json": json.dumps(samples).encode()}

    def test_deflate_is_read_too(self, content, tmp_path):
        assert len(import_logs(write_archive(tmp_path / "log.eval", content)).frame) == 1

    def test_an_archive_that_is_cut_short(self, logs, tmp_path):
        source = next((logs / "base").glob("*.eval"))
        path = tmp_path / "log.eval"
        path.write_bytes(source.read_bytes()[:-3000])
        with pytest.raises(InputError, match="cut short"):
            import_logs(path)

    def test_a_flipped_byte_is_noticed(self, logs, tmp_path):
        source = next((logs / "base").glob("*toy-mcq*.eval"))
        with zipfile.ZipFile(source) as archive:
            info = archive.getinfo("summaries.json")
        data = bytearray(source.read_bytes())
        data[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 255
        path = tmp_path / "log.eval"
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"'summaries\.json' is damaged"):
            import_logs(path)

    @pytest.mark.parametrize("name", ["../up.json", "/root.json", "a/../../up.json", "..\\up.json"])
    def test_a_member_that_climbs_out(self, content, tmp_path, name):
        path = write_archive(tmp_path / "log.eval", content | {name: b"{}"})
        with pytest.raises(InputError, match="leads out of the archive"):
            import_logs(path)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["log.eval"]

    def test_a_bomb_is_not_expanded(self, content, tmp_path):
        path = write_archive(tmp_path / "log.eval", content | {"summaries.json": b" " * 200_000_000})
        with pytest.raises(InputError, match="expands to 200,000,000 bytes, wanted at most"):
            import_logs(path)

    def test_a_bomb_that_lies_about_its_size(self, content, tmp_path):
        path = write_archive(tmp_path / "log.eval", content)
        packed = zstandard.ZstdCompressor().compress(b" " * 100_000_000)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("_journal/start.json", packed)
            info = archive.getinfo("_journal/start.json")
            info.compress_type, info.file_size = 93, 10
            archive._didModify = True
        with Archive(path) as archive, pytest.raises(InputError, match=r"expands to more than|is damaged"):
            archive.read("_journal/start.json")

    def test_a_directory_that_points_before_the_file(self, logs, tmp_path):
        content = bytearray(next((logs / "errors").glob("*.eval")).read_bytes())
        end = content.rindex(b"PK\5\6")
        start = int.from_bytes(content[end + 16 : end + 20], "little")
        content[end + 16 : end + 20] = (start + 100).to_bytes(4, "little")
        path = tmp_path / "log.eval"
        path.write_bytes(content)
        with pytest.raises(InputError):
            import_logs(path)
