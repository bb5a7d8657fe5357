"""The lm-eval driver against the real lm-eval and a real language model: a contract test."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("lm_eval")
pytest.importorskip("transformers")

import lm_eval

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.cli import invoke
from irteval.drivers.live import run_live
from irteval.drivers.lm_eval import HASH_DIGITS, LmEvalHarness, LmEvalTasks, TaskOptions
from irteval.drivers.lm_eval_fewshot import DrawnExamples, replay_draws
from irteval.errors import BankMismatchError, InputError
from irteval.journal import RunFolder
from irteval.responses.importing import import_logs
from irteval.session import Session

TASKS = ["toy_mc_a", "toy_mc_b", "toy_fewshot", "toy_gen", "toy_partial", "toy_ppl"]
SCORED = TASKS[:5]


@pytest.fixture(scope="session")
def toy_tasks(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task files, whose data are found from the working directory, as a folder of absolute paths."""
    folder = tmp_path_factory.mktemp("tasks")
    for file in (shared / "samples" / "lm-eval" / "tasks").iterdir():
        if file.suffix == ".yaml":
            text = file.read_text().replace("./", f"{file.parent}/")
            (folder / file.name).write_text(text)
        elif file.suffix == ".py":
            shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="session")
def model(shared: Path) -> Any:
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(shared / "samples" / "tinygpt2"), device="cpu", batch_size=4)


@pytest.fixture(scope="session")
def plain(toy_tasks: Path, model: Any) -> dict[str, Any]:
    """What lm-eval itself says of every document."""
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(toy_tasks), include_defaults=False)
    return lm_eval.simple_evaluate(model, tasks=TASKS, task_manager=manager, bootstrap_iters=0)


@pytest.fixture(scope="session")
def bank(plain: dict[str, Any]) -> ItemBank:
    """Every document of every task, with drawn parameters and the prompts of the full run."""
    items, benchmarks, prompts = [], [], []
    for task in TASKS:
        for row in plain["samples"][task]:
            item = f"{task}/{row['doc_hash'][:HASH_DIGITS]}"
            if item not in items:
                items.append(item)
                benchmarks.append(task)
                prompts.append(row["prompt_hash"][:HASH_DIGITS])
    return made(items, benchmarks, prompts)


def made(items: list[str], benchmarks: list[str], prompts: list[str] | None = None) -> ItemBank:
    rng = np.random.default_rng(0)
    numbers = ItemBank.from_difficulty(items, np.ones(len(items)), rng.normal(size=len(items)))
    table = None if prompts is None else pd.DataFrame({"prompt_hash": prompts})
    return ItemBank.build(items, numbers.parameters, benchmarks=benchmarks, item_table=table)


def part(bank: ItemBank, *tasks: str) -> ItemBank:
    keep = [k for k, task in enumerate(bank.benchmarks) if task in tasks]
    table = bank.item_table.iloc[keep]
    return made(list(table["item"]), list(table["benchmark"]), list(table["prompt_hash"]))


@pytest.fixture(scope="session")
def run_all(bank: ItemBank, toy_tasks: Path, model: Any) -> LmEvalHarness:
    """Every document, asked in batches that the session chose."""
    harness = LmEvalHarness(LmEvalTasks(bank, TASKS, include_path=toy_tasks), model)
    session = Session(bank, criterion="random", batch=17)
    run_live(session, harness)
    assert list(session.answers) != list(bank.items)
    assert len(session.answers) == len(bank)
    harness.session = session  # type: ignore[attr-defined]
    return harness


def test_all_items_in_any_order_give_what_the_plain_command_gives(plain, bank, run_all) -> None:
    from irteval.drivers.lm_eval_output import _samples

    ours = _samples(run_all)
    assert ours.keys() == plain["samples"].keys()
    values = 0
    for task, theirs in plain["samples"].items():
        by_place = {(row["doc_id"], row["filter"]): row for row in theirs}
        assert len(ours[task]) == len(by_place)
        for row in ours[task]:
            expected = by_place[row["doc_id"], row["filter"]]
            assert row.keys() == expected.keys()
            for key in ("prompt_hash", "doc_hash", "target_hash", "metrics", "doc"):
                assert row[key] == expected[key], key
            for metric in row["metrics"]:
                # Log-likelihoods depend in the last digits on what else is in a batch; scores do not.
                assert row[metric] == (
                    pytest.approx(expected[metric], rel=1e-4) if task == "toy_ppl" else expected[metric]
                )
                values += 1
    assert values > 250


def test_a_whole_task_has_the_plain_metrics_and_the_estimate_beside_them(
    plain, bank, run_all, tmp_path
) -> None:
    from irteval.drivers.lm_eval_output import write_lm_eval_files

    estimate = run_all.session.estimate()
    files = write_lm_eval_files(run_all, estimate, tmp_path)
    document = json.loads(next(file for file in files if file.name.startswith("results_")).read_text())
    for task in SCORED:
        for name, value in plain["results"][task].items():
            if "," in name and "stderr" not in name:
                assert document["results"][task][name] == pytest.approx(value, rel=1e-4), name
    acc = document["results"]["toy_mc_a"]
    assert acc["acc_norm,irt"] == pytest.approx(acc["acc_norm,none"])
    assert acc["acc_norm_stderr,irt"] == pytest.approx(0, abs=1e-9)
    # Our own importer reads them back, with the very same answers.
    table = import_logs(tmp_path, metric="acc").frame
    told = {item: a.score for item, a in run_all.session.answers.items() if item.startswith("toy_fewshot/")}
    rows = table[table["benchmark"] == "toy_fewshot"].set_index("item")["score"]
    assert {item: rows[item] for item in told} == told


def test_a_part_of_a_task_has_no_plain_mean(bank, toy_tasks, model, tmp_path) -> None:
    from irteval.drivers.lm_eval_output import write_lm_eval_files

    own = part(bank, "toy_mc_a", "toy_mc_b")
    harness = LmEvalHarness(LmEvalTasks(own, include_path=toy_tasks), model)
    estimate = run_live(Session(own, budget=25, batch=8), harness)
    files = write_lm_eval_files(harness, estimate, tmp_path)
    document = json.loads(next(file for file in files if file.name.startswith("results_")).read_text())
    groups = {group.benchmark: group for group in estimate.groups}
    for task in ("toy_mc_a", "toy_mc_b"):
        found = document["results"][task]
        assert not [name for name in found if name.endswith(",none")]
        assert found["acc_norm,irt"] == groups[task].score
        assert 0 < found["acc_norm_stderr,irt"] < 0.5
        assert document["n-samples"][task]["effective"] == groups[task].items_asked
    assert document["irteval"]["items_asked"] == 25


def test_a_metric_that_is_no_share_or_is_lacking_leaves_an_item_unscored(bank, run_all) -> None:
    answers = run_all.session.answers
    assert {a.status for item, a in answers.items() if item.startswith("toy_ppl/")} == {"unscored"}
    scored = {a.status for item, a in answers.items() if item.startswith("toy_partial/")}
    assert "ok" in scored


def test_another_few_shot_draw_is_refused_before_the_model_is_asked(bank, toy_tasks, model) -> None:
    own = part(bank, "toy_fewshot")
    tasks = LmEvalTasks(own, include_path=toy_tasks, options=TaskOptions(num_fewshot=1))
    session = Session(own)
    with pytest.raises(BankMismatchError, match="another prompt than the bank was calibrated on"):
        run_live(session, LmEvalHarness(tasks, model))
    assert session.answers == {}
    tasks = LmEvalTasks(own, include_path=toy_tasks, options=TaskOptions(system_instruction="Be brief."))
    with pytest.raises(BankMismatchError, match="system instruction"):
        run_live(Session(own), LmEvalHarness(tasks, model))


def test_a_bank_fitted_to_imported_logs_fits_the_tasks_and_their_prompts(shared, toy_tasks, model) -> None:
    logs = import_logs(shared / "samples" / "lm-eval" / "out", metric="acc", repeats="newest")
    fitted = fit(logs.responses(), metric="acc")
    assert {"toy_mc_a", "toy_mc_b", "toy_fewshot"} <= set(fitted.benchmarks)
    assert fitted.item_table["prompt_hash"].notna().all()
    estimate = run_live(
        Session(fitted, budget=30, batch=10),
        LmEvalHarness(LmEvalTasks(fitted, include_path=toy_tasks), model),
    )
    assert estimate.items_asked == 30


def test_items_that_are_no_documents_and_tasks_that_are_none(bank, toy_tasks) -> None:
    with pytest.raises(BankMismatchError, match=r"1 of the 1 items .* first 'toy_mc_a/17'"):
        LmEvalTasks(made(["toy_mc_a/17"], ["toy_mc_a"]), include_path=toy_tasks)
    with pytest.raises(InputError, match="no metric 'f1'"):
        LmEvalTasks(part(bank, "toy_mc_a"), include_path=toy_tasks, metric="f1")
    with pytest.raises(InputError, match="no such folder"):
        LmEvalTasks(bank, TASKS, include_path=toy_tasks / "nowhere")


def test_a_task_whose_own_code_fails_is_an_error_of_its_items(bank, toy_tasks, model, monkeypatch) -> None:
    own = part(bank, "toy_mc_a")
    tasks = LmEvalTasks(own, include_path=toy_tasks)
    task, first = tasks.tasks["toy_mc_a"], tasks.docs["toy_mc_a"][0]
    plain_process = task.process_results

    def process(doc: Any, results: Any) -> Any:
        if doc == first:
            raise RuntimeError("as told")
        return plain_process(doc, results)

    monkeypatch.setattr(task, "process_results", process)
    session = Session(own)
    run_live(session, LmEvalHarness(tasks, model))
    assert [a.status for a in session.answers.values()].count("error") == 1


def test_rows_on_disk_are_not_run_again(bank, toy_tasks, model, tmp_path) -> None:
    own = part(bank, "toy_gen")
    tasks = LmEvalTasks(own, include_path=toy_tasks, metric="exact_match,flexible-extract")
    session = Session(own, batch=6)
    LmEvalHarness(tasks, model, folder=tmp_path).answer(session.ask(6))  # and then the process is killed
    again = LmEvalHarness(tasks, model, folder=tmp_path)
    asked: list[str] = []
    answer = again.answer
    again.answer = lambda items: asked.extend(r.item for r in items) or answer(items)  # type: ignore
    run_live(session, again)
    assert len(asked) == len(set(asked)) == len(own) - 6
    assert len(session.answers) == len(own) == len(again.rows)


@pytest.mark.parametrize("leaves_out", [False, True])
def test_the_replay_is_the_draw_of_lm_eval(leaves_out: bool) -> None:
    from lm_eval.api.samplers import ContextSampler

    rng = np.random.default_rng(1)
    rows = [{"x": int(value)} for value in rng.integers(0, 6, 30)]  # many are copies of others
    docs = rows if leaves_out else [{"x": 100 + k} for k in range(20)]
    sampler, replayed = ContextSampler(rows, rnd=7), ContextSampler(rows, rnd=None)
    draws = replay_draws(rows, docs, 4, 7, leaves_out=leaves_out)
    plain = [list(sampler.sample(4, eval_doc=doc if leaves_out else None)) for doc in docs]
    assert any(len(calls) == 2 for calls in draws) == leaves_out
    for doc_id in reversed(range(len(docs))):
        replayed.rnd = DrawnExamples(draws[doc_id])  # type: ignore[assignment]
        assert list(replayed.sample(4, eval_doc=docs[doc_id] if leaves_out else None)) == plain[doc_id]


def test_the_command_line_and_a_series_of_checkpoints(
    bank, toy_tasks, shared, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    part(bank, "toy_mc_a").save(tmp_path / "bank")
    for step in (900, 1000):
        (tmp_path / f"step_{step}").symlink_to(shared / "samples" / "tinygpt2")
    words = ["run", tmp_path / "bank", "--driver", "lm-eval", "--model", "hf", "--include-path", toy_tasks]
    words += ["--checkpoints", tmp_path / "step_*", "-M", "device=cpu", "--budget", "12", "--json"]
    words += ["--out", tmp_path / "series", "--from-previous"]
    assert invoke([str(word) for word in words]) == 0
    estimates = json.loads(capsys.readouterr().out)["estimates"]
    assert [Path(e["subject"]).name for e in estimates] == ["step_900", "step_1000"]
    assert [e["items_asked"] for e in estimates] == [12, 12]
    for step in (900, 1000):
        folder = tmp_path / "series" / f"step_{step}"
        assert (folder / "journal.jsonl").is_file()
        assert len(list(folder.glob("lm-eval/*/samples_toy_mc_a_*.jsonl"))) == 1
    settings = [
        json.loads((tmp_path / "series" / f"step_{step}" / "run.json").read_text()) for step in (900, 1000)
    ]
    first, second = (document["settings"] for document in settings)
    assert first["prior_mean"] is None
    assert second["prior_mean"] == pytest.approx(estimates[0]["ability"], abs=1e-5)
    assert second["prior_sd"] == pytest.approx(estimates[0]["ability_se"], abs=1e-5)
    assert invoke([str(word) for word in words]) == 0  # goes on where it ended: nothing is asked again
    assert json.loads(capsys.readouterr().out)["estimates"] == estimates


def test_two_ranks_are_one_process(
    bank, toy_tasks, shared, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    part(bank, "toy_mc_a", "toy_fewshot").save(tmp_path / "bank")
    words = ["run", tmp_path / "bank", "--driver", "lm-eval", "--model", "hf", "--include-path", toy_tasks]
    words += ["-M", f"pretrained={shared / 'samples' / 'tinygpt2'}", "-M", "device=cpu"]
    words += ["--budget", "21", "--batch", "7", "--json", "--out"]
    assert invoke([str(word) for word in [*words, tmp_path / "one"]]) == 0
    alone = json.loads(capsys.readouterr().out)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    line = [*launcher, Path(__file__).parents[2] / "cli.py", *words, tmp_path / "two"]
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == alone  # one document, from one rank
    told = [
        sorted((line.item, line.score, line.step) for line in RunFolder.open(tmp_path / name).told())
        for name in ("one", "two")
    ]
    assert told[0] == told[1]
    rows = [
        {
            file.name.partition("_20")[0]: sorted(file.read_text().splitlines())
            for file in (tmp_path / name).glob("lm-eval/*/samples_*")
        }
        for name in ("one", "two")
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 2
