"""Tables of items and subjects beside the responses, and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from irteval import InputError, ResponseMatrix, read_responses

Writer = Callable[..., Path]
RESPONSES = "subject,item,score\nb,x,1\na,y,0\na,x,1\n"


def test_tables_beside_the_file_are_joined(write: Writer, tmp_path: Path) -> None:
    path = write(RESPONSES)
    items = pd.DataFrame({"item_id": ["z", "y", "x"], "benchmark": ["q", "q", "p"], "cost": [1.0, 2.0, 3.0]})
    items.to_parquet(tmp_path / "items.parquet")
    pd.DataFrame({"model_id": ["b"], "family": ["f"]}).to_parquet(tmp_path / "models.parquet")
    matrix = read_responses(path)
    assert matrix.item_table is not None
    assert matrix.subject_table is not None
    assert matrix.item_table.index.tolist() == ["x", "y"]
    assert matrix.item_table["cost"].tolist() == [3, 2]
    assert matrix.subject_table["family"].isna().tolist() == [True, False]
    assert matrix.benchmarks == ("p", "q")
    assert f"{tmp_path / 'items.parquet'}: joined by item (2 of 2)" in matrix.notes
    assert f"{tmp_path / 'models.parquet'}: joined by subject (1 of 2)" in matrix.notes
    pd.DataFrame({"subject": ["a", "b"], "family": ["g", "h"]}).to_parquet(tmp_path / "subjects.parquet")
    again = read_responses(path).subject_table
    assert again is not None
    assert again["family"].tolist() == ["g", "h"]


def test_tables_that_are_named(write: Writer) -> None:
    path = write(RESPONSES)
    named = write("item_id;cost;topic;year\ny;0.5;b;2020\nx;;a;2021\n", "more.csv")
    subjects = pd.DataFrame({"model": ["a", "b"], "date": ["20240101", "20250101"]})
    matrix = read_responses(path, items=named, subjects=subjects)
    assert matrix.item_table is not None
    assert matrix.subject_table is not None
    assert matrix.item_table["cost"].isna().tolist() == [True, False]
    assert matrix.item_table["year"].tolist() == [2021, 2020]
    assert matrix.item_table["topic"].tolist() == ["a", "b"]
    assert matrix.subject_table["date"].tolist() == ["20240101", "20250101"]
    with pytest.raises(InputError, match="no column of ids"):
        read_responses(path, subjects=named)
    with pytest.raises(InputError, match="none of the 2 ids in the responses"):
        read_responses(path, subjects=pd.DataFrame({"model": ["other"]}))


def test_several_rows_for_an_id(write: Writer, tmp_path: Path) -> None:
    path = write(RESPONSES)
    twice = pd.DataFrame({"model_id": ["a", "a", "b", "b"], "mean": [1, 2, 3, 3]})
    twice.to_parquet(tmp_path / "models.parquet")
    matrix = read_responses(path)
    assert matrix.subject_table is None
    assert any("not joined: several rows for 'a'" in note for note in matrix.notes)
    with pytest.raises(InputError, match="several rows for 'a'"):
        read_responses(path, subjects=twice)
    by_benchmark = twice.assign(benchmark=["p", "q", "p", "q"])
    chosen = read_responses(
        path,
        benchmark="p",
        items=pd.DataFrame({"item": ["x", "y"], "benchmark": ["p", "q"]}),
        subjects=by_benchmark,
    )
    assert chosen.subject_table is not None
    assert chosen.subject_table["mean"].tolist() == [1, 3]


def test_a_benchmark_is_chosen(write: Writer) -> None:
    path = write("subject,item,score,benchmark\na,0,1,p\na,1,0,p\nb,2,1,q\nb,0,,p\n")
    matrix = read_responses(path)
    assert matrix.benchmarks == ("p", "p", "q")
    part = read_responses(path, benchmark="p")
    assert (part.subjects, part.items, part.benchmarks) == (("a", "b"), ("0", "1"), ("p", "p"))
    assert read_responses(path, benchmark="q").subjects == ("b",)
    assert any(note == "benchmark 'p': 2 of 3 items" for note in part.notes)
    with pytest.raises(InputError, match="no 'r', wanted one of p, q"):
        read_responses(path, benchmark="r")
    with pytest.raises(InputError, match="no table has such a column"):
        read_responses(write(RESPONSES), benchmark="p")


def test_an_id_in_two_benchmarks_is_refused(write: Writer) -> None:
    """Positional ids repeat from benchmark to benchmark: the items are not the same."""
    path = write("subject,item,score,benchmark\na,0,1,p\nb,0,1,q\n")
    with pytest.raises(InputError, match=r"item '0' is in .* choose one with --benchmark") as refused:
        read_responses(path)
    assert refused.value.field == "benchmark"
    assert read_responses(path, benchmark="q").subjects == ("b",)


def test_benchmarks_known_in_part_are_left_out(write: Writer) -> None:
    items = pd.DataFrame({"item": ["x"], "benchmark": ["p"]})
    matrix = read_responses(write(RESPONSES), items=items)
    assert matrix.benchmarks is None
    assert "benchmark unknown for 1 of 2 items, so it is left out" in matrix.notes


def test_frames_join_frames() -> None:
    frame = pd.DataFrame({"subject": ["a"], "item": ["x"], "score": [1]})
    matrix = ResponseMatrix.from_frame(frame, items=pd.DataFrame({"item": ["x"], "benchmark": ["p"]}))
    assert matrix.benchmarks == ("p",)


def test_files_that_are_none(write: Writer, tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path, "a folder"),
        (write(RESPONSES, "responses.xlsx"), r"extension '.xlsx', wanted one of .parquet, .csv"),
    ):
        with pytest.raises(InputError, match=message) as refused:
            read_responses(path)
        assert refused.value.file == str(path)
    with pytest.raises(InputError, match="no file"):
        read_responses([])
