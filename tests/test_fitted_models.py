"""The banks that are shipped: they load, hold parameters only, and test the subjects that they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irteval.bank import ItemBank
from irteval.cli import invoke
from irteval.responses import read_responses
from irteval.session import KNOWN_SUBJECT

BANKS = Path(__file__).parents[1] / "fitted_models"
SWEBENCH = BANKS / "swebench-verified"


@pytest.mark.parametrize("folder", sorted(BANKS.iterdir()), ids=lambda folder: folder.name)
def test_a_shipped_bank_is_whole_and_holds_no_responses(folder: Path) -> None:
    bank = ItemBank.load(folder)
    assert bank.info.name == folder.name
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "bank.json",
        "items.parquet",
        "parameters.safetensors",
        "score_model.json",
    }
    card = (folder / "README.md").read_text()
    for part in ("coverage of 95 %", "mean absolute error", "licence"):
        assert part in card


def test_swebench_bank_is_of_all_submissions(shared: Path) -> None:
    bank = ItemBank.load(SWEBENCH)
    responses = read_responses(shared / "data" / "swebench_verified" / "responses.parquet")
    assert bank.items == responses.items
    assert bank.info.subjects.count == len(responses.subjects) == 107
    assert all(bank.knows_subject(subject) for subject in responses.subjects)


def test_swebench_bank_runs_to_a_target(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = shared / "data" / "swebench_verified" / "responses.parquet"
    subjects = read_responses(file).subjects[-2:]
    names = [word for subject in subjects for word in ("--subject", subject)]
    flags = ["--driver", "replay", "--responses", str(file), "--target", "0.04", "--json"]
    assert invoke(["run", str(SWEBENCH), *flags, *names]) == 0
    for estimate in json.loads(capsys.readouterr().out)["estimates"]:
        assert estimate["stopped"] == "target"
        assert estimate["items_asked"] < 500
        assert (estimate["interval"][1] - estimate["interval"][0]) / 2 <= 0.04
        assert KNOWN_SUBJECT in estimate["warnings"]
