"""Damaged tables: an error that names the file, or the scores that the file holds; nothing else.

``FUZZ_EXAMPLES=20000 pytest tests/responses/read/test_fuzz.py`` runs it for long.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irteval import InputError, ResponseMatrix, read_responses

fuzzed = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "80")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
FORMS = ["csv", "tsv", "jsonl", "parquet"]

TRICKY = [
    "None",
    "NA",
    "nan",
    "007",
    "7",
    "1e5",
    "1.0",
    "1",
    "true",
    "",
    " ",
    "é",
    "a,b",
    "a;b",
    'a"b',
    "\ufeff",
]
IDS = st.sampled_from([text for text in TRICKY if text.strip()]) | st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=8
).filter(lambda text: text.strip() != "")
# What is written for a score, and what has to be read.
SPELLED = {
    "1": 1.0,
    "0": 0.0,
    "True": 1.0,
    "FALSE": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "": np.nan,
    "NA": np.nan,
    "0,25": 0.25,
    "0.25": 0.25,
    "1e0": 1.0,
    ".5": 0.5,
}
VALUES = st.sampled_from(sorted(SPELLED)) | st.floats(0, 1).map(repr)
Rows = list[tuple[str, str, str]]


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Rows of distinct cells: subject, item, and the score as it is spelled."""
    cells = draw(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=8, unique=True))
    return [(subject, item, draw(VALUES)) for subject, item in cells]


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def encoded(rows: Rows, form: str) -> bytes:
    """A file of these rows, its scores as text."""
    if form == "jsonl":
        return b"\n".join(
            orjson.dumps(dict(zip(("subject", "item", "score"), row, strict=True))) for row in rows
        )
    if form == "parquet":
        sink = pa.BufferOutputStream()
        columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(columns, names=["subject", "item", "score"]), sink)
        return sink.getvalue().to_pybytes()
    between = "\t" if form == "tsv" else ","
    lines = [("subject", "item", "score"), *rows]
    return "".join(between.join(quoted(value) for value in line) + "\n" for line in lines).encode()


@st.composite
def damaged(draw: st.DrawFn, form: str) -> bytes:
    """A file of the form with some of it cut, doubled, overwritten, glued or put into another encoding."""
    content = encoded(draw(tables()), form)
    for _ in range(draw(st.integers(1, 3))):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        junk = draw(st.binary(max_size=12) | st.sampled_from(JUNK))
        content = draw(
            st.sampled_from(
                [
                    content[:stop],
                    content[:start] + content[stop:],
                    content[:stop] + content[start:],
                    content[:start] + junk + content[start:],
                    content[:start] + junk + content[start + len(junk) :],
                    content.replace(b"\n", junk, 1),
                    content[:start] + content[start:stop].replace(b"\n", b""),
                ]
            )
        )
    return content


JUNK = [
    b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
    "subject".encode("utf-16"),
    b"\xef\xbb\xbf",
    b"\r\n",
    b'"',
    b"[" * 3000,
    b'{"score":' * 500,
    b"\x00",
    b"9" * 400,
    b"1e400",
    b"-1",
    b"\xed\xa0\x80",
]


def read_or_refuse(path: Path) -> ResponseMatrix | InputError:
    try:
        return read_responses(path)
    except InputError as error:
        return error


@pytest.mark.parametrize("form", FORMS)
@fuzzed
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, form: str, data: st.DataObject) -> None:
    path = tmp_path / f"responses.{form}"
    path.write_bytes(data.draw(damaged(form)))
    matrix = read_or_refuse(path)
    if isinstance(matrix, InputError):
        assert matrix.file in (None, str(path))
        return
    scores = matrix.dense()
    assert ((scores >= 0) & (scores <= 1) | np.isnan(scores)).all()
    assert all(name.strip() for name in (*matrix.subjects, *matrix.items))


@pytest.mark.parametrize("form", FORMS)
@fuzzed
@given(rows=tables())
def test_no_score_and_no_id_is_changed(tmp_path: Path, form: str, rows: Rows) -> None:
    path = tmp_path / f"responses.{form}"
    path.write_bytes(encoded(rows, form))
    matrix = read_responses(path)
    assert matrix.subjects == tuple(sorted({subject for subject, _, _ in rows}))
    assert matrix.items == tuple(sorted({item for _, item, _ in rows}))
    wanted = np.full(matrix.shape, np.nan)
    for subject, item, spelled in rows:
        score = SPELLED[spelled] if spelled in SPELLED else float(spelled)
        wanted[matrix.subjects.index(subject), matrix.items.index(item)] = score
    np.testing.assert_array_equal(matrix.dense(), wanted)


@fuzzed
@given(rows=tables(), cut=st.integers(1, 40))
def test_lines_that_are_cut_short_are_refused(tmp_path: Path, rows: Rows, cut: int) -> None:
    """Of JSON lines and parquet; of CSV only the last value may be cut without a sign of it."""
    for form in ("jsonl", "parquet"):
        content = encoded(rows, form)
        path = tmp_path / f"responses.{form}"
        path.write_bytes(content[: max(1, len(content) - cut)])
        kept = read_or_refuse(path)
        if isinstance(kept, InputError):
            continue
        whole = ResponseMatrix.from_frame(pd.DataFrame(rows, columns=["subject", "item", "score"]))
        assert form == "jsonl"
        for subject in kept.subjects:
            items, scores = kept.row(subject)
            row = dict(zip(*whole.row(subject), strict=True))
            assert [row[whole.items.index(kept.items[j])] for j in items] == scores.tolist()
