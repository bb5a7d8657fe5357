"""Several files, repeats of a response, and variants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irteval import InputError, read_responses

Writer = Callable[..., Path]


def test_many_files_are_one_matrix(write: Writer) -> None:
    one = write("subject,item,score\nb,x,1\nb,y,0\n", "one.csv")
    two = write('{"model": "a", "item": "y", "score": 0.5}\n', "two.jsonl")
    three = write("model,z,x\nc,1,0\n", "three.csv")
    matrix = read_responses([one, two, three])
    assert matrix.subjects == ("a", "b", "c")
    assert matrix.items == ("x", "y", "z")
    nan = np.nan
    np.testing.assert_array_equal(matrix.dense(), [[nan, 0.5, nan], [1, 0, nan], [0, nan, 1]])
    assert [note.split(": ")[0] for note in matrix.notes] == [str(one), str(two), str(three)]
    reverse = read_responses([three, two, one])
    np.testing.assert_array_equal(matrix.dense(), reverse.dense())


def test_a_file_without_trials_has_one_of_each(write: Writer) -> None:
    one = write("subject,item,score,trials,cost\na,x,0.5,4,2\n", "one.csv")
    two = write("subject,item,score\nb,x,1\n", "two.csv")
    np.testing.assert_array_equal(read_responses([one, two]).trials, [[4], [1]])
    np.testing.assert_array_equal(read_responses([one, two], trials=3).trials, [[4], [3]])
    np.testing.assert_array_equal(read_responses([one, two]).cost, [[2], [np.nan]])


@pytest.mark.parametrize("column", ["benchmark", "probability", "step"])
def test_some_columns_must_be_in_all_files(write: Writer, column: str) -> None:
    one = write(f"subject,item,score,{column}\na,x,1,1\n", "one.csv")
    two = write("subject,item,score\nb,x,1\n", "two.csv")
    with pytest.raises(InputError, match="as in the other tables") as refused:
        read_responses([one, two])
    assert (refused.value.file, refused.value.field) == (str(two), column)


def test_shares_and_categories_do_not_mix(write: Writer) -> None:
    one = write("subject,item,score\na,x,1\n", "one.csv")
    two = write("subject,item,category\nb,x,3\n", "two.csv")
    with pytest.raises(InputError, match="wanted one scale"):
        read_responses([one, two])


def test_equal_repeats_collapse(write: Writer) -> None:
    rows = ["a,x,1,", "a,x,1,3", "a,x,true,2", "a,y,,", "a,y,0.5,1", "b,x,0,1"]
    for ordered in (rows, rows[::-1]):
        matrix = read_responses(write("\n".join(["subject,item,score,cost", *ordered])))
        np.testing.assert_array_equal(matrix.dense(), [[1, 0.5], [0, np.nan]])
        np.testing.assert_array_equal(matrix.cost, [[2, 1], [1, np.nan]])
        assert "2 responses repeat another one with an equal score and were left out" in matrix.notes


def test_unequal_repeats_are_refused_with_both_lines(write: Writer) -> None:
    path = write("subject,item,score\na,x,1\nb,x,1\n\na,y,0\na,x,0\n")
    with pytest.raises(InputError) as refused:
        read_responses(path)
    error = refused.value
    assert (error.file, error.line, error.field) == (str(path), 6, "score")
    assert error.message == "subject 'a' and item 'x' have score 0 here and 1 in line 2, wanted one response"


def test_unequal_repeats_across_files_name_both(write: Writer) -> None:
    one = write("subject,item,score\na,x,1\n", "one.csv")
    two = write("model,y,x\nb,1,1\na,1,0\n", "two.csv")
    with pytest.raises(InputError, match=f"have score 0 here and 1 in {one} line 2") as refused:
        read_responses([one, two])
    assert (refused.value.file, refused.value.line, refused.value.field) == (str(two), 3, "x")


def test_unequal_trials_are_unequal_responses(write: Writer) -> None:
    with pytest.raises(InputError, match="have trials 2 here and 4 in line 2"):
        read_responses(write("subject,item,score,trials\na,x,0.5,4\na,x,0.5,2\n"))


def test_a_subject_twice_in_a_wide_table(write: Writer) -> None:
    assert read_responses(write("model,x,y\na,1,\na,,0\n")).dense().tolist() == [[1, 0]]
    with pytest.raises(InputError, match="have score 0 here and 1 in line 2") as refused:
        read_responses(write("model,x,y\na,1,1\na,1,0\n"))
    assert (refused.value.line, refused.value.field) == (3, "y")


def test_a_variant_is_suggested_and_averaged_over(write: Writer) -> None:
    path = write("subject,item,score,prompt\na,x,1,p\na,x,0,q\na,y,1,q\na,y,1,q\n")
    with pytest.raises(InputError, match=r"differ in prompt: .* --variant prompt"):
        read_responses(path)
    matrix = read_responses(path, variant="prompt")
    assert matrix.dense().tolist() == [[0.5, 1]]
    assert "a score is the mean over prompt (2)" in matrix.notes
    with pytest.raises(InputError, match="no column for the variant") as refused:
        read_responses(path, variant=["prompt", "seed"])
    assert refused.value.field == "seed"


def test_unequal_repeats_within_a_variant_are_refused(write: Writer) -> None:
    path = write("subject,item,score,prompt,seed\na,x,1,p,1\na,x,0,p,2\n")
    with pytest.raises(InputError, match="differ in seed"):
        read_responses(path, variant="prompt")
    assert read_responses(path, variant=["prompt", "seed"]).dense().tolist() == [[0.5]]


def test_trials_weigh_variants(write: Writer) -> None:
    path = write("subject,item,score,trials,prompt\na,x,1,1,p\na,x,0,3,q\n")
    matrix = read_responses(path, variant="prompt")
    assert matrix.dense().tolist() == [[0.25]]
    assert matrix.trial_rows(0, 1).tolist() == [[4]]  # type: ignore[union-attr]


def test_variants_without_an_answer_or_of_a_designed_sample(write: Writer) -> None:
    assert read_responses(write("subject,item,score,prompt\na,x,,p\n"), variant="prompt").cells == 0
    with pytest.raises(InputError, match="has no variants"):
        read_responses(write("subject,item,score,step,prompt\na,x,1,0,p\n"), variant="prompt")
    with pytest.raises(InputError, match="wide table has no variant columns"):
        read_responses(write("model,x\na,1\n"), variant="prompt")
