"""CSV in all its dialects, and its faults with their lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irteval import InputError, read_responses

Writer = Callable[..., Path]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_byte_order_mark_and_line_ends(
    write: Writer, delimiter: str, mark: bytes, end: str
) -> None:
    rows = [("subject", "item", "score"), ("a", "x", "1"), ("a", "y", "0"), ("b", "x", "0.5")]
    text = "".join(delimiter.join(row) + end for row in rows)
    matrix = read_responses(write(mark + text.encode()))
    assert matrix.subjects == ("a", "b")
    assert matrix.items == ("x", "y")
    np.testing.assert_array_equal(matrix.dense(), [[1, 0], [0.5, np.nan]])


def test_decimal_commas(write: Writer) -> None:
    semicolons = write("subject;item;score\na;x;0,25\na;y;1,0\n", "one.csv")
    commas = write('subject,item,score\na,x,"0,25"\na,y,"1,0"\n', "two.csv")
    for path in (semicolons, commas):
        assert read_responses(path).dense().tolist() == [[0.25, 1.0]]


def test_another_delimiter_within_names(write: Writer) -> None:
    matrix = read_responses(write('model,a;b;c,"d;e,f"\nm,1,0\n'))
    assert matrix.items == ("a;b;c", "d;e,f")


def test_long_texts_and_long_rows(write: Writer) -> None:
    """A prompt of 200,000 characters beside the score, and a header of two megabytes."""
    prompt = "word " * 40_000
    assert read_responses(write(f"subject,item,score,prompt\na,x,1,{prompt}\na,y,0,{prompt}\n")).cells == 2
    items = [f"a-rather-long-benchmark-name/question-{j}" for j in range(50_000)]
    matrix = read_responses(write(",".join(["model", *items]) + "\na" + ",1" * 50_000 + "\n"))
    assert matrix.shape == (1, 50_000)
    assert matrix.scores.all()


def test_a_tsv_and_blank_lines(write: Writer) -> None:
    path = write("\nsubject\titem\tscore\n\na\tx\t1\n\n\nb\tx\tbanana\n", "responses.tsv")
    with pytest.raises(InputError, match="'banana'") as refused:
        read_responses(path)
    assert refused.value.line == 7


def test_the_line_after_quoted_line_breaks(write: Writer) -> None:
    path = write('subject,item,score\n"a\nb\nc",x,1\nd,x,banana\n')
    with pytest.raises(InputError, match="'banana', wanted a share") as refused:
        read_responses(path)
    assert (refused.value.file, refused.value.line, refused.value.field) == (str(path), 5, "score")


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"", None, "the file is empty"),
        (b" \n\n", None, "the file is empty"),
        (b"subject,item,score\n", None, "no rows"),
        (b"subject,item,score\na,x,1\nb,x\n", 3, "2 values, wanted 3"),
        (b"subject,item,score\na,x,1,7\n", 2, "4 values, wanted 3"),
        (b"subject,item,item,score\na,x,y,1\n", 1, "there twice"),
        (b"model,q1,q2,q1\na,1,0,1\n", 1, "there twice"),
        (b"subject,item,score\na,x,1\n\x00\x01\xfe,x,1\n", 3, "binary content"),
        (b"subject,item,score\na,\xff\xfd,1\n", 2, "not UTF-8"),
        ("subject,item,score\na,x,1\n".encode("utf-16"), 1, "UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", 1, "Git LFS pointer"),
    ],
)
def test_a_malformed_file_is_refused(write: Writer, content: bytes, line: int | None, message: str) -> None:
    path = write(content)
    with pytest.raises(InputError, match=message) as refused:
        read_responses(path)
    assert refused.value.file == str(path)
    assert refused.value.line == line


def test_faults_far_into_a_file_are_at_their_line(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is checked in blocks, and letters of several bytes lie across their borders."""
    monkeypatch.setattr("irteval.responses.read.table.BLOCK", 7)
    rows = [f"é{n},ü{n},1" for n in range(40)]
    assert read_responses(write("\n".join(["subject,item,score", *rows]))).shape == (40, 40)
    for fault, message in ((b"\xff", "not UTF-8"), (b"\xc3", "not UTF-8"), (b"\x00", "binary content")):
        content = "\n".join(["subject,item,score", *rows[:30]]).encode() + fault + b"\nb,x,1\n"
        with pytest.raises(InputError, match=message) as refused:
            read_responses(write(content))
        assert refused.value.line == 31
