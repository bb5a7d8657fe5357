"""``irteval show``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import BUDGET, ITEMS, Command, Files


def test_responses(irteval: Command, files: Files) -> None:
    document = irteval("show", files.new, "--json").document
    assert document["kind"] == "responses"
    assert (document["subjects"], document["items"], document["cells"]) == (6, ITEMS, 6 * ITEMS)
    assert document["share_observed"] == 1
    assert "360" in irteval("show", files.new).out


def test_checks_of_responses(irteval: Command, tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    table.write_text("subject,item,score\na,x,1\na,y,0\nb,x,1\nb,y,1\nc,z,1\nd,z,0\n")
    result = irteval("show", table, "--json")
    assert result.code == 0
    checks = result.document["checks"]
    assert checks["worst"] == "warning"
    found = {finding["check"] for finding in checks["findings"]}
    assert found == {"coverage", "constant answers", "unlinked blocks"}
    assert "block 1 of 2" in irteval("show", table).out


def test_data_without_an_answer_end_with_2(irteval: Command, tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    table.write_text("subject,item,score\na,x,\nb,x,\n")
    result = irteval("show", table, "--json")
    assert result.code == 2
    assert result.document["checks"]["worst"] == "fatal"
    assert "no answer was observed" in irteval("show", table).out


def test_bank(irteval: Command, files: Files) -> None:
    document = irteval("show", files.bank, "--json").document
    assert (document["kind"], document["name"], document["items"]) == ("bank", "simulated", ITEMS)
    assert (document["subjects"], document["response_model"], document["dims"]) == (34, "2pl", 1)
    assert "simulated" in irteval("show", files.bank).out


def test_bank_of_plain_numbers(irteval: Command, plain_bank: Path) -> None:
    assert irteval("show", plain_bank, "--json").document["subjects"] == 0


def test_run(irteval: Command, files: Files, tmp_path: Path) -> None:
    out = tmp_path / "run"
    irteval(
        "run", files.bank, "--driver", "replay", "--responses", files.new, "--budget", BUDGET, "--out", out
    )
    document = irteval("show", out, "--json").document
    assert (document["kind"], document["subjects"], document["told"]) == ("run", 6, 6 * BUDGET)
    assert document["settings"]["budget"] == BUDGET
    assert len(document["estimates"]) == 6
    assert "new-0" in irteval("show", out).out


def test_a_folder_that_is_neither(irteval: Command, tmp_path: Path) -> None:
    result = irteval("show", tmp_path)
    assert result.code == 2
    assert "bank.json" in result.err


def test_a_damaged_bank(irteval: Command, files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    for file in files.bank.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    parameters = folder / "parameters.safetensors"
    parameters.write_bytes(parameters.read_bytes()[:200])
    result = irteval("show", folder, "--json")
    assert result.code == 2
    assert result.document["error"]["file"] == str(parameters)
