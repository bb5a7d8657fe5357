"""Long or wide, columns by any of their names, ordered categories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval import InputError, ResponseMatrix, read_responses

Writer = Callable[..., Path]


@pytest.mark.parametrize("subject", ["subject", "model_id", "model", "subject_id", "Model", " model "])
@pytest.mark.parametrize("item", ["item", "item_id", "question_id", "Item"])
def test_aliases_are_told(write: Writer, subject: str, item: str) -> None:
    matrix = read_responses(write(f"{item},Score,{subject},extra\nx,1,a,9\n"))
    assert (matrix.subjects, matrix.items) == (("a",), ("x",))
    (note,) = matrix.notes
    assert "long table of 1 rows" in note
    assert "left aside extra" in note
    assert (f"{subject} as subject" in note) == (subject != "subject")
    assert (f"{item} as item" in note) == (item != "item")


def test_our_name_goes_before_an_alias(write: Writer) -> None:
    matrix = read_responses(write("model,item_id,subject,item,score\nm,i,a,x,1\n"))
    assert (matrix.subjects, matrix.items) == (("a",), ("x",))
    assert "left aside model, item_id" in matrix.notes[0]


def test_wide(write: Writer) -> None:
    matrix = read_responses(write(",q10,q9\nb,1,\na,0,0.5\n"))
    assert (matrix.subjects, matrix.items) == (("a", "b"), ("q10", "q9"))
    np.testing.assert_array_equal(matrix.dense(), [[0, 0.5], [1, np.nan]])
    assert "wide table of 2 rows, subject in '', 2 items" in matrix.notes[0]


def test_a_fault_in_a_wide_table_names_the_item(write: Writer) -> None:
    with pytest.raises(InputError, match="'banana'") as refused:
        read_responses(write("model,q1,q2\na,1,0\nb,1,banana\n"))
    assert (refused.value.line, refused.value.field) == (3, "q2")


def test_wide_columns_of_several_types() -> None:
    frame = pd.DataFrame(
        {"model": ["b", "a"], "q3": ["yes", None], "q1": [True, False], "q2": [0.5, np.nan], "q0": [1, 0]}
    )
    matrix = ResponseMatrix.from_frame(frame)
    assert matrix.items == ("q0", "q1", "q2", "q3")
    nan = np.nan
    np.testing.assert_array_equal(matrix.dense(), [[0, 0, nan, nan], [1, 1, 0.5, 1]])
    frame["q2"] = [0.5, 1.5]
    with pytest.raises(InputError, match=r"score 1\.5") as refused:
        ResponseMatrix.from_frame(frame)
    assert (refused.value.line, refused.value.field) == (2, "q2")


@pytest.mark.parametrize(
    ("header", "field"),
    [("subject,score,x", "item"), ("item,score,x", "subject"), ("subject,item,x", "score")],
)
def test_a_missing_column_is_named(write: Writer, header: str, field: str) -> None:
    path = write(f"{header}\na,1,1\n")
    with pytest.raises(
        InputError, match=f"no column for the {field} among {header.replace(',', ', ')}"
    ) as refused:
        read_responses(path)
    assert (refused.value.file, refused.value.field) == (str(path), field)


def test_one_column_is_no_table(write: Writer) -> None:
    with pytest.raises(InputError, match="one column, 'subject'"):
        read_responses(write("subject\na\n"))


def test_frames_with_repeated_columns_are_refused() -> None:
    frame = pd.DataFrame([["a", 1, 0]], columns=["model", "q", "q"])
    with pytest.raises(InputError, match="there twice"):
        ResponseMatrix.from_frame(frame)
    with pytest.raises(InputError, match="no rows"):
        ResponseMatrix.from_frame(pd.DataFrame({"subject": [], "item": [], "score": []}))


def test_ordered_categories(write: Writer) -> None:
    path = write("subject,item,score\na,x,0\na,y,4\nb,x,3\nb,y,\n")
    matrix = read_responses(path, scale="ordinal")
    np.testing.assert_array_equal(matrix.dense(), [[0, 1], [0.75, np.nan]])
    assert matrix.categories == 5
    assert "ordered categories 0 to 4, kept as shares of 4" in matrix.notes
    with pytest.raises(InputError, match="--scale ordinal") as refused:
        read_responses(path)
    assert refused.value.line == 3


def test_a_rating_between_categories_needs_the_ordinal_scale(write: Writer) -> None:
    path = write("subject,item,score\na,x,1.7\na,y,2\n")
    matrix = read_responses(path, scale="ordinal")
    np.testing.assert_allclose(matrix.dense(), [[0.85, 1]])
    assert matrix.categories is None
    with pytest.raises(InputError, match=r"score 1\.7, wanted a share in \[0, 1\]"):
        read_responses(path)


def test_a_column_of_categories(write: Writer) -> None:
    matrix = read_responses(write("subject,item,category\na,x,2\na,y,1\n"))
    assert matrix.dense().tolist() == [[1, 0.5]]
    assert matrix.categories == 3
    topics = read_responses(write("subject,item,score,category\na,x,1,physics\n"))
    assert topics.categories is None


def test_categories_that_are_none_are_refused(write: Writer) -> None:
    for bad in ("-1", "inf", "banana"):
        with pytest.raises(InputError, match="wanted an ordered category"):
            read_responses(write(f"subject,item,score\na,x,{bad}\n"), scale="ordinal")
    with pytest.raises(InputError, match="trials and ordered categories"):
        read_responses(write("subject,item,score,trials\na,x,1,2\n"), scale="ordinal")
    with pytest.raises(InputError, match="wanted share or ordinal"):
        read_responses(write("subject,item,score\na,x,1\n"), scale="graded")  # type: ignore[arg-type]
