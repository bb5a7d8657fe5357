"""Documents read an element at a time give what a whole parse gives, whatever the window."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irteval.errors import InputError
from irteval.responses.logs import json_stream
from irteval.responses.logs.json_stream import array_elements, object_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def tiny_window(monkeypatch):
    monkeypatch.setattr(json_stream, "BLOCK", 7)


@given(values=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 1]))
def test_elements(tmp_path_factory, values, indent):
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(values, indent=indent, ensure_ascii=False), encoding="utf-8", errors="replace")
    assert [value for _, value in array_elements(path)] == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("tiny_window")
def test_a_small_window(tmp_path):
    document = {"a": [1, 23456789012, {"b": 'text\n with \\ and " é'}], "skip": [[]], "c": -1.5e-7, "d": []}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False))
    found = [(name, value) for name, _, value in object_members(path, {"a"}, {"skip"})]
    assert found == [("a", 1), ("a", 23456789012), ("a", document["a"][2]), ("c", -1.5e-7), ("d", [])]


def test_lines_are_counted(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[\n 1,\n\n {"a":\n 2},\n 3]')
    assert [line for line, _ in array_elements(path)] == [2, 4, 6]


@pytest.mark.parametrize(
    ("text", "line"),
    [("[1, 2", 1), ("[1,\n 2\n 3]", 3), ("[1] 2", 1), ("{}", 1), ("", 1), ("[1,]", 1), ("[\n\n tru]", 3)],
)
def test_broken_documents(tmp_path, text, line):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not JSON") as error:
        list(array_elements(path))
    assert error.value.line == line


@pytest.mark.parametrize("text", ["[" * 100_000, '["\\ud800"]', "[" + "9" * 5000 + "]"])
def test_documents_that_would_break_a_parser(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not JSON"):
        list(array_elements(path))
