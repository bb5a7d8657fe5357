"""``irteval score``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import BUDGET, ITEMS, Command, Files


@pytest.fixture
def some(files: Files, tmp_path: Path) -> Path:
    """The answers of new subjects to a third of the items."""
    table = pd.read_parquet(files.new)
    file = tmp_path / "some.csv"
    table[table["item"].isin(sorted(table["item"].unique())[::3])].to_csv(file, index=False)
    return file


def test_a_table(irteval: Command, files: Files, some: Path) -> None:
    result = irteval("score", files.bank, some, "--json")
    assert result.code == 0, result.err
    estimates = result.document["estimates"]
    assert [estimate["subject"] for estimate in estimates] == [f"new-{i}" for i in range(6)]
    for estimate in estimates:
        low, high = estimate["interval"]
        assert 0 <= low < high <= 1
        assert (estimate["items_asked"], estimate["items_total"]) == (ITEMS // 3, ITEMS)
        assert estimate["stopped"] is None
    assert "unknown" in result.err
    assert "new-5" in irteval("score", files.bank, some).out


def test_another_level(irteval: Command, files: Files, some: Path) -> None:
    wide, narrow = (
        irteval("score", files.bank, some, "--level", level, "--json").document["estimates"][0]["interval"]
        for level in (0.95, 0.5)
    )
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_all_items_leave_nothing_open(irteval: Command, files: Files) -> None:
    truth = pd.read_parquet(files.new).groupby("subject")["score"].mean()
    for estimate in irteval("score", files.bank, files.new, "--json").document["estimates"]:
        assert estimate["score"] == pytest.approx(truth[estimate["subject"]])


def test_a_run_folder(irteval: Command, files: Files, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--driver", "replay", "--responses", files.new, "--budget", BUDGET, "--out", out, "--json")
    ran = irteval("run", files.bank, *words).document["estimates"]
    scored = irteval("score", files.bank, out, "--json").document["estimates"]
    assert [estimate["items_asked"] for estimate in scored] == [BUDGET] * 6
    for one, other in zip(ran, scored, strict=True):
        assert one["subject"] == other["subject"]
        assert one["score"] == pytest.approx(other["score"], abs=0.1)


def test_calibrated_subjects_are_warned_of(irteval: Command, files: Files) -> None:
    assert "calibrated" in irteval("score", files.bank, files.responses).err


def test_items_of_another_benchmark_are_code_4(irteval: Command, files: Files, strangers: Path) -> None:
    assert irteval("score", files.bank, strangers).code == 4


def test_unknown_items_are_left_out_and_that_is_said(irteval: Command, files: Files, some: Path) -> None:
    some.write_text(some.read_text() + "new-0,elsewhere,1\n")
    result = irteval("score", files.bank, some)
    assert result.code == 0
    assert "1 of 21 items are not in bank 'simulated'" in result.err
