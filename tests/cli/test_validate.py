from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Command, Files


def test_rows_a_plot_and_the_same_for_any_number_of_jobs(
    irteval: Command, files: Files, tmp_path: Path
) -> None:
    words = ["validate", files.responses, "--size", "10,50%", "--methods", "random", "--repeats", 2, "--json"]
    one = irteval(*words, "--jobs", 1, "--out", tmp_path / "plot.png")
    assert one.code == 0, one.err
    assert [(row["method"], row["size"]) for row in one.document["rows"]] == [("random", 10), ("random", 30)]
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert irteval(*words, "--jobs", 2).document == one.document


def test_the_default_beside_the_control_in_a_table(irteval: Command, files: Files) -> None:
    words = ("validate", files.responses, "--size", 12, "--target", 0.12, "--repeats", 1, "--jobs", 1)
    shown = irteval(*words)
    assert shown.code == 0, shown.err
    assert "± 0.12" in shown.out
    assert sum(" random " in line for line in shown.out.splitlines() if line.startswith("interpolation")) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "5", "--methods", "magic"], "field 'methods': 'magic', wanted one of auto, random"),
        (["--size", "5", "--split", "sideways"], "field 'split': 'sideways', wanted one of interpolation"),
        (["--size", "0"], "field 'size': '0', wanted a number of items"),
        (["--size", "5", "--split", "newest", "--date", "day"], "field 'date': no column 'day'"),
        (["--size", "5", "--split", "family"], "field 'family': a split by family wants a column"),
        (["--size", "5", "--out", "nowhere/plot.png"], "nowhere: no such folder"),
    ],
)
def test_bad_input_is_one_line(irteval: Command, files: Files, words: list[str], message: str) -> None:
    result = irteval("validate", files.responses, "--jobs", 1, "--repeats", 1, *words)
    assert result.code == 2
    last = [line for line in result.err.splitlines() if not line.startswith("note")]
    assert len(last) == 1
    assert message in last[0]


def test_a_size_above_the_items_is_capped_and_said(irteval: Command, files: Files) -> None:
    words = ("validate", files.responses, "--size", 99, "--methods", "random", "--repeats", 1, "--jobs", 1)
    result = irteval(*words, "--json")
    assert "size 99 is more than the 60 items there are" in result.err
    (row,) = result.document["rows"]
    assert (row["size"], row["effective_sample"]) == (60, None)
    assert row["mae"] == pytest.approx(0, abs=1e-12)


def test_too_few_subjects(irteval: Command, strangers: Path) -> None:
    result = irteval("validate", strangers, "--size", 2, "--jobs", 1)
    assert (result.code, "3 subjects, wanted at least 4" in result.err) == (2, True)


def test_families_come_from_the_table_beside(irteval: Command, files: Files, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"subject": [f"old-{i:02d}" for i in range(34)], "maker": [i // 4 for i in range(34)]}
    )
    table.to_csv(tmp_path / "subjects.csv", index=False)
    words = ("--split", "family", "--family", "maker", "--subjects", tmp_path / "subjects.csv")
    result = irteval(
        "validate",
        files.responses,
        "--size",
        9,
        "--methods",
        "random",
        "--repeats",
        3,
        "--jobs",
        1,
        "--json",
        *words,
    )
    assert result.code == 0, result.err
    assert result.document["rows"][0]["split"] == "family"
