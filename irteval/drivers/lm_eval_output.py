"""The files that lm-eval writes: ``samples_<task>_<date>.jsonl`` and ``results_<date>.json``.

What is new in the results are ``acc,irt`` and ``acc_stderr,irt``, the estimated score of the whole task and
the half-width of its interval as a standard error. The plain mean ``acc,none`` is there only where every
document was asked: over chosen documents it is no score.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scipy.special import ndtri

from irteval.drivers.lm_eval import SEEDS, LmEvalHarness
from irteval.estimate.result import Estimate

FILTER = "irt"
NO_SCORES = ("name", "alias", "sample_len")


def write_lm_eval_files(harness: LmEvalHarness, estimate: Estimate, folder: Path) -> list[Path]:
    """Write the logs of a run into ``folder/<model>/``, as lm-eval does.

    Args:
        harness: that answered the items.
        estimate: of the subject.
        folder: lm-eval's ``--output_path``.

    Returns:
        The files.
    """
    from lm_eval.loggers import EvaluationTracker

    tasks = harness.tasks
    tracker = EvaluationTracker(output_path=str(folder))
    template = tasks.options.apply_chat_template
    tracker.general_config_tracker.log_experiment_args(
        model_source=harness.model_name if isinstance(harness.model_name, str) else "CUSTOM",
        model_args=harness.model_args or {"model": estimate.subject},
        system_instruction=tasks.options.system_instruction,
        chat_template=harness.lm.chat_template(template) if template else None,
        fewshot_as_multiturn=tasks.options.fewshot_as_multiturn,
    )
    samples = _samples(harness)
    tracker.save_results_aggregated(results=_results(harness, estimate, samples), samples=samples)
    for name, rows in samples.items():
        tracker.save_results_samples(task_name=name, samples=rows)
    place = folder / str(tracker.general_config_tracker.model_name_sanitized)
    return sorted(place.glob(f"*_{tracker.date_id}.json*"))


def _samples(harness: LmEvalHarness) -> dict[str, list[dict[str, Any]]]:
    """Rows by task: filter by filter, in the order of the documents."""
    samples: dict[str, list[dict[str, Any]]] = {}
    for item, rows in harness.rows.items():
        samples.setdefault(harness.tasks.places[item].task, []).extend(dict(row) for row in rows)
    for rows in samples.values():
        order = {name: k for k, name in enumerate(dict.fromkeys(row["filter"] for row in rows))}
        rows.sort(key=lambda row: (order[row["filter"]], row["doc_id"]))
    return samples


def _results(
    harness: LmEvalHarness, estimate: Estimate, samples: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The document, with the keys of lm-eval's own."""
    import lm_eval
    from lm_eval.evaluator_utils import _process_results
    from lm_eval.loggers.utils import add_tokenizer_info

    tasks, accumulated = harness.tasks, {}
    for name, rows in samples.items():
        raw: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in rows:
            for metric in row["metrics"]:
                raw[metric, row["filter"]].append(row[metric])
        accumulated[name] = {"task": tasks.tasks[name], "raw_metrics": raw, "logged_samples": rows}
    complete = {name: _is_complete(rows, len(tasks.docs[name])) for name, rows in samples.items()}
    # Groups are means over tasks: of no use unless all of their tasks are there, whole.
    groups = {
        name: group
        for name, group in tasks.groups.items()
        if all(complete.get(task.task_name, False) for task in group.get_all_tasks())
    }
    results: dict[str, Any] = _process_results(accumulated, groups)._to_eval_results()
    by_task = {part.benchmark: part for part in (estimate.groups or (estimate,))}
    for name, rows in samples.items():
        found = results["results"][name]
        if not complete[name]:
            found = {key: value for key, value in found.items() if key in NO_SCORES}
        results["results"][name] = found | _estimated(by_task.get(name, estimate), tasks.metrics[name][0])
        asked = len({row["doc_id"] for row in rows})
        results["n-samples"][name] = {"original": len(tasks.docs[name]), "effective": asked}
    results["config"] = {
        "model": harness.model_name if isinstance(harness.model_name, str) else type(harness.lm).__name__,
        "model_args": harness.model_args,
        **(harness.lm.get_model_info() if hasattr(harness.lm, "get_model_info") else {}),
        "gen_kwargs": tasks.options.gen_kwargs or None,
        **{f"{name}_seed": seed for name, seed in SEEDS.items()},
    }
    results["irteval"] = estimate.to_json() | {"bank": tasks.bank.info.content_hash}
    results["lm_eval_version"] = lm_eval.__version__
    add_tokenizer_info(results, harness.lm)
    return results


def _is_complete(rows: list[dict[str, Any]], documents: int) -> bool:
    return len({row["doc_id"] for row in rows}) == documents


def _estimated(estimate: Estimate, metric: str) -> dict[str, float]:
    """The score of the whole task under lm-eval's names."""
    error = estimate.half_width / float(ndtri((1 + estimate.level) / 2))
    return {f"{metric},{FILTER}": estimate.score, f"{metric}_stderr,{FILTER}": error}
