"""Small logs in the forms that harnesses write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

DATE = "2026-01-02T03-04-05.000006"


def lm_eval_row(doc_id: int, metrics: Mapping[str, Any], filter: str | None = "none") -> dict[str, Any]:
    """A line of lm-eval: new form with a filter, old form (no hashes, no list of metrics) without."""
    doc = {"question": f"question {doc_id}", "answer": str(doc_id)}
    row: dict[str, Any] = {
        "doc_id": doc_id,
        "doc": doc,
        "target": str(doc_id),
        "arguments": {},
        "resps": [["x"]],
        "filtered_resps": ["x"],
    }
    if filter is not None:
        row |= {
            "filter": filter,
            "metrics": list(metrics),
            "doc_hash": f"{doc_id + 1:016x}".ljust(64, "0"),
            "prompt_hash": f"{doc_id + 1:016x}".ljust(64, "0"),
        }
    return row | metrics


@pytest.fixture
def lm_eval_log(tmp_path: Path) -> Callable[..., Path]:
    """A function of (subject, rows) that writes a sample log of lm-eval; ``results`` go beside it."""

    def write(
        subject: str,
        rows: Iterable[Mapping[str, Any]],
        *,
        task: str = "quiz",
        date: str = DATE,
        results: Mapping[str, Any] | None = None,
    ) -> Path:
        folder = tmp_path / "logs" / subject.replace("/", "__")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"samples_{task}_{date}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if results is not None:
            (folder / f"results_{date}.json").write_text(json.dumps(results))
        return path

    return write


def inspect_document(samples: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """A log of Inspect as one document."""
    about = {"task": "quiz", "model": "mock/one", "run_id": "run", "created": "2026-01-02T03:04:05+00:00"}
    return {"version": 2, "status": "success", "eval": about | spec, "samples": samples}


def inspect_sample(name: str | int, value: Any, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """A sample with one scorer, ``match``; without a score where the value is ``...``."""
    scores = {} if value is ... else {"match": {"value": value, "answer": "x"}}
    return {"id": name, "epoch": epoch, "input": f"question {name}", "target": "x", "scores": scores} | more
