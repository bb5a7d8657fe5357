"""Every response file of the shared data, held against the facts that its source states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from irteval import InputError, read_responses

# name: models, items, share missing in per cent, mean score, number of benchmarks (0: none stated)
FACTS = {
    "alpaca_eval2": (58, 805, 0.0, 0.128, 0),
    "arc_challenge_218": (212, 1172, 0.0, 0.523, 1),
    "bridge_sparse": (149, 1019, 53.3, 0.467, 5),
    "chembench": (22, 2854, 0.0, 0.454, 0),
    "glue_anchor": (87, 7020, 0.0, 0.570, 4),
    "gso": (15, 102, 0.0, 0.125, 0),
    "helm_lite": (83, 3504, 0.0, 0.645, 5),
    "livecodebench": (49, 2113, 51.3, 0.403, 4),
    "mmlu_pro29": (29, 12032, 0.5, 0.402, 0),
    "nlu29": (90, 82756, 0.0, 0.487, 29),
    "openllm_v1_metabench": (5096, 1075, 25.1, 0.493, 5),
    "openllm_v1_tiny": (4906, 493, 33.7, 0.601, 5),
    "openllm_v2": (343, 2191, 0.1, 0.239, 3),
    "openllm_v2_full": (69, 20414, 29.6, 0.456, 5),
    "psn12": (12, 41871, 0.0, 0.663, 11),
    "swebench_pro": (14, 730, 0.0, 0.258, 0),
    "swebench_verified": (107, 500, 0.0, 0.473, 0),
    "terminalbench": (83, 88, 0.0, 0.361, 0),
    "zeroeval": (56, 2840, 26.4, 0.687, 3),
}
OTHERS = {"enem_prompts", "human_classic", "multiprompt_accuracy", "wildbench_judges"}

# name: models, items, share missing in per cent, mean score; where ordered, the highest category
HUMAN = {
    "lsat6": (1000, 5, 0.0, 0.764, 1),
    "lsat7": (1000, 5, 0.0, 0.741, 1),
    "deayala": (19601, 5, 0.0, 0.582, 1),
    "science_grm": (392, 4, 0.0, 1.917, 3),
    "sat12": (600, 32, 0.4, 0.571, 1),
    "verbal_aggression": (316, 24, 0.0, 0.678, 2),
    "bfi25": (2800, 25, 0.7, 2.769, 5),
    "spisa": (1075, 45, 0.0, 0.594, 1),
}


def test_no_data_set_is_forgotten(shared: Path) -> None:
    assert {path.name for path in (shared / "data").iterdir() if path.is_dir()} == FACTS.keys() | OTHERS


@pytest.mark.parametrize("name", FACTS)
def test_a_data_set_is_what_its_source_states(shared: Path, name: str) -> None:
    models, items, missing, mean, benchmarks = FACTS[name]
    path = shared / "data" / name / "responses.parquet"
    matrix = read_responses(path)
    assert matrix.shape == (models, items)
    assert matrix.cells == pq.read_metadata(path).num_rows
    assert 100 * (1 - matrix.density) == pytest.approx(missing, abs=0.05)
    counts = matrix.item_counts()
    assert (matrix.item_means() * counts).sum() / counts.sum() == pytest.approx(mean, abs=0.0005)
    assert matrix.subjects == tuple(sorted(matrix.subjects))
    assert len(set(matrix.benchmarks or ())) == benchmarks
    assert (matrix.scores.dtype == np.int8) == (
        name not in {"alpaca_eval2", "livecodebench", "terminalbench"}
    )
    assert matrix.item_table is not None
    assert matrix.item_table.index.tolist() == list(matrix.items)
    assert any("read model_id as subject and item_id as item" in note for note in matrix.notes)


@pytest.mark.parametrize("name", HUMAN)
def test_human_tests_are_what_their_source_states(shared: Path, name: str) -> None:
    people, items, missing, mean, top = HUMAN[name]
    path = shared / "data" / "human_classic" / f"{name}.parquet"
    matrix = read_responses(path, scale="ordinal" if top > 1 else "share")
    assert matrix.shape == (people, items)
    assert matrix.categories == (None if top == 1 else top + 1)
    assert 100 * (1 - matrix.density) == pytest.approx(missing, abs=0.05)
    assert top * np.nanmean(matrix.dense()) == pytest.approx(mean, abs=0.0005)


def test_one_benchmark_of_many(shared: Path) -> None:
    matrix = read_responses(shared / "data" / "helm_lite" / "responses.parquet", benchmark="gsm")
    assert matrix.shape == (83, 1000)
    assert matrix.subject_means()[matrix.subjects.index("openai_gpt-4o-2024-05-13")] == pytest.approx(0.905)
    assert matrix.subject_table is not None
    assert matrix.subject_table["list_order"].notna().all()


def test_the_subjects_of_a_benchmark_are_those_that_took_it(shared: Path) -> None:
    path = shared / "data" / "openllm_v1_metabench" / "responses.parquet"
    assert read_responses(path, benchmark="arc").shape == (3804, 245)


def test_repeated_trials(shared: Path) -> None:
    folder = shared / "data" / "terminalbench"
    matrix = read_responses(folder / "responses.parquet")
    assert isinstance(matrix.trials, np.ndarray)
    assert (matrix.trials == 5).mean() == pytest.approx(0.97, abs=0.005)
    successes = matrix.dense() * matrix.trials
    np.testing.assert_allclose(successes, np.rint(successes), atol=1e-12)
    binary = read_responses(folder / "responses_binary_112.parquet")
    assert binary.shape == (112, 89)
    assert binary.scores.mean() == pytest.approx(0.428, abs=0.0005)


def test_two_judges_need_a_variant(shared: Path) -> None:
    path = shared / "data" / "wildbench_judges" / "responses.parquet"
    with pytest.raises(InputError, match="--scale ordinal"):
        read_responses(path)
    with pytest.raises(InputError, match=r"the rows differ in judge: .*--variant judge"):
        read_responses(path, scale="ordinal")
    matrix = read_responses(path, scale="ordinal", variant="judge")
    assert matrix.shape == (15, 1024)
    assert matrix.cells == 21472 - 6133, "6,133 answers have two ratings"
    assert "a score is the mean over judge (2)" in matrix.notes


def test_runs_need_a_variant(shared: Path) -> None:
    path = shared / "data" / "enem_prompts" / "responses.parquet"
    with pytest.raises(InputError, match=r"have score 0 here and 1 in line .* differ in run_id"):
        read_responses(path)
    assert read_responses(path, variant="run_id").shape == (5, 716)


def test_prompts_are_no_items(shared: Path) -> None:
    with pytest.raises(InputError, match="no column for the item among model_id, prompt_id") as refused:
        read_responses(shared / "data" / "multiprompt_accuracy" / "responses.parquet")
    assert refused.value.field == "item"


def test_a_table_of_every_metric_and_filter_is_refused(shared: Path) -> None:
    with pytest.raises(InputError, match=r"the rows differ in .*metric.*keep one kind of row") as refused:
        read_responses(shared / "samples" / "responses_long.parquet")
    assert refused.value.line is not None
