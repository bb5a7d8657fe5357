"""Sample logs of lm-eval: real ones, and what makes them hard."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irteval.errors import InputError
from irteval.responses.importing import import_logs
from irteval.responses.logs.lm_eval import _doc_hash
from irteval.responses.logs.records import hex_hash, hex_hashes
from tests.responses.logs.conftest import lm_eval_row

TOY = "2026-11-30T14-57-01.210891"


@pytest.fixture
def logs(shared) -> Path:
    return shared / "samples" / "lm-eval"


def test_scores_are_those_of_the_results_file(logs):
    folder = logs / "out" / "acme__toy-7b"
    results = json.loads((folder / f"results_{TOY}.json").read_text())["results"]
    for task, key in (
        ("toy_mc_a", "acc,none"),
        ("toy_mc_a", "acc_norm,none"),
        ("toy_gen", "exact_match,strict-match"),
        ("toy_gen", "exact_match,flexible-extract"),
        ("toy_rep", "exact_match,maj@4"),
        ("toy_partial", "digit_f1,none"),
    ):
        frame = import_logs(folder / f"samples_{task}_{TOY}.jsonl", metric=key).frame
        assert frame["score"].mean() == pytest.approx(results[task][key]), key
        assert set(frame["subject"]) == {"acme/toy-7b"}
        assert set(frame["benchmark"]) == {task}
        assert set(frame["harness"]) == {"lm-eval 0.4.13"}


def test_a_subset_that_was_not_in_order_keeps_its_contents(logs):
    """Its log pairs the id of one document with the content of another."""
    full = import_logs(logs / "out", metric="acc").frame
    by_content = full[full["benchmark"] == "toy_mc_a"].drop_duplicates("item").set_index("item")["native_id"]
    for name, agrees in (("sorted", True), ("unsorted", False)):
        subset = import_logs(logs / "out_subset" / f"acme__toy-samples-{name}", metric="acc").frame
        assert set(subset["item"]) <= set(by_content.index)
        assert (subset["native_id"].to_numpy() == by_content[subset["item"]].to_numpy()).all() == agrees


def test_few_shots_are_a_variant(logs):
    frame = import_logs(logs / "out").frame
    variants = frame.groupby("benchmark")["variant"].agg(lambda v: set(v.dropna()))
    assert variants["toy_fewshot"] == {"shots=2"}
    assert variants["toy_mc_a"] == set()


def test_scores_that_never_were(logs):
    result = import_logs(logs / "out_predict")
    assert result.summary["statuses"] == {"unscored": 40}
    assert result.summary["scored"] == 0


def test_lists_are_no_scores(logs):
    result = import_logs(logs / "out" / "acme__toy-7b" / f"samples_toy_ppl_{TOY}.jsonl")
    assert result.summary["statuses"] == {"non_scalar": 10}
    assert any("no metric with one share in [0, 1]" in note for note in result.notes)


def test_a_metric_that_some_documents_lack(logs):
    result = import_logs(
        logs / "out" / "acme__toy-7b" / f"samples_toy_partial_{TOY}.jsonl", metric="even_only_em"
    )
    assert len(result.frame) == 12
    assert "toy_partial: 8 records have no 'even_only_em' and were left out" in result.notes


def test_without_results_the_folder_names_the_subject(logs, tmp_path):
    name = f"samples_toy_mc_b_{TOY}.jsonl"
    folder = tmp_path / "org__some__model"
    folder.mkdir()
    (folder / name).write_bytes((logs / "out" / "acme__toy-7b" / name).read_bytes())
    assert set(import_logs(folder).frame["subject"]) == {"org/some__model"}


def test_our_hash_of_a_document_is_that_of_lm_eval(logs):
    path = logs / "out" / "acme__toy-7b" / f"samples_toy_gen_{TOY}.jsonl"
    for row in map(json.loads, path.read_text().splitlines()):
        assert _doc_hash(row["doc"]) == hex_hash(row["doc_hash"])


def test_documents_with_the_same_content_stay_apart(lm_eval_log):
    rows = [lm_eval_row(k, {"acc": float(k)}) for k in (0, 1)]
    rows[1]["doc_hash"] = rows[0]["doc_hash"]
    for order in (rows, rows[::-1]):
        result = import_logs(lm_eval_log("org/m", order))
        assert sorted(result.frame["item"].str.split("#").str[-1])[0] == "2"
        assert sorted(result.frame["score"]) == [0, 1]
        assert any("1 documents share their content" in note for note in result.notes)


def test_a_row_in_any_order_of_its_keys(lm_eval_log):
    rows = [dict(reversed(lm_eval_row(k, {"acc": float(k)}).items())) for k in range(2)]
    assert sorted(import_logs(lm_eval_log("org/m", rows)).frame["score"]) == [0, 1]


def test_the_place_of_a_row_is_its_line(lm_eval_log):
    log = lm_eval_log("org/m", [lm_eval_row(k, {"acc": 1.0}) for k in range(5)])
    lines = log.read_text().splitlines()
    log.write_text("\n".join([lines[0], "", *lines[1:3], "  ", *lines[3:]]))
    frame = import_logs(log).frame.sort_values("native_id")
    assert frame["line"].tolist() == [1, 3, 4, 6, 7]


def test_more_rows_than_a_batch(lm_eval_log):
    count = 20_000
    rows = (lm_eval_row(k, {"acc": float(k % 3 == 0)}) for k in range(count))
    frame = import_logs(lm_eval_log("org/m", rows)).frame
    assert len(frame) == frame["item"].nunique() == count
    ids = frame["native_id"].astype(int).to_numpy()
    assert (frame["score"].to_numpy() == (ids % 3 == 0)).all()
    assert (frame["line"].to_numpy() == ids + 1).all()


def test_nan_is_missing(lm_eval_log):
    frame = import_logs(
        lm_eval_log("org/m", [lm_eval_row(k, {"acc": v}) for k, v in enumerate((np.nan, 1.0))])
    ).frame
    assert frame["score"].isna().sum() == 1


def test_an_array_in_place_of_lines(lm_eval_log, tmp_path):
    rows = [lm_eval_row(k, {"acc": 1.0}) for k in range(3)]
    path = tmp_path / "org__m" / "samples_leaderboard_quiz_2024-06-01T00-00-00.000000.json"
    path.parent.mkdir()
    path.write_text(json.dumps(rows))
    frame = import_logs(path).frame
    assert set(frame["benchmark"]) == {"leaderboard_quiz"}
    lines = import_logs(lm_eval_log("org/m", rows)).frame
    assert set(frame["content_hash"]) == set(lines["content_hash"])


def test_versions_of_a_task_are_kept_apart(lm_eval_log):
    for version, date in ((1, "2026-01-02T03-04-05.000006"), (2, "2026-02-02T03-04-05.000006")):
        rows = [lm_eval_row(k, {"acc": 1.0}) for k in range(2)]
        log = lm_eval_log("org/m", rows, date=date, results={"versions": {"quiz": version}})
        log.write_text(log.read_text() + "\n" * version)
    result = import_logs(log.parent)
    assert set(result.frame["benchmark"]) == {"quiz@1", "quiz@2"}
    assert result.frame["item"].nunique() == 4
    assert any("versions 1, 2 are kept apart" in note for note in result.notes)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: [*lines[:2], lines[2][:80]], "not JSON"),
        (lambda lines: [lines[0], lines[1] + lines[2]], "not JSON"),
        (lambda lines: [*lines, b'{"doc_id": 1}'], "no sample of lm-eval"),
        (lambda lines: [*lines, b"[1]"], "a JSON value, wanted an object"),
        (lambda lines: [*lines, b"[" * 5000], "not JSON"),
        (lambda lines: [*lines, b'{"doc_id": "\xff"}'], "not JSON"),
    ],
    ids=["cut", "glued", "foreign", "array", "deep", "latin"],
)
def test_a_broken_line_is_named(lm_eval_log, damage, message):
    log = lm_eval_log("org/m", [lm_eval_row(k, {"acc": 1.0}) for k in range(3)])
    lines = damage(log.read_bytes().splitlines())
    log.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=message) as error:
        import_logs(log)
    assert (error.value.file, error.value.line) == (str(log), len(lines))


def test_the_table_feeds_a_response_matrix(logs):
    responses = import_logs(logs / "out").responses(benchmark="toy_mc_a")
    assert responses.shape == (3, 40)
    assert isinstance(import_logs(logs / "out").frame, pd.DataFrame)


def test_a_subset_with_other_few_shot_examples_is_reported(logs):
    sources = [logs / "out", logs / "out_subset" / "acme__toy-fewshot-subset"]
    told = "toy_fewshot: 3 items were put to acme/toy-fewshot-subset by another prompt than to most"
    assert told in import_logs(sources).notes
    assert not any("another prompt" in note for note in import_logs(logs / "out").notes)


def test_hashes_in_one_go_and_one_by_one_are_the_same():
    texts = [f"{k:016x}".ljust(64, "f") for k in range(1, 20)]
    for more in ([], ["0" * 64], ["short"], [None], ["a b" + "c" * 61], ["é" * 64]):
        column = [*texts, *more]
        assert hex_hashes(column).tolist() == [hex_hash(text) for text in column]
