"""Files and folders appear whole or not at all, also on a disk that fills up."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest

from irteval.errors import InputError
from irteval.files import append_file, json_bytes, read_json, write_file, write_folder


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flush to the disk fails as on a full one."""

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


def test_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    write_file(target, b"old")
    write_file(target, b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.usefixtures("full_disk")
def test_full_disk_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left"):
        write_file(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_folder_is_replaced_on_request_only(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "bank"
    write_folder(target, {"a": b"1", "b": b"2"})
    with pytest.raises(InputError, match="exists already"):
        write_folder(target, {"a": b"3"})
    write_folder(target, {"a": b"3", "b": b"4", "c": b"5"}, replaces={"a", "b"})
    assert {file.name: file.read_bytes() for file in target.iterdir()} == {"a": b"3", "b": b"4", "c": b"5"}
    assert os.listdir(target.parent) == ["bank"]


def test_folder_with_files_of_others_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "bank"
    write_folder(target, {"a": b"1"})
    (target / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        write_folder(target, {"a": b"2"}, replaces={"a", "b"})
    assert (target / "thesis.tex").exists()


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bank").write_text("")
    with pytest.raises(InputError, match="wanted a folder"):
        write_folder(tmp_path / "bank", {"a": b"1"}, replaces={"a", "b"})


@pytest.mark.usefixtures("full_disk")
def test_full_disk_leaves_the_old_folder_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "bank"
    target.mkdir()
    (target / "a").write_bytes(b"old")
    with pytest.raises(OSError, match="No space left"):
        write_folder(target, {"a": b"new", "b": b"new"}, replaces={"a", "b"})
    assert (target / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["bank"]
    assert os.listdir(target) == ["a"]


def test_failed_exchange_of_folders_puts_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "bank"
    write_folder(target, {"a": b"old"})
    rename, calls = os.rename, []

    def fail_second(source: Path, destination: Path) -> None:
        calls.append(destination)
        if len(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, destination)

    monkeypatch.setattr(os, "rename", fail_second)
    with pytest.raises(OSError, match="error"):
        write_folder(target, {"a": b"new"}, replaces={"a", "b"})
    assert (target / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["bank"]


def test_append_grows_and_a_failed_one_leaves_the_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    append_file(log, b"one\n")
    append_file(log, b"two\n")
    write, room = os.write, [3]

    def almost_full(descriptor: int, content: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, content[: room.pop()])

    monkeypatch.setattr(os, "write", almost_full)
    with pytest.raises(OSError, match="No space left"):
        append_file(log, b"three\n")
    assert log.read_bytes() == b"one\ntwo\n"


def test_size_limit_of_the_system_while_writing(tmp_path: Path) -> None:
    """A real limit of the kernel, not a stand-in: files may not grow beyond 1,000 bytes."""
    program = (
        "import resource, signal, sys\n"
        "from irteval.files import write_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_file(sys.argv[1], b'x' * 5000)\n"
        "except OSError as error:\n"
        "    print(error.strerror)\n"
    )
    target = tmp_path / "a"
    target.write_bytes(b"old")
    run = subprocess.run(
        [sys.executable, "-c", program, str(target)], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == os.strerror(errno.EFBIG)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_json_holds_no_nan_and_takes_numpy() -> None:
    document = {"b": math.nan, "a": [math.inf, np.float64(0.1), np.int64(3)], "ä": np.array([1.5])}
    content = json_bytes(document)
    assert orjson.loads(content) == {"b": None, "a": [None, 0.1, 3], "ä": [1.5]}
    assert list(orjson.loads(content)) == ["b", "a", "ä"]


def test_json_that_is_none_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text('{\n "a": 1,\n "b" 2}')
    with pytest.raises(InputError) as caught:
        read_json(file)
    assert (caught.value.file, caught.value.line) == (str(file), 3)
    with pytest.raises(InputError, match="no such file"):
        read_json(tmp_path / "none.json")
