"""The same responses give the same matrix, whatever the order of rows and columns and whatever the format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irteval import ResponseMatrix, read_responses

# Any text is an id where a format can hold it: no line breaks and no null character, and not blank.
IDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=6
).filter(lambda text: text.strip() != "")
# Column names that make a table long, or stand for a name that this test gives to the subjects' column.
SPECIAL = {
    "subject",
    "model",
    "model_id",
    "subject_id",
    "item",
    "item_id",
    "question_id",
    "score",
    "category",
}
SCORES = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """A long table of distinct cells in any order."""
    subjects = draw(st.lists(IDS, min_size=1, max_size=5, unique=True))
    items = draw(
        st.lists(
            IDS.filter(lambda name: name.strip().lower() not in SPECIAL), min_size=1, max_size=5, unique=True
        )
    )
    cells = [(subject, item) for subject in subjects for item in items]
    rows = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=len(cells), unique=True))
    scores = draw(st.lists(SCORES, min_size=len(rows), max_size=len(rows)))
    return pd.DataFrame(rows, columns=["subject", "item"]).assign(score=scores)


def same(one: ResponseMatrix, other: ResponseMatrix) -> None:
    assert one.subjects == other.subjects
    assert one.items == other.items
    np.testing.assert_array_equal(one.dense(), other.dense())


def written(frame: pd.DataFrame, folder: Path, form: str) -> Path:
    path = folder / f"responses.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl":
        lines = [
            orjson.dumps({key: value for key, value in row.items() if value == value})
            for row in frame.to_dict("records")
        ]
        path.write_bytes(b"\n".join(lines))
    elif form == "tsv":
        frame.to_csv(path, index=False, sep="\t", decimal=",", encoding="utf-8-sig")
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("layout", ["long", "wide"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(frame=tables(), seed=st.integers(0, 2**32 - 1))
def test_order_and_format_change_nothing(
    folder: Path, layout: str, form: str, frame: pd.DataFrame, seed: int
) -> None:
    wanted = ResponseMatrix.from_frame(frame)
    assert wanted.subjects == tuple(sorted(set(frame["subject"])))
    assert wanted.items == tuple(sorted(set(frame["item"])))
    for subject, item, score in frame.itertuples(index=False):
        assert wanted.dense()[wanted.subjects.index(subject), wanted.items.index(item)] == score
    rng = np.random.default_rng(seed)
    if layout == "wide":
        frame = frame.pivot_table(index="subject", columns="item", values="score", sort=False).reset_index()
        columns = [0, *(1 + rng.permutation(frame.shape[1] - 1))]
    else:
        columns = list(rng.permutation(3))
    shuffled = frame.iloc[rng.permutation(len(frame)), columns].reset_index(drop=True)
    same(ResponseMatrix.from_frame(shuffled), wanted)
    same(read_responses(written(shuffled, folder, form)), wanted)


def test_a_sparse_table_in_any_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    index = rng.choice(3000 * 3000, 20_000, replace=False)
    frame = pd.DataFrame(
        {
            "subject": np.char.add("s", (index // 3000).astype(str)).astype(object),
            "item": np.char.add("i", (index % 3000).astype(str)).astype(object),
            "score": rng.integers(0, 2, len(index)),
        }
    )
    one = ResponseMatrix.from_frame(frame)
    frame.sample(frac=1, random_state=1).to_parquet(tmp_path / "r.parquet", row_group_size=999)
    other = read_responses(tmp_path / "r.parquet")
    assert one.is_sparse
    assert other.is_sparse
    assert other.scores.data.dtype == np.int8
    assert (one.subjects, one.items) == (other.subjects, other.items)
    for attribute in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(one.scores, attribute), getattr(other.scores, attribute))
