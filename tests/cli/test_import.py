"""``irteval import``."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Command

ROWS = [
    {
        "doc_id": k,
        "doc": {"question": f"question {k}"},
        "resps": [["x"]],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": f"{k + 1:016x}",
        "prompt_hash": f"{k + 1:016x}",
        "acc": k % 2,
        "acc_norm": 1.0,
    }
    for k in range(4)
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "org__model"
    folder.mkdir(parents=True)
    path = folder / "samples_quiz_2026-01-02T03-04-05.000006.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_a_table_and_one_document(irteval: Command, log: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out{suffix}"
    result = irteval("import", log.parent, "--out", out, "--metric", "acc", "--json")
    assert result.code == 0
    document = result.document
    assert (document["command"], document["out"], document["rows"]) == ("import", str(out), 4)
    assert document["benchmarks"] == [
        {
            "benchmark": "quiz",
            "metric": "acc",
            "filter": "none",
            "subjects": 1,
            "items": 4,
            "rows": 4,
            "scored": 4,
            "mean": 0.5,
        }
    ]
    assert document["policies"]["repeats"]["policy"] == "trials"
    assert document["formats"] == {"lm-eval": 1}
    shown = irteval("show", out, "--json").document
    assert (shown["subjects"], shown["items"], shown["cells"]) == (1, 4, 4)


def test_what_was_chosen_is_said(irteval: Command, log: Path, tmp_path: Path) -> None:
    result = irteval("import", log, "--out", tmp_path / "out.parquet")
    assert "note: quiz: metric 'acc_norm' by default, others are acc (--metric)" in result.err
    assert "quiz" in result.out
    assert "1.0000" in result.out


def test_the_options_reach_the_import(irteval: Command, log: Path, tmp_path: Path) -> None:
    out, items = tmp_path / "out.parquet", tmp_path / "items.txt"
    items.write_text("0\n1\n2\n3\n4\n")
    folder = tmp_path / "shared"
    options = ["--metric", "all", "--filter", "all", "--items", items, "--every-eval-ever", folder, "--json"]
    document = irteval("import", log, "--out", out, *options).document
    assert len(pd.read_parquet(out)) == 8
    assert (document["items"], document["items_without_response"]) == (5, 1)
    assert document["policies"]["repeats"]["policy"] == "kept"
    assert len(list(folder.glob("*_samples.jsonl"))) == 2


def test_bad_input_is_one_line_with_its_place(irteval: Command, log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text()[:-20])
    out = tmp_path / "out.parquet"
    result = irteval("import", log, "--out", out, "--json")
    assert result.code == 2
    error = result.document["error"]
    assert (error["code"], error["file"], error["line"]) == ("bad_input", str(log), 4)
    assert not out.exists()


def test_a_place_that_can_not_be_written_is_refused_first(
    irteval: Command, log: Path, tmp_path: Path
) -> None:
    for out, message in (
        (tmp_path / "out.xlsx", "extension '.xlsx'"),
        (tmp_path / "no" / "a.csv", "no such folder"),
    ):
        result = irteval("import", log, "--out", out)
        assert result.code == 2
        assert message in result.err
