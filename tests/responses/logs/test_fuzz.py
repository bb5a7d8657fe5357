"""Logs broken at random: a reader reads what is left or raises an `InputError`, and makes no score up."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irteval.errors import InputError
from irteval.responses.importing import import_logs
from tests.responses.logs.conftest import inspect_document, inspect_sample, lm_eval_row

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DATE = "2026-01-02T03-04-05.000006"

ODD = st.sampled_from(
    [None, True, -1, 0.5, 10**30, "", "banana", "C", [], {}, {"a": {"b": 1}}, [[1]], 2**31, 2**63, "\ud800"]
)


def lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def helm_entry(k: int) -> dict[str, object]:
    stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": k % 2}
    return {"instance_id": f"id{k}", "train_trial_index": 0, "stats": [stat]}


LOGS = {
    "lm-eval": (f"samples_quiz_{DATE}.jsonl", lines([lm_eval_row(k, {"acc": k % 2}) for k in range(4)])),
    "inspect": (
        "log.json",
        json.dumps(inspect_document([inspect_sample(f"q{k}", "CI"[k % 2]) for k in range(4)])).encode(),
    ),
    "helm": ("per_instance_stats.json", json.dumps([helm_entry(k) for k in range(4)]).encode()),
    "olmes": (
        "task-000-quiz-predictions.jsonl",
        lines([{"doc_id": k, "native_id": f"q{k}", "metrics": {"acc": k % 2}} for k in range(4)]),
    ),
    "every-eval-ever": (
        "x_samples.jsonl",
        lines(
            [
                {
                    "evaluation_id": "e",
                    "model_id": "m",
                    "evaluation_name": "quiz",
                    "sample_id": f"q{k}",
                    "evaluation": {"score": k % 2},
                }
                for k in range(4)
            ]
        ),
    ),
    "alpaca-eval": (
        "annotations.json",
        json.dumps(
            [{"instruction": f"do {k}", "generator_2": "m", "preference": 1 + k % 2} for k in range(4)]
        ).encode(),
    ),
    "resolved-list": ("m.json", json.dumps({"resolved_ids": ["a"], "unresolved_ids": ["b", "c"]}).encode()),
    "table": ("long.csv", b"subject,item,score\nm,a,1\nm,b,0\nm,c,1\n"),
}


def check(path: Path, format: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for metric in (None, "all"):
            try:
                frame = import_logs(path, format=format, metric=metric).frame
            except InputError as error:
                message = str(error)
            else:
                message = ""
                assert set(frame["score"].dropna()) <= {0.0, 0.5, 1.0}
            assert "\n" not in message


@pytest.mark.parametrize("format", LOGS)
@QUICK
@given(data=st.data())
def test_bytes_exchanged_cut_and_doubled(tmp_path, format, data):
    name, content = LOGS[format]
    broken = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(broken) - 1, 0)))
        kind = data.draw(st.sampled_from(["set", "cut", "drop", "double"]))
        if kind == "set" and broken:
            # A digit may become another digit: such a log is whole, and only its author knows.
            broken[at] = data.draw(st.integers(0, 255).filter(lambda byte: not 48 <= byte <= 57))
        elif kind == "cut":
            del broken[at:]
        elif kind == "drop":
            del broken[at : at + data.draw(st.integers(1, 40))]
        else:
            broken[at:at] = content[: data.draw(st.integers(0, len(content)))]
    path = tmp_path / name
    path.write_bytes(broken)
    try:
        check(path, format)
    except AssertionError:
        # A dropped byte can make another number of a number; but then it is a number still.
        assert pd.notna(import_logs(path, format=format).frame["score"]).all()


@pytest.mark.parametrize("format", [name for name in LOGS if name != "table"])
@QUICK
@given(data=st.data())
def test_values_exchanged(tmp_path, format, data):
    name, content = LOGS[format]
    by_line = name.endswith(".jsonl")
    documents = [json.loads(text) for text in content.splitlines()] if by_line else [json.loads(content)]
    where = documents
    key: int | str = data.draw(st.integers(0, len(documents) - 1))
    while isinstance(where[key], dict | list) and where[key] and data.draw(st.booleans()):
        where = where[key]
        key = data.draw(st.sampled_from(list(where) if isinstance(where, dict) else list(range(len(where)))))
    where[key] = data.draw(ODD)
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, documents)))
    check(path, format)
