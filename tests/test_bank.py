"""The item bank: made from numbers, saved, loaded unchanged, and refused in one line where not whole."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from irteval.bank import FitReport, ItemBank, ScoreModel, SourceScores
from irteval.errors import BankMismatchError, InputError
from irteval.irt.parameters import ItemParameters
from irteval.responses import ResponseMatrix

ITEMS = ("007", "7", "NA", "1e5", "ä b", "None")
SUBJECTS = ("gpt-x", "llama-y", "7")


def parameters(dims: int = 1, response_model: str = "2pl") -> ItemParameters:
    rng = np.random.default_rng(dims)
    root = rng.normal(size=(len(ITEMS), dims + 1, dims + 1))
    return ItemParameters(
        slope=rng.normal(1, 0.5, (len(ITEMS), dims)),
        intercept=rng.normal(size=len(ITEMS)),
        covariance=root @ root.transpose(0, 2, 1),
        response_model=response_model,
        population_mean=np.zeros(dims),
        population_covariance=np.eye(dims),
    )


def score_model(fits: list[str]) -> ScoreModel:
    scores = [0.2, 0.5, 0.9]
    return ScoreModel(
        fits=fits,
        source={"arc": SourceScores(scores=scores, reliability=0.9, constant_share=1 / 6)},
        source_mean=np.linspace(0.1, 0.9, len(ITEMS)).tolist(),
        difficulty_bin=[0, 1, 2, 3, 4, 4],
        beyond=[0.1, -0.1, 0.0, 0.3, 1 / 3, 0.0],
    )


@pytest.fixture
def bank() -> ItemBank:
    return ItemBank.build(
        ITEMS,
        parameters(),
        benchmarks=["arc"] * len(ITEMS),
        item_table=pd.DataFrame(
            {"mean": np.linspace(0, 1, 6), "cost": [1.0, np.nan, 2, 3, 4, 5], "times_answered": range(6)}
        ),
        further={"k2": parameters(2), "k4": parameters(4)},
        score_model=score_model(["k2", "k4"]),
        subjects=SUBJECTS,
        name="arc-challenge",
        dates={"made": "2026-01-02", "subjects_to": "2025-12-31"},
    )


@pytest.fixture
def saved(bank: ItemBank, tmp_path: Path) -> Path:
    bank.save(tmp_path / "bank")
    return tmp_path / "bank"


def assert_same(one: ItemBank, other: ItemBank) -> None:
    assert (one.items, one.info, one.score_model) == (other.items, other.info, other.score_model)
    assert one.benchmarks == other.benchmarks
    pd.testing.assert_frame_equal(one.item_table, other.item_table)
    assert list(one.fits) == list(other.fits)
    for name, fit in one.fits.items():
        for key in ItemParameters.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(fit, key), getattr(other.fits[name], key))


def test_saved_bank_comes_back_unchanged(bank: ItemBank, saved: Path) -> None:
    assert_same(ItemBank.load(saved), bank)
    assert sorted(os.listdir(saved)) == [
        "README.md",
        "bank.json",
        "items.parquet",
        "parameters.safetensors",
        "score_model.json",
    ]


def test_folder_has_the_documented_content(saved: Path) -> None:
    info = json.loads((saved / "bank.json").read_text())
    assert info["format_version"] == 1
    assert info["primary"] == "k1"
    assert info["subjects"]["count"] == 3
    assert info["dates"]["made"] == "2026-01-02"
    tensors = load_file(saved / "parameters.safetensors")
    assert {"slope", "intercept", "covariance", "k2.slope", "k4.covariance", "score.beyond"} <= set(tensors)
    assert tensors["k4.slope"].shape == (6, 4)
    assert all(array.dtype == np.float64 for array in tensors.values())
    score = json.loads((saved / "score_model.json").read_text())
    assert score == {
        "fits": ["k2", "k4"],
        "source": {"arc": {"scores": [0.2, 0.5, 0.9], "reliability": 0.9, "constant_share": 1 / 6}},
    }
    items = pd.read_parquet(saved / "items.parquet")
    assert list(items["item"]) == list(ITEMS)
    assert list(items.columns) == ["item", "benchmark", "mean", "cost", "times_answered"]


def test_no_subject_is_named_but_each_is_recognised(bank: ItemBank, saved: Path) -> None:
    everything = b"".join(file.read_bytes() for file in saved.iterdir())
    assert b"gpt-x" not in everything
    for one in (bank, ItemBank.load(saved)):
        assert all(one.knows_subject(subject) for subject in SUBJECTS)
        assert not one.knows_subject("gpt-y")


def test_saving_twice_gives_the_same_bytes(bank: ItemBank, saved: Path, tmp_path: Path) -> None:
    bank.save(tmp_path / "again" / "bank")
    ItemBank.load(saved).save(tmp_path / "loaded" / "bank")
    for name in os.listdir(saved):
        content = (saved / name).read_bytes()
        assert (tmp_path / "again" / "bank" / name).read_bytes() == content
        assert (tmp_path / "loaded" / "bank" / name).read_bytes() == content


def test_an_existing_bank_is_replaced_on_request_only(bank: ItemBank, saved: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        bank.save(saved)
    with pytest.raises(InputError, match="exists already"):
        ItemBank.check_place(saved)
    ItemBank.check_place(saved, overwrite=True)
    smaller = ItemBank.from_difficulty(["a"], [1.0], [0.0])
    smaller.save(saved, overwrite=True)
    assert ItemBank.load(saved).items == ("a",)


def test_full_disk_leaves_the_old_bank(bank: ItemBank, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    smaller = ItemBank.from_difficulty(["a"], [1.0], [0.0])
    with pytest.raises(OSError, match="No space left"):
        smaller.save(saved, overwrite=True)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before
    assert os.listdir(saved.parent) == ["bank"]
    assert_same(ItemBank.load(saved), bank)


@pytest.mark.parametrize("name", ["bank.json", "parameters.safetensors", "items.parquet", "score_model.json"])
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_truncated_file_is_named(saved: Path, name: str, share: float) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: int(share * len(content))])
    assert_refused(saved, name)


@pytest.mark.parametrize("name", ["bank.json", "parameters.safetensors", "items.parquet", "score_model.json"])
def test_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert_refused(saved, name)


def test_folder_that_is_no_bank(tmp_path: Path) -> None:
    assert_refused(tmp_path, "bank.json")
    assert_refused(tmp_path / "nowhere", "bank.json")


def _edit_json(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        document = json.loads(file.read_text())
        change(document)
        file.write_text(json.dumps(document))

    return edit


def _edit_tensors(change: Callable[[dict[str, np.ndarray]], object]) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        tensors = load_file(file)
        change(tensors)
        save_file(tensors, file)

    return edit


def _edit_table(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], None]:
    return lambda file: change(pd.read_parquet(file)).to_parquet(file)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("bank.json", _edit_json(lambda d: d.update(format_version=99)), "version 99"),
        ("bank.json", _edit_json(lambda d: d.pop("format_version")), "version None"),
        ("bank.json", _edit_json(lambda d: d.pop("dims")), "dims"),
        ("bank.json", _edit_json(lambda d: d.update(content_hash="0" * 64)), "hash"),
        ("bank.json", lambda file: file.write_text("[1]"), "version None"),
        ("parameters.safetensors", _edit_tensors(lambda t: t.update(slope=t["slope"] * 1.0001)), "changed"),
        ("parameters.safetensors", _edit_tensors(lambda t: t.update(slope=t["slope"][:5])), "shape"),
        (
            "parameters.safetensors",
            _edit_tensors(lambda t: t.update(slope=t["slope"].astype("f4"))),
            "float64",
        ),
        ("parameters.safetensors", _edit_tensors(lambda t: t.pop("intercept")), "intercept"),
        ("parameters.safetensors", _edit_tensors(lambda t: t.pop("k2.population_mean")), "changed"),
        ("parameters.safetensors", _edit_tensors(lambda t: t.update(new=t["slope"])), "new"),
        ("parameters.safetensors", lambda file: file.write_bytes(b"\x80\x04K\x01."), "damaged"),
        ("items.parquet", _edit_table(lambda t: t.iloc[::-1]), "changed"),
        ("items.parquet", _edit_table(lambda t: t.rename(columns={"item": "id"})), "no such column"),
        ("score_model.json", _edit_json(lambda d: d.update(fits=["k2"])), "changed"),
        ("score_model.json", _edit_json(lambda d: d.update(fits="k2")), "list"),
        ("score_model.json", lambda file: file.write_text("[1]"), "object"),
    ],
)
def test_edited_file_is_named(saved: Path, name: str, edit: Callable[[Path], None], message: str) -> None:
    edit(saved / name)
    assert_refused(saved, name, message)


def test_rows_that_do_not_fit_together_are_named(saved: Path) -> None:
    _edit_table(lambda table: table.iloc[:5])(saved / "items.parquet")
    assert_refused(saved, "parameters.safetensors", "6 rows, items.parquet has 5")


def assert_refused(folder: Path, name: str, message: str = "") -> None:
    with pytest.raises(InputError) as caught:
        ItemBank.load(folder)
    assert caught.value.file == str(folder / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_parts_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InputError, match="5 rows"):
        ItemBank.build(ITEMS, parameters(), benchmarks=["arc"] * 5)
    with pytest.raises(InputError, match="twice"):
        ItemBank.build(("a", *ITEMS[:4], "a"), parameters())
    with pytest.raises(InputError, match="k1"):
        ItemBank.build(ITEMS, parameters(), further={"k1": parameters(1)})
    model = score_model(["k1"]).model_copy(update={"difficulty_bin": [1]})
    with pytest.raises(InputError, match="difficulty_bin"):
        ItemBank.build(ITEMS, parameters(), score_model=model)
    with pytest.raises(InputError, match="at least one item"):
        ItemBank.from_difficulty([], [], [])
    with pytest.raises(InputError, match="not finite"):
        ItemBank.from_difficulty(["a"], [1.0], [np.inf])


def test_published_numbers_in_other_metrics() -> None:
    a, b = np.array([1.2, -0.5]), np.array([0.3, 2.0])
    normal = ItemBank.from_difficulty(["x", "y"], a, b, scaling=1.702)
    logit = ItemBank.from_parameters(
        ["x", "y"], 1.702 * a, -1.702 * a * b, covariance=np.stack([np.eye(2)] * 2)
    )
    np.testing.assert_allclose(normal.parameters.slope, logit.parameters.slope)
    np.testing.assert_allclose(normal.parameters.intercept, logit.parameters.intercept)
    np.testing.assert_allclose(normal.parameters.difficulty, b)
    scaled = ItemBank.from_parameters(["x"], [1.0], [0.0], covariance=np.eye(2)[None], scaling=2.0)
    np.testing.assert_allclose(scaled.parameters.covariance, 4 * np.eye(2)[None])
    guessing = ItemBank.from_difficulty(["x", "y"], a, b, lower=[0.25, 0.2])
    assert guessing.parameters.response_model == "3pl"
    assert not normal.knows_subject("anyone")


def test_bank_of_plain_numbers_is_saved(tmp_path: Path) -> None:
    bank = ItemBank.from_difficulty(["x", "y"], [1.0, 2.0], [0.0, 1.0], lower=[0.25, 0.2], upper=[1.0, 0.9])
    bank.save(tmp_path / "bank")
    assert_same(ItemBank.load(tmp_path / "bank"), bank)
    assert ItemBank.load(tmp_path / "bank").score_model is None


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=8, unique=True))
def test_any_text_is_an_id(tmp_path_factory: pytest.TempPathFactory, items: list[str]) -> None:
    folder = tmp_path_factory.mktemp("ids") / "bank"
    ones = np.ones(len(items))
    bank = ItemBank.build(items, ItemParameters(slope=ones, intercept=ones), subjects=items, benchmarks=items)
    bank.save(folder)
    assert_same(ItemBank.load(folder), bank)


def test_positions_of_items(bank: ItemBank) -> None:
    np.testing.assert_array_equal(bank.index(["NA", "007"]), [2, 0])
    with pytest.raises(BankMismatchError, match="no item '0007'"):
        bank.index(["0007"])


def test_responses_are_brought_into_the_banks_order(bank: ItemBank) -> None:
    responses = ResponseMatrix.from_dense([[1, 0, 1]], items=["7", "stranger", "007"])
    matched = bank.match(responses)
    assert matched.items == bank.items
    np.testing.assert_array_equal(matched.dense()[0, :2], [1, 1])
    assert matched.cells == 2
    assert matched.notes == ("1 of 3 items are not in bank 'arc-challenge' and are left out",)
    assert bank.match(matched).notes == matched.notes


def test_responses_of_another_benchmark_are_refused(bank: ItemBank) -> None:
    strangers = ResponseMatrix.from_dense([[1, 0, 1]], items=["x", "y", "NA"])
    with pytest.raises(BankMismatchError, match="1 of the 3 items") as caught:
        bank.match(strangers)
    assert caught.value.exit_code == 4
    same_ids = ResponseMatrix.from_dense([[1, 0]], items=["7", "NA"], benchmarks=["gsm8k", "gsm8k"])
    with pytest.raises(BankMismatchError, match=r"'arc'.*'gsm8k'"):
        bank.match(same_ids)
    unnamed = ItemBank.from_difficulty(["7", "NA"], [1, 1], [0, 0])
    assert unnamed.match(same_ids).cells == 2


def test_card_says_what_a_person_needs(bank: ItemBank, tmp_path: Path) -> None:
    bank.save(tmp_path / "bank", card_notes="## Error\n\nMeasured on subjects left out: 2.1 points.")
    card = (tmp_path / "bank" / "README.md").read_text()
    for wanted in (
        "# arc-challenge",
        "`arc` (6 items)",
        "3; the bank keeps",
        "made 2026-01-02",
        "2PL, one dimension; further fits k2, k4",
        "0.200 to 0.900",
        "reliability 0.900",
        bank.info.content_hash,
        "irteval run bank",
    ):
        assert wanted in card
    assert card.endswith("Measured on subjects left out: 2.1 points.\n")


def test_fit_report_is_plain_json(bank: ItemBank) -> None:
    report = FitReport("2pl", 1, 3, 6, 18, True, 12, 0.5, ("few subjects",))
    assert replace(bank, fit_report=report).fit_report == report
    assert json.loads(json.dumps(report.to_json()))["warnings"] == ["few subjects"]
