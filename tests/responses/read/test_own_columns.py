"""Contents and versions that stand in the table of responses itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from irteval import read_responses

Writer = Callable[..., Path]


def test_contents_and_versions_are_kept_with_their_ids(write: Writer) -> None:
    head = "subject,item,score,content_hash,native_id,harness,seed\n"
    one = write(head + "a,x,1,h1,0,lm 1,3\na,y,0,h1,1,lm 1,3\n", "one.csv")
    two = write(head + "b,x,1,h1,7,lm 2,3\nb,y,1,h1,1,lm 2,3\n", "two.csv")
    matrix = read_responses([one, two])
    assert matrix.item_table is not None
    assert matrix.subject_table is not None
    assert matrix.item_table.to_dict("list") == {"content_hash": ["h1", "h1"]}  # x has two native ids
    assert matrix.subject_table.to_dict("index") == {"a": {"harness": "lm 1"}, "b": {"harness": "lm 2"}}


def test_a_column_that_a_table_lacks_is_left_aside(write: Writer) -> None:
    one = write("subject,item,score,content_hash\na,x,1,h1\n", "one.csv")
    two = write("subject,x\nb,1\n", "two.csv")
    assert read_responses([one, two]).item_table is None


def test_a_side_table_goes_before_the_own_columns(write: Writer, tmp_path: Path) -> None:
    table = pd.DataFrame({"item": ["x"], "content_hash": ["other"]})
    table.to_parquet(tmp_path / "items.parquet")
    path = write("subject,item,score,content_hash,native_id,benchmark\na,x,1,h,0,p\na,y,1,h,1,q\n")
    matrix = read_responses(path, benchmark="p")
    assert matrix.item_table is not None
    assert matrix.item_table.to_dict("index") == {"x": {"content_hash": "other", "native_id": "0"}}
