"""Tables as spreadsheets and data frames leave them: one right reading each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval import ResponseMatrix, read_responses

Writer = Callable[..., Path]
IDS = ["None", "NA", "nan", "007", "7", "1e5", "1.0", "1", "null", "100000"]


def test_a_byte_order_mark_semicolons_and_decimal_commas(write: Writer) -> None:
    text = "\ufeffsubject;item;score\r\na;x;0,5\r\na;y;1,0\r\nb;x;0,25\r\n"
    matrix = read_responses(write(text.encode()))
    assert (matrix.subjects, matrix.items) == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(matrix.dense(), [[0.5, 1], [0.25, np.nan]])


@pytest.mark.parametrize("name", ["responses.csv", "responses.jsonl"])
def test_words_for_right_and_wrong(write: Writer, name: str) -> None:
    spelled = {"a": "True", "b": "False", "c": "TRUE", "d": "0", "e": "yes", "f": ""}
    if name.endswith("csv"):
        text = "subject,item,score\n" + "".join(f'm,{item},"{word}"\n' for item, word in spelled.items())
    else:
        lines = (f'{{"subject": "m", "item": "{k}", "score": "{word}"}}\n' for k, word in spelled.items())
        text = "".join(lines)
    matrix = read_responses(write(text, name))
    assert matrix.items == tuple("abcdef")
    np.testing.assert_array_equal(matrix.dense(), [[1, 0, 1, 0, 1, np.nan]])


def test_ten_ids_stay_ten_texts(write: Writer, tmp_path: Path) -> None:
    lines = "".join(f"{subject},{item},1\n" for subject in IDS for item in IDS)
    frame = pd.DataFrame([(s, i, 1) for s in IDS for i in IDS], columns=["subject", "item", "score"])
    frame.to_parquet(tmp_path / "ids.parquet")
    objects = "".join(f'{{"subject": "{s}", "item": "{i}", "score": 1}}\n' for s in IDS for i in IDS)
    for matrix in (
        read_responses(write("subject,item,score\n" + lines)),
        read_responses(write(objects, "ids.jsonl")),
        read_responses(tmp_path / "ids.parquet"),
        ResponseMatrix.from_frame(frame),
    ):
        assert matrix.subjects == matrix.items == tuple(sorted(IDS))
        assert matrix.cells == 100
