"""JSON lines: types as they come, lines of faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irteval import InputError, read_responses

Writer = Callable[..., Path]


def test_mixed_types_and_missing_keys(write: Writer) -> None:
    path = write(
        '{"subject": "007", "item": 7, "score": true}\n'
        '{"subject": 7, "item": "7", "score": "FALSE"}\n\n'
        '{"subject": "NA", "item": "None", "score": 0.5, "note": [1, 2]}\n'
        '{"subject": "NA", "item": "7", "score": null}\n'
        '{"subject": "NA", "item": "1e5"}\n',
        "responses.jsonl",
    )
    matrix = read_responses(path)
    assert matrix.subjects == ("007", "7", "NA")
    assert matrix.items == ("1e5", "7", "None")
    nan = np.nan
    np.testing.assert_array_equal(matrix.dense(), [[nan, 1, nan], [nan, 0, nan], [nan, nan, 0.5]])


def test_byte_order_mark(write: Writer) -> None:
    path = write(b'\xef\xbb\xbf{"model": "a", "item_id": "x", "score": 1}\n', "responses.ndjson")
    assert read_responses(path).cells == 1


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("", None, "the file is empty"),
        ('{"subject": "a", "item": "x", "score": 1}\n{"subject": "a", \n', 2, "not JSON"),
        ('{"subject": "a", "item": "x", "score": 1}\n\n[1, 2]\n', 3, "wanted an object"),
        (
            '{"subject": "a", "item": "x", "score": 1}\n\n{"subject": "b", "item": "x", "score": "?"}',
            3,
            "'?'",
        ),
        ('{"subject": "a", "item": "x", "score": {"acc": 1}}\n', None, "values of type struct"),
        ('{"subject": "a", "item": 1e5, "score": 1}\n', None, "never parsed"),
        ('{"subject": "a", "item": "x", "score": 1}\n{"item": "x", "score": 1}\n', 2, "no id"),
    ],
)
def test_a_malformed_file_is_refused(write: Writer, content: str, line: int | None, message: str) -> None:
    path = write(content, "responses.jsonl")
    with pytest.raises(InputError, match=message.replace("?", r"\?")) as refused:
        read_responses(path)
    assert refused.value.file == str(path)
    assert refused.value.line == line
