"""A command line that runs in this process, and a small bank to run it on."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.cli import invoke
from irteval.responses import ResponseMatrix

ITEMS = 60
BUDGET = 12


class Result(NamedTuple):
    """What a command left: its exit code and both streams."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; NaN and infinities are no JSON."""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} in JSON")

        return json.loads(self.out, parse_constant=refuse)


Command = Callable[..., Result]


@pytest.fixture
def irteval(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """A function of a command's words that returns its result; ``stdin`` is what it reads there."""

    def call(*words: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = invoke([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return call


class Files(NamedTuple):
    """A bank's folder, the responses it was fitted to, and those of new subjects."""

    bank: Path
    responses: Path
    new: Path


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, simulate_2pl: Callable[..., Any]) -> Files:
    folder = tmp_path_factory.mktemp("cli")
    scores = simulate_2pl(40, ITEMS, 5).scores
    items = [f"q{j:02d}" for j in range(ITEMS)]
    old = ResponseMatrix.from_dense(scores[:34], [f"old-{i:02d}" for i in range(34)], items)
    new = ResponseMatrix.from_dense(scores[34:], [f"new-{i}" for i in range(6)], items)
    old.to_frame().to_parquet(folder / "responses.parquet", index=False)
    new.to_frame().to_parquet(folder / "new.parquet", index=False)
    fit(old, name="simulated").save(folder / "bank")
    return Files(folder / "bank", folder / "responses.parquet", folder / "new.parquet")


@pytest.fixture(scope="session")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Responses to the items of another benchmark."""
    file = tmp_path_factory.mktemp("strangers") / "responses.csv"
    frame = pd.DataFrame(np.eye(3), columns=["x", "y", "z"], dtype=int)
    frame.insert(0, "subject", ["a", "b", "c"])
    frame.to_csv(file, index=False)
    return file


@pytest.fixture(scope="session")
def plain_bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank from plain numbers, with the items of the simulated one."""
    folder = tmp_path_factory.mktemp("plain") / "bank"
    rng = np.random.default_rng(0)
    items = [f"q{j:02d}" for j in range(ITEMS)]
    ItemBank.from_difficulty(items, rng.lognormal(0, 0.3, ITEMS), rng.normal(size=ITEMS)).save(folder)
    return folder


@pytest.fixture
def varied(tmp_path: Path) -> Path:
    """Responses without a constant item, which a fit without priors could not determine."""
    scores = np.random.default_rng(0).integers(0, 2, (80, 12))
    table = pd.DataFrame(scores, columns=[f"v{j}" for j in range(12)])
    table.insert(0, "subject", [f"s{i}" for i in range(80)])
    table.to_csv(tmp_path / "varied.csv", index=False)
    return tmp_path / "varied.csv"
