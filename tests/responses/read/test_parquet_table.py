"""Parquet: types, row groups with their own dictionaries, a pandas index, files that are broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from irteval import InputError, ResponseMatrix, read_responses


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_row_groups_with_their_own_dictionaries(tmp_path: Path, kind: pa.DataType) -> None:
    subject = pa.array([f"m{i // 10}" for i in range(100)]).cast(kind)
    item = pa.array([f"q{i % 10}" for i in range(100)]).cast(kind)
    score = pa.array(np.arange(100) % 3 == 0)
    table = pa.table({"subject": subject, "item": item, "score": score})
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=7)
    matrix = read_responses(tmp_path / "r.parquet")
    assert matrix.subjects == tuple(f"m{i}" for i in range(10))
    np.testing.assert_array_equal(matrix.scores, (np.arange(100) % 3 == 0).reshape(10, 10))


@pytest.mark.parametrize(
    "kind",
    [pa.bool_(), pa.uint8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(22, 2), pa.string()],
)
@pytest.mark.parametrize("missing", [False, True])
def test_types_of_scores(tmp_path: Path, kind: pa.DataType, missing: bool) -> None:
    score = pa.array([1, 0, None if missing else 1]).cast(kind)
    table = pa.table({"subject": [1, 2, 7], "item": ["x", "x", "x"], "score": score})
    pq.write_table(table, tmp_path / "r.parquet")
    matrix = read_responses(tmp_path / "r.parquet")
    assert matrix.subjects == ("1", "2", "7")
    assert matrix.scores.tolist() == [[1], [0], [-1 if missing else 1]]


def test_a_pandas_index_of_text_is_the_subject_of_a_wide_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"reason.4": [1, 0], "reason": [0, None]}, index=["b", "a"])
    frame.to_parquet(tmp_path / "r.parquet")
    for matrix in (read_responses(tmp_path / "r.parquet"), ResponseMatrix.from_frame(frame)):
        assert matrix.subjects == ("a", "b")
        assert matrix.items == ("reason", "reason.4")
        assert matrix.scores.tolist() == [[-1, 0], [0, 1]]


def test_an_index_of_numbers_only_counts_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"model": ["a", "b", "c"], "q": [1, 0, 1]}).iloc[[0, 2]]
    frame.to_parquet(tmp_path / "r.parquet")
    for matrix in (read_responses(tmp_path / "r.parquet"), ResponseMatrix.from_frame(frame)):
        assert (matrix.subjects, matrix.items) == (("a", "c"), ("q",))


def test_a_fault_is_named_by_its_row(tmp_path: Path) -> None:
    table = pa.table({"subject": ["a", "b", "c"], "item": ["x"] * 3, "score": [1.0, 0.0, 1.7]})
    path = tmp_path / "r.parquet"
    pq.write_table(table, path)
    with pytest.raises(
        InputError, match=r"score 1.7, wanted a share in \[0, 1\].*--scale ordinal"
    ) as refused:
        read_responses(path)
    assert (refused.value.file, refused.value.line, refused.value.field) == (str(path), 3, "score")


@pytest.mark.parametrize("ids", [pa.array([1.0, 2.0]), pa.array([True, False]), pa.array([b"a", b"b"])])
def test_ids_that_are_not_text_are_refused(tmp_path: Path, ids: pa.Array) -> None:
    pq.write_table(pa.table({"subject": ids, "item": ["x", "y"], "score": [1, 0]}), tmp_path / "r.parquet")
    with pytest.raises(InputError, match="wanted text") as refused:
        read_responses(tmp_path / "r.parquet")
    assert refused.value.field == "subject"


def test_broken_files(tmp_path: Path) -> None:
    table = pa.table({"subject": [f"m{i}" for i in range(5000)], "item": ["x"] * 5000, "score": [1] * 5000})
    whole = tmp_path / "whole.parquet"
    pq.write_table(table, whole)
    content = whole.read_bytes()
    cut, head, empty = (tmp_path / f"{name}.parquet" for name in ("cut", "head", "empty"))
    cut.write_bytes(content[: len(content) // 2])
    head.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    empty.write_bytes(b"")
    for path in (cut, head):
        with pytest.raises(InputError, match="not a readable parquet file") as refused:
            read_responses(path)
        assert refused.value.file == str(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="the file is empty"):
        read_responses(empty)
    pq.write_table(table.slice(0, 0), empty)
    with pytest.raises(InputError, match="no rows"):
        read_responses(empty)


def test_text_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"subject": ["abc"], "item": ["xyz"], "score": [1]}), tmp_path / "r.parquet")
    content = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(content.replace(b"abc", b"a\x80c"))
    with pytest.raises(InputError, match="not a readable parquet file"):
        read_responses(tmp_path / "r.parquet")


def test_a_damaged_directory_never_loses_rows_in_silence(tmp_path: Path) -> None:
    """Any byte of the directory at the file's end exchanged: all rows, or an error."""
    path = tmp_path / "r.parquet"
    pq.write_table(
        pa.table({"subject": ["x", "y"], "item": ["a", "b"], "score": [1.0, 0.5]}), path, store_schema=False
    )
    content = path.read_bytes()
    directory = int.from_bytes(content[-8:-4], "little")
    messages = []
    for at in range(len(content) - 8 - directory, len(content) - 8):
        for byte in (0, content[at] ^ 4):
            path.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
            answers, message = _read_or_refuse(path)
            assert answers in (None, 2)
            messages.append(message)
    assert any(messages)
    assert not any("\n" in message for message in messages)


def _read_or_refuse(path: Path) -> tuple[int | None, str]:
    try:
        return int(read_responses(path).subject_counts().sum()), ""
    except InputError as error:
        return None, str(error)
