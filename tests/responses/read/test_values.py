"""Ids stay the texts they are; scores are read in every spelling, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval import InputError, ResponseMatrix, read_responses

Writer = Callable[..., Path]
TRICKY = ["007", "7", "NA", "None", "nan", "null", "1e5", "100000", "1.0", "1", "true", " 1", "é", "1,5"]


def test_ids_are_never_parsed(write: Writer) -> None:
    lines = [f'"{subject}","{item}",1' for subject in TRICKY for item in TRICKY]
    from_csv = read_responses(write("subject,item,score\n" + "\n".join(lines)))
    pairs = [(subject, item) for subject in TRICKY for item in TRICKY]
    frame = pd.DataFrame(pairs, columns=["subject", "item"]).assign(score=1)
    for matrix in (from_csv, ResponseMatrix.from_frame(frame)):
        assert matrix.subjects == matrix.items == tuple(sorted(TRICKY))
        assert matrix.cells == len(TRICKY) ** 2


def test_wide_ids_are_never_parsed(write: Writer) -> None:
    header = ",".join(f'"{item}"' for item in ["model", *TRICKY])
    rows = [f'"{subject}"' + ",1" * len(TRICKY) for subject in TRICKY]
    matrix = read_responses(write("\n".join([header, *rows])))
    assert matrix.subjects == matrix.items == tuple(sorted(TRICKY))


@pytest.mark.parametrize(
    ("spelled", "score"),
    [
        *(
            (text, 1.0)
            for text in ("1", "1.0", "True", "TRUE", "true", "yes", "Y", " 1 ", "+1", "1e0", "1,0")
        ),
        *((text, 0.0) for text in ("0", "0.0", "False", "FALSE", "no", "N", "-0", "0,")),
        *((text, np.nan) for text in ("", " ", "NaN", "nan", "NA", "null", "None", "N/A")),
        (".5", 0.5),
        ("5e-1", 0.5),
        ("0,5", 0.5),
    ],
)
def test_spellings_of_a_score(write: Writer, spelled: str, score: float) -> None:
    matrix = read_responses(write(f'subject,item,score\na,x,"{spelled}"\na,y,1\n'))
    np.testing.assert_array_equal(matrix.dense(), [[score, 1]])


@pytest.mark.parametrize(
    "spelled", ["banana", "1.7", "-0.1", "inf", "50%", "1/2", "1.2.3", "0x1", "1 0", "2"]
)
def test_what_is_no_score_is_refused(write: Writer, spelled: str) -> None:
    path = write(f"subject,item,score\na,x,1\nb,x,{spelled}\n")
    with pytest.raises(InputError, match=r"wanted a share in \[0, 1\]") as refused:
        read_responses(path)
    assert (refused.value.file, refused.value.line, refused.value.field) == (str(path), 3, "score")
    assert spelled in refused.value.message


def test_scores_of_mixed_python_types() -> None:
    scores = [True, "FALSE", "1", "", None, float("nan"), 0.5, pd.NA]
    frame = pd.DataFrame({"subject": "a", "item": [f"i{k}" for k in range(8)], "score": scores})
    nan = np.nan
    np.testing.assert_array_equal(
        ResponseMatrix.from_frame(frame).dense(), [[1, 0, 1, nan, nan, nan, 0.5, nan]]
    )


def test_categories_of_pandas(write: Writer) -> None:
    """Only ids in use count, and categories that are numbers are numbers."""
    frame = pd.DataFrame({"subject": ["a", "b", "c"], "item": ["x", "y", "z"], "score": [1, 0, 1]})
    frame = frame.astype("category").iloc[:2]
    matrix = ResponseMatrix.from_frame(frame)
    assert (matrix.subjects, matrix.items) == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(matrix.scores, [[1, -1], [-1, 0]])


def test_a_subject_without_answers_stays(write: Writer) -> None:
    matrix = read_responses(write("subject,item,score\na,x,1\nb,x,\nb,y,NaN\n"))
    assert (matrix.subjects, matrix.items) == (("a", "b"), ("x", "y"))
    assert matrix.subject_counts().tolist() == [1, 0]
    assert read_responses(write("subject,item,score\na,x,\n")).cells == 0


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_id_is_refused(write: Writer, blank: str) -> None:
    path = write(f"subject,item,score\na,x,1\n{blank},x,1\n")
    with pytest.raises(InputError, match="no id") as refused:
        read_responses(path)
    assert (refused.value.line, refused.value.field) == (3, "subject")


def test_trials_probability_step_and_cost(write: Writer) -> None:
    matrix = read_responses(
        write(
            "subject,item,score,trials,probability,step,cost,status,time\n"
            "a,x,0.4,5,0.25,0,1.5,ok,9\na,y,,,,,,error,9\nb,x,1,2,1,3,,ok,9\n"
        )
    )
    assert matrix.cells == 2
    np.testing.assert_array_equal(matrix.trials, [[5, 0], [2, 0]])
    np.testing.assert_array_equal(matrix.probability, [[0.25, np.nan], [1, np.nan]])
    np.testing.assert_array_equal(matrix.step, [[0, -1], [3, -1]])
    np.testing.assert_array_equal(matrix.cost, [[1.5, np.nan], [np.nan, np.nan]])
    assert "status not ok: 1 error" in matrix.notes[0]


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("trials", "0", "a whole number of at least 1"),
        ("trials", "2.5", "a whole number of at least 1"),
        ("trials", "five", "a whole number of at least 1"),
        ("probability", "0", r"a number in \(0, 1\]"),
        ("probability", "1.5", r"a number in \(0, 1\]"),
        ("step", "-1", "a whole number of at least 0"),
        ("cost", "-3", "a number of at least 0"),
    ],
)
def test_a_bad_value_beside_a_score_is_refused(write: Writer, column: str, value: str, wanted: str) -> None:
    path = write(f"subject,item,score,{column}\na,x,1,1\nb,x,1,{value}\n")
    with pytest.raises(InputError, match=wanted) as refused:
        read_responses(path)
    assert (refused.value.line, refused.value.field) == (3, column)


def test_blanks_beside_a_score(write: Writer) -> None:
    """As in a session's journal: one trial, an item that was chosen, a cost that nobody knows."""
    path = write("subject,item,score,trials,probability,step,cost\na,x,1,,,,\na,y,0,4,0.5,2,\na,x,1,,,,\n")
    matrix = read_responses(path)
    np.testing.assert_array_equal(matrix.trials, [[1, 4]])
    np.testing.assert_array_equal(matrix.probability, [[np.nan, 0.5]])
    np.testing.assert_array_equal(matrix.step, [[-1, 2]])
    np.testing.assert_array_equal(read_responses(path, trials=3).trials, [[3, 4]])


def test_trials_for_the_whole_table(write: Writer) -> None:
    path = write("subject,item,score\na,x,0.3\na,y,0.33\nb,x,\n")
    matrix = read_responses(path, trials=10)
    np.testing.assert_array_equal(matrix.dense(), [[0.3, 0.3], [np.nan, np.nan]])
    np.testing.assert_array_equal(matrix.trials, [[10, 10], [0, 0]])
    assert "1 scores are not k of their n trials and were rounded to the nearest" in matrix.notes
    with pytest.raises(InputError, match="wanted a whole number of at least 1"):
        read_responses(path, trials=0)


def test_successes_of_trials(write: Writer) -> None:
    matrix = read_responses(write("subject,item,successes,trials\na,x,2,5\na,y,0,0\nb,x,4,4\n"))
    np.testing.assert_array_equal(matrix.dense(), [[0.4, np.nan], [1, np.nan]])
    with pytest.raises(InputError, match=r"score 1\.5"):
        read_responses(write("subject,item,successes,trials\na,x,3,2\n"))
