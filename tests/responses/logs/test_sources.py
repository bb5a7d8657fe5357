"""Files and folders: links, pointers, copies, and what is no log."""

from __future__ import annotations

import os

import pytest

from irteval.errors import InputError
from irteval.responses.importing import import_logs
from tests.responses.logs.conftest import lm_eval_row

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


@pytest.fixture
def log(lm_eval_log):
    return lm_eval_log("org/m", [lm_eval_row(k, {"acc": 1.0}) for k in range(3)])


def test_a_pointer_is_refused_where_it_is_named(log):
    log.write_bytes(POINTER)
    with pytest.raises(InputError, match="git-LFS pointer") as error:
        import_logs(log)
    assert error.value.file == str(log)


def test_a_pointer_in_a_folder_is_skipped_and_named(log):
    pointer = log.with_name("samples_other_2026-01-02T03-04-05.000006.jsonl")
    pointer.write_bytes(POINTER)
    result = import_logs(log.parent)
    assert len(result.frame) == 3
    assert any(str(pointer) in note and "git-LFS pointer" in note for note in result.notes)


def test_links_that_loop_or_lead_out_are_skipped_and_named(log, tmp_path):
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(log.read_bytes().replace(b"question", b"another"))
    os.symlink(outside, log.with_name("samples_out_2026-01-02T03-04-05.000006.jsonl"))
    os.symlink(log.parent, log.parent / "loop")
    os.symlink(log.parent / "self", log.parent / "self")
    result = import_logs(log.parent)
    assert len(result.frame) == 3
    told = "\n".join(result.notes)
    for reason in ("a link out of the folder", "a link to a folder", "a link that leads nowhere"):
        assert reason in told


def test_a_link_within_the_folder_counts_once(log):
    os.symlink(log, log.with_name("samples_quiz_2026-02-02T03-04-05.000006.jsonl"))
    result = import_logs(log.parent)
    assert len(result.frame) == 3
    assert "trials" not in result.frame


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("samples_a.jsonl", b"", "an empty file"),
        ("notes.md", b"# nothing", "the format is not recognised"),
        ("log.eval", b"PK", "not a readable archive"),
        ("x.parquet", b"PAR1", "not a readable parquet file"),
        ("x.jsonl", b"\xff\xfe{\0}\0", "UTF-16"),
    ],
)
def test_a_file_that_is_no_log(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        import_logs(path)
    assert error.value.file == str(path)


def test_a_folder_without_logs(tmp_path):
    (tmp_path / "notes.md").write_text("# nothing")
    with pytest.raises(InputError, match="no responses in 0 logs and 1 other files"):
        import_logs(tmp_path)


def test_an_unknown_format(log):
    with pytest.raises(InputError, match="no format 'nothing', wanted one of auto, olmes, lm-eval"):
        import_logs(log, format="nothing")


def test_a_format_that_is_named(log):
    other = log.rename(log.with_name("renamed.log"))
    with pytest.raises(InputError, match="not recognised"):
        import_logs(other)
    assert len(import_logs(other, format="lm-eval").frame) == 3


def test_a_folder_that_is_named_with_its_format_leaves_the_others(log):
    (log.parent / "table.csv").write_text("subject,item,score\nx,a,1\n")
    assert len(import_logs(log.parent, format="lm-eval").frame) == 3
    assert len(import_logs(log.parent).frame) == 4
