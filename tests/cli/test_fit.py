"""``irteval fit``."""

from __future__ import annotations

from pathlib import Path

import pytest

from irteval.bank import ItemBank
from tests.cli.conftest import ITEMS, Command, Files


def test_a_fit_reports_what_it_did(irteval: Command, files: Files, tmp_path: Path) -> None:
    result = irteval("fit", files.responses, "--out", tmp_path / "digits", "--json")
    assert result.code == 0, result.err
    document = result.document
    assert document["command"] == "fit"
    assert document["bank"] == str(tmp_path / "digits")
    assert (document["response_model"], document["dims"]) == ("2pl", 1)
    assert (document["subjects"], document["items"], document["cells"]) == (34, ITEMS, 34 * ITEMS)
    assert document["converged"] is True
    assert {"iterations", "seconds", "warnings"} <= document.keys()
    bank = ItemBank.load(tmp_path / "digits")
    assert bank.info.name == "digits"
    assert bank.knows_subject("old-00")


def test_the_response_model_and_the_priors_are_handed_on(
    irteval: Command, varied: Path, tmp_path: Path
) -> None:
    for name, words in (("a", ["--priors", "off"]), ("b", ["--priors", "on"])):
        out = tmp_path / name
        assert irteval("fit", varied, "--out", out, "--response-model", "1pl", *words).code == 0
    free, shrunk = (ItemBank.load(tmp_path / name) for name in "ab")
    assert free.info.response_model == "1pl"
    assert abs(free.parameters.intercept).max() > abs(shrunk.parameters.intercept).max()


def test_constant_items_need_priors(irteval: Command, files: Files, tmp_path: Path) -> None:
    result = irteval("fit", files.responses, "--out", tmp_path / "bank", "--priors", "off")
    assert result.code == 2
    assert "priors" in result.err
    assert not (tmp_path / "bank").exists()


def test_an_existing_bank_stays_unless_told(
    irteval: Command, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "bank"
    assert irteval("fit", files.responses, "--out", out).code == 0
    with monkeypatch.context() as without_fit:
        without_fit.setattr("irteval.calibrate.fit.fit", None)  # refused before any work
        result = irteval("fit", files.responses, "--out", out)
    assert result.code == 2
    assert "exists already" in result.err
    assert irteval("fit", files.responses, "--out", out, "--overwrite", "--name", "again").code == 0
    assert ItemBank.load(out).info.name == "again"


def test_a_real_benchmark_from_table_to_score(irteval: Command, shared: Path, tmp_path: Path) -> None:
    table = shared / "data" / "swebench_verified" / "responses.parquet"
    bank = tmp_path / "bank"
    fitted = irteval("fit", table, "--out", bank, "--json")
    assert fitted.code == 0, fitted.err
    assert (fitted.document["subjects"], fitted.document["items"]) == (107, 500)
    listed = irteval("score", bank, table, "--json").document["estimates"]
    some = [word for estimate in listed[::20] for word in ("--subject", estimate["subject"])]
    words = ("--driver", "replay", "--responses", table, "--target", "0.04", *some, "--json")
    ran = irteval("run", bank, *words)
    assert ran.code == 0, ran.err
    estimates = ran.document["estimates"]
    assert len(listed) == 107
    assert len(estimates) == 6
    assert all(high - low <= 0.08 for low, high in (estimate["interval"] for estimate in estimates))
    assert max(estimate["items_asked"] for estimate in estimates) < 500


def test_several_tables_and_one_benchmark(irteval: Command, tmp_path: Path) -> None:
    for part in range(2):
        lines = ["subject,item,score,benchmark"]
        for i in range(30):
            for j in range(12):
                lines.append(f"s{i},b{part}-{j},{int((7 * i + 5 * j + i * j) % 11 < 2 + i // 4)},bench{part}")
        (tmp_path / f"{part}.csv").write_text("\n".join(lines))
    tables = (tmp_path / "0.csv", tmp_path / "1.csv")
    both = irteval("fit", *tables, "--out", tmp_path / "both", "--json").document
    assert (both["subjects"], both["items"]) == (30, 24)
    one = irteval("fit", *tables, "--out", tmp_path / "one", "--benchmark", "bench1", "--json").document
    assert one["items"] == 12
    assert ItemBank.load(tmp_path / "one").info.benchmarks == ["bench1"]
