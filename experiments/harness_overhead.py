"""What the live drivers cost beyond the harness, and what batches and costs do to the number of items.

    python experiments/harness_overhead.py [selection lm-eval batch cost kill] [--data ../shared/data]

selection: seconds of one ``ask`` of 64 from 30,000 items of 20 tasks. lm-eval: a task of 14,042 documents
and 5 examples each, against lm-eval's own start-up and building of all requests; the language model takes no
time. batch: items to a half-width by size of the batch, on HELM Lite. cost: cost to a half-width with and
without allowing for costs. kill: a run killed at 20 random points. Seconds are the best of three.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.calibrate.fit import fit
from irteval.drivers.replay import replay
from irteval.journal import RunFolder
from irteval.responses import ResponseMatrix
from irteval.responses.read import read_responses
from irteval.session import Session

ROOT = Path(__file__).parents[1]
SUITE, TASKS, ASKED = 30_000, 20, 64
DOCUMENTS, SHOTS, ROUNDS = 14_042, 5, 3
SECONDS_AN_ITEM = 0.02  # of the language model whose round selection is compared with
SOURCE, TARGETS = 60, 23  # subjects of HELM Lite that the bank is fitted to, and that are tested
KILLS, KILL_ITEMS = 20, 200


def selection() -> None:
    rng = np.random.default_rng(0)
    slope = np.exp(0.3 * rng.standard_normal((SUITE, 4)) - 0.7)
    intercept = rng.standard_normal(SUITE)
    tasks = [f"task-{k % TASKS}" for k in range(SUITE)]
    for dims in (1, 4):
        items = [f"i{k}" for k in range(SUITE)]
        bank = ItemBank.from_parameters(items, slope[:, :dims], intercept, benchmarks=tasks)
        session = Session(bank, batch=ASKED)
        seconds = []
        for _ in range(6):
            began = time.perf_counter()
            asked = session.ask(ASKED)
            seconds.append(time.perf_counter() - began)
            session.tell({reference.item: float(rng.random() < 0.6) for reference in asked})
        print(
            f"ask {ASKED} of {SUITE:,}, {dims} dimension(s): first {1e3 * seconds[0]:.0f} ms, then "
            f"{1e3 * min(seconds[1:]):.0f} ms"
        )


TASK_FILE = """task: long
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/test.jsonl, train: {folder}/train.jsonl}}}}
test_split: test
fewshot_split: train
num_fewshot: {shots}
output_type: multiple_choice
doc_to_text: "{{{{question}}}}\\nAnswer:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: label
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
"""


def write_task(folder: Path) -> None:
    rng = random.Random(0)
    for name, count in (("test", DOCUMENTS), ("train", 300)):
        with open(folder / f"{name}.jsonl", "w") as file:
            for number in range(count):
                question = f"{name} {number}: " + " ".join(str(rng.randrange(1000)) for _ in range(60))
                row = {"question": question, "choices": ["a", "b", "c", "d"], "label": rng.randrange(4)}
                print(json.dumps(row), file=file)
    (folder / "long.yaml").write_text(TASK_FILE.format(folder=folder, shots=SHOTS))


def lm_eval_overhead() -> None:
    from lm_eval.models.dummy import DummyLM
    from lm_eval.tasks import TaskManager

    from irteval.drivers.lm_eval import HASH_DIGITS, LmEvalHarness, LmEvalTasks, document_hash

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_task(folder)

        def load() -> Any:
            manager = TaskManager(include_path=str(folder), include_defaults=False)
            task = manager.load(["long"])["tasks"]["long"]
            task.set_fewshot_seed(seed=1234)
            return task

        task = load()
        items = [f"long/{document_hash(doc)[:HASH_DIGITS]}" for doc in task.eval_docs]
        rng = np.random.default_rng(0)
        bank = ItemBank.from_difficulty(
            items, np.ones(DOCUMENTS), rng.normal(size=DOCUMENTS), benchmarks=["long"] * DOCUMENTS
        )
        own = best(load)
        ours = best(lambda: LmEvalTasks(bank, include_path=folder))
        began = time.perf_counter()
        task.build_all_requests()
        everything = time.perf_counter() - began
        harness = LmEvalHarness(LmEvalTasks(bank, include_path=folder), DummyLM())
        session = Session(bank, batch=ASKED)
        choosing, asking = [], []
        for _ in range(1 + ROUNDS):
            began = time.perf_counter()
            asked = session.ask(ASKED)
            middle = time.perf_counter()
            outcomes = harness.answer(asked)
            end = time.perf_counter()
            session.tell(outcomes)
            choosing.append(middle - began + time.perf_counter() - end)
            asking.append(end - middle)
    print(f"lm-eval loads the task in {own:.2f} s; ready {ours - own:.2f} s after that")
    print(f"building every request: {everything:.1f} s")
    print(f"first round (examples of all documents replayed): {asking[0]:.2f} s for {ASKED}")
    print(f"a document asked: {1e3 * min(asking[1:]) / ASKED:.1f} ms, without the language model")
    share = min(choosing[1:]) / (min(choosing[1:]) + ASKED * SECONDS_AN_ITEM)
    print(f"selection: {1e3 * min(choosing[1:]):.0f} ms a round, {100 * share:.1f} % at 20 ms an item")


def best(run: Callable[[], Any]) -> float:
    """Seconds of the best of three."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def batch(data: Path) -> None:
    responses = read_responses(data / "helm_lite" / "responses.parquet")
    order = np.random.default_rng(0).permutation(len(responses.subjects))
    bank = fit(responses.take(subjects=order[:SOURCE]))
    targets = responses.take(subjects=order[SOURCE : SOURCE + TARGETS])
    benchmark = pd.Series(bank.benchmarks)
    by_item = pd.DataFrame(targets.dense().T).groupby(benchmark.to_numpy()).mean()
    truth = by_item.mean().to_numpy()  # a suite's score is the mean of its benchmarks'
    for target in (0.05, 0.04):
        alone = 0.0
        for size in (1, 16, 64):
            estimates = replay(bank, targets, target=target, batch=size)
            items = float(np.mean([estimate.items_asked for estimate in estimates]))
            alone = alone or items
            more = 100 * ((items - size / 2) / alone - 1) if size > 1 else 0.0
            inside = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, truth, strict=True)]
            print(
                f"half-width {target}, batch {size}: {items:.1f} items, {more:+.0f} % beyond half a batch; "
                f"coverage {np.mean(inside):.2f}",
                flush=True,
            )


def cost() -> None:
    rng = np.random.default_rng(0)
    items, subjects = 1000, 200
    a, b = np.exp(0.3 * rng.standard_normal(items)), rng.standard_normal(items)
    theta = rng.standard_normal(subjects)
    y = (rng.random((subjects, items)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))).astype(float)
    kinds = {"1 or 10": rng.choice([1.0, 10.0], items), "1 to 10, log-uniform": 10 ** rng.random(items)}
    for name, costs in kinds.items():
        plain = ItemBank.from_difficulty([f"i{k}" for k in range(items)], a, b)
        bank = ItemBank.build(plain.items, plain.parameters, item_table=pd.DataFrame({"cost": costs}))
        recorded = ResponseMatrix.from_dense(y, items=bank.items)
        for target in (0.08, 0.06):
            spent, covered = [], []
            for allow in ("ignore", "bank"):
                one, inside = spend(bank, recorded, y, costs, target, allow)
                spent.append(one)
                covered.append(inside)
            saved = 100 * (1 - spent[1] / spent[0])
            print(f"costs {name}, half-width {target}: {saved:.0f} % saved; coverage {covered}")


def spend(
    bank: ItemBank,
    recorded: ResponseMatrix,
    y: NDArray[np.float64],
    costs: NDArray[np.float64],
    target: float,
    allow: str,
) -> tuple[float, float]:
    """Mean cost of a subject's test, and how often the interval at the stop holds."""
    with tempfile.TemporaryDirectory() as folder:
        estimates = replay(bank, recorded, target=target, costs=allow, out=folder)
        total = costs[bank.index(line.item for line in RunFolder.open(folder).told())].sum()
    inside = [e.interval[0] <= t <= e.interval[1] for e, t in zip(estimates, y.mean(1), strict=True)]
    return float(total) / len(estimates), float(np.mean(inside))


HARNESS = """import json, sys, time
ids, out, ran = sys.argv[1:]
with open(out, "w") as answers:
    for item in open(ids).read().split("\\n")[:-1]:
        print(item, file=open(ran, "a"), flush=True)
        time.sleep(0.03)
        print(json.dumps({"item": item, "score": int(item[-1]) % 2}), file=answers, flush=True)
"""


def kill() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as scratch:
        folder, draw = Path(scratch), random.Random(0)
        bank = ItemBank.from_difficulty(
            [f"i{k}" for k in range(KILL_ITEMS)], np.ones(KILL_ITEMS), rng.normal(size=KILL_ITEMS)
        )
        bank.save(folder / "bank")
        (folder / "harness.py").write_text(HARNESS)
        words = [sys.executable, str(folder / "harness.py"), "{ids_file}", "{out_file}", str(folder / "ran")]
        line = [sys.executable, str(ROOT / "cli.py"), "run", str(folder / "bank"), "--driver", "command"]
        line += ["--command", shlex.join(words), "--batch", "8", "--out", str(folder / "run"), "--quiet"]
        for _ in range(KILLS):
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
            time.sleep(1.5 + 1.5 * draw.random())
            process.kill()
            process.wait()
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        ran = (folder / "ran").read_text().split()
        told = {reply.item: reply.score for reply in RunFolder.open(folder / "run").told()}
    right = all(score == int(item[-1]) % 2 for item, score in told.items())
    print(
        f"{KILLS} kills: {len(told)} of {KILL_ITEMS} items told, {len(ran) - len(set(ran))} run twice, "
        f"answers {'all' if right else 'NOT all'} as the harness gave them"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parts = {"selection": selection, "lm-eval": lm_eval_overhead, "cost": cost, "kill": kill}
    parser.add_argument("part", nargs="*", help="of " + ", ".join([*parts, "batch"]))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for name, run in (parts | {"batch": lambda: batch(chosen.data)}).items():
        if not chosen.part or name in chosen.part:
            print(f"# {name}", flush=True)
            run()


if __name__ == "__main__":
    main()
