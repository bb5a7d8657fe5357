"""``irteval demo``: that the command hands on and prints; the demo itself has its own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command


class Told:
    """Stands in for the demo's result."""

    def to_json(self) -> dict[str, Any]:
        return {"estimates": [], "seconds": 1.0}

    def table(self) -> str:
        return "the table"

    def summary(self) -> str:
        return "the summary"


def test_the_demo_is_run_and_shown(irteval: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = []

    def run_demo(out: Path, seed: int, progress: Any) -> Told:
        calls.append((out, seed))
        progress("training")
        return Told()

    monkeypatch.setattr("irteval.demo.run_demo", run_demo)
    result = irteval("demo", "--out", tmp_path, "--seed", 3)
    assert result.code == 0
    assert result.out == "the table\nthe summary\n"
    assert result.err == "training\n"
    assert irteval("demo", "--json", "--quiet").document["command"] == "demo"
    assert calls == [(tmp_path, 3), (Path("irteval-demo"), 0)]
