"""What holds for every command: streams, exit codes, errors in one line, flags from a file, a quick start."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import irteval as package
from irteval.cli import main
from tests.cli.conftest import Command, Files

ROOT = Path(__file__).parents[2]


def test_the_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from irteval.cli import invoke\n"
        "code = invoke(['fit', '--help'])\n"
        "heavy = {'torch', 'pandas', 'numpy', 'scipy', 'pyarrow', 'yaml'} & set(sys.modules)\n"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--response-model" in done.stdout


def test_the_launcher_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "cli.py", "show", "nowhere"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: nowhere: no such file\n"


def test_main_exits_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"{package.__version__}\n"


def test_without_a_command_there_is_help(irteval: Command) -> None:
    result = irteval()
    assert result.code == 0
    assert "session" in result.out


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["session", "nonsense"],
        ["fit"],
        ["fit", "a.csv"],
        ["fit", "a.csv", "--out", "b", "--response-model", "3pl"],
        ["fit", "a.csv", "--out", "b", "--dims", "0"],
        ["fit", "a.csv", "--out", "b", "--seed", "x"],
        ["run", "bank", "--driver", "replay"],
        ["run", "bank", "--driver", "nobody", "--responses", "a.csv"],
        ["show", "a.csv", "--no-such-flag"],
        ["show", "a.csv", "--device", "tpu"],
    ],
)
def test_usage_errors_are_one_line_and_code_2(irteval: Command, words: list[str]) -> None:
    result = irteval(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    document = irteval(*words, "--json").document
    assert document["error"]["code"] == "usage"
    assert document["error"]["message"] in result.err


def test_a_choice_says_what_there_is(irteval: Command) -> None:
    assert "'1pl', '2pl'" in irteval("fit", "a.csv", "--out", "b", "--response-model", "3pl").err


def test_bad_input_names_file_line_and_field(irteval: Command, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("subject,item,score\na,x,1\nb,x,banana\n")
    result = irteval("fit", table, "--out", tmp_path / "bank", "--json")
    assert result.code == 2
    error = result.document["error"]
    assert error.keys() == {"code", "message", "file", "line", "field"}
    assert (error["code"], error["file"], error["line"], error["field"]) == (
        "bad_input",
        str(table),
        3,
        "score",
    )
    assert not (tmp_path / "bank").exists()
    assert "Traceback" not in result.err


def test_an_unexpected_error_is_one_line(
    irteval: Command, monkeypatch: pytest.MonkeyPatch, files: Files
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("irteval.responses.read.read_responses", fail)
    result = irteval("show", files.new)
    assert (result.code, result.err) == (1, "error: ZeroDivisionError: by\\nzero\n")
    assert irteval("show", files.new, "--json").document["error"]["code"] == "error"
    assert "Traceback" in irteval("show", files.new, "--log-level", "debug").err


def test_ctrl_c_is_no_traceback(irteval: Command, monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("irteval.responses.read.read_responses", interrupt)
    result = irteval("show", files.new, "--json")
    assert (result.code, result.document["error"]["code"]) == (130, "interrupted")


def test_a_full_disk_is_one_line_and_leaves_nothing(
    irteval: Command, monkeypatch: pytest.MonkeyPatch, files: Files, tmp_path: Path
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    result = irteval("fit", files.responses, "--out", tmp_path / "bank", "--quiet")
    assert result.code == 1
    assert result.err.splitlines() == ["error: [Errno 28] No space left on device"]
    assert list(tmp_path.iterdir()) == []


def test_with_json_people_read_stderr_and_quiet_silences_them(irteval: Command, files: Files) -> None:
    loud = irteval("show", files.new, "--json")
    assert "long table" in loud.err
    assert loud.document["command"] == "show"
    assert loud.document["format_version"] == 1
    silent = irteval("show", files.new, "--json", "--quiet")
    assert (silent.out, silent.err) == (loud.out, "")


def test_flags_from_a_file(irteval: Command, varied: Path, tmp_path: Path) -> None:
    config = tmp_path / "fit.yaml"
    config.write_text(
        f"responses: [{varied}]\nout: {tmp_path / 'bank'}\nresponse-model: 1pl\n"
        "priors: off\njson: true\nlog_level: error\n"
    )
    result = irteval("fit", "--config", config)
    assert result.code == 0, result.err
    assert result.document["response_model"] == "1pl"
    words = ("--response-model", "2pl", "--priors", "on", "--overwrite")
    again = irteval("fit", "--config", config, *words)
    assert again.document["response_model"] == "2pl"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no-such-flag: 1\n", "no flag 'no-such-flag'"),
        ("- 1\n", "wanted a mapping"),
        ("a: [1\n", "expected"),
        ("dims: many\n", "dims"),
    ],
)
def test_a_bad_file_of_flags_is_a_usage_error(
    irteval: Command, tmp_path: Path, content: str, message: str
) -> None:
    config = tmp_path / "fit.yaml"
    config.write_text(content)
    result = irteval("fit", "a.csv", "--out", "b", "--config", config)
    assert result.code == 2
    assert message in result.err
    assert irteval("fit", "a.csv", "--out", "b", "--config", tmp_path / "none.yaml").code == 2
