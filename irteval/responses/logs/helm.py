"""Reader of HELM runs: ``per_instance_stats.json`` and, beside it, what the run and its instances were.

Each entry is an instance in one few-shot trial, with many statistics of one value each (``mean``; a
``count`` of 0 is missing). Read are those that some scenario of HELM has as its main metric, and the one
that is asked for by name; the others are counts of tokens, run times and looser readings of the same
answer. ``perturbation`` makes a variant. Ids are positions before the instances were sampled, so items are
keyed by their texts in ``instances.json`` or ``scenario_state.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from irteval.errors import InputError
from irteval.files import read_json
from irteval.responses.logs.fields import mapping, number, sequence, text
from irteval.responses.logs.json_stream import array_elements, object_members
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run, content_hash

_STATS = "per_instance_stats.json"
# What the schemas of HELM name as the main metric of a scenario.
MAIN_METRICS = frozenset(
    {
        *("exact_match", "quasi_exact_match", "exact_match_indicator", "final_number_exact_match"),
        *("f1_score", "f1_set_match", "classification_macro_f1", "rouge_2", "bleu_4", "RR@10", "NDCG@10"),
        *("math_equiv", "math_equiv_chain_of_thought", "chain_of_thought_correctness", "omni_math_accuracy"),
        *("code_eval_acc", "pass", "test_avg", "ifeval_strict_accuracy", "wildbench_score_rescaled"),
    }
)


class Helm:
    """Runs of HELM, one scenario and one subject each."""

    name = "helm"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Files of this name, and arrays of objects with an ``instance_id`` and ``stats``."""
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        is_stats = b'"instance_id"' in head and b'"stats"' in head and b'"train_trial_index"' in head
        return path.name == _STATS or (
            path.suffix == ".json" and start.startswith(b"[") and is_stats and b'"predicted_text"' not in head
        )

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a damaged document, or an entry that is no instance.
        """
        wanted = MAIN_METRICS | {options.metric}
        plain = _run(path, "")
        content = _contents(path.parent)
        variants: dict[str, Run] = {"": plain}
        builder = RecordBuilder(str(path))
        aside: dict[str, None] = {}
        for line, entry in array_elements(path):
            if not isinstance(entry, dict) or not isinstance(entry.get("instance_id"), str):
                raise InputError("an entry without an instance_id", file=str(path), line=line)
            stats = _stats(entry)
            variant = _variant(entry.get("perturbation"))
            run = variants.get(variant) or variants.setdefault(variant, _run(path, variant))
            scores = {name: value for name, value in stats.items() if name in wanted}
            aside.update(dict.fromkeys(name for name in stats if name not in wanted))
            builder.add(
                run,
                entry["instance_id"],
                line,
                scores,
                status="ok" if scores else "unscored",
                content=content.get(entry["instance_id"], 0),
                trial=_trial(entry.get("train_trial_index"), str(path), line),
                tokens_in=number(stats.get("num_prompt_tokens")),
                tokens_out=number(stats.get("num_output_tokens")),
                seconds=number(stats.get("inference_runtime")),
            )
            yield from builder.full()
        yield from builder.flush()
        if aside:
            options.note(f"helm: left aside {len(aside)} statistics that are no main metric: {_short(aside)}")


def _stats(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The mean of each statistic by its name, None where it was never taken."""
    stats: dict[str, Any] = {}
    for stat in sequence(entry.get("stats")):
        stat = mapping(stat)
        name = mapping(stat.get("name")).get("name")
        if isinstance(name, str) and name not in stats:
            stats[name] = stat.get("mean") if stat.get("count") != 0 else None
    return stats


def _trial(index: Any, file: str, line: int) -> int:
    if index is None:
        return 1
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 2**31 - 1:
        raise InputError(f"'{index}', wanted a whole number", file=file, line=line, field="train_trial_index")
    return index + 1


def _variant(perturbation: Any) -> str:
    name = mapping(perturbation).get("name")
    return f"perturbation={name}" if isinstance(name, str) else ""


def _run(path: Path, variant: str) -> Run:
    folder = path.resolve().parent
    spec = _object(folder / "run_spec.json")
    name = text(spec.get("name")) or folder.name
    scenario, _, arguments = name.partition(":")
    parts = [part for part in arguments.split(",") if part]
    others = [part for part in parts if not part.startswith(("model=", "model_deployment="))]
    model = text(mapping(spec.get("adapter_spec")).get("model"))
    if not model:
        named = next((part.partition("=")[2] for part in parts if part.startswith("model=")), folder.name)
        model = named.replace("_", "/", 1)
    return Run(
        file=str(path),
        subject=model,
        benchmark=f"{scenario}:{','.join(others)}" if others else scenario,
        variant=variant,
        harness="helm",
        run=folder.parent.name,
        main_metrics=_main_metrics(folder, spec),
    )


def _main_metrics(folder: Path, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The main metric of the run's groups, from the schema of the suite."""
    groups = set(map(text, sequence(spec.get("groups"))))
    found = [
        text(mapping(group.get("environment")).get("main_name"))
        for group in map(mapping, sequence(_object(folder.parent / "schema.json").get("run_groups")))
        if text(group.get("name")) in groups
    ]
    return tuple(dict.fromkeys(name for name in found if name))


@lru_cache(maxsize=16)
def _object(path: Path) -> Mapping[str, Any]:
    """The JSON object in a neighbour, empty where there is no such file.

    Raises:
        InputError: the file is there and is no JSON.
    """
    return mapping(read_json(path)) if path.is_file() else {}


def _contents(folder: Path) -> dict[str, int]:
    """Hash of what each instance asks, by its id; of a perturbed one, before it was, where that is there."""
    contents: dict[str, int] = {}
    original: set[str] = set()
    for instance in _instances(folder):
        name = instance.get("id")
        if not isinstance(name, str) or name in original:
            continue
        asked = text(mapping(instance.get("input")).get("text"))
        references = [mapping(reference) for reference in sequence(instance.get("references"))]
        answers = [text(mapping(reference.get("output")).get("text")) for reference in references]
        correct = [str("correct" in sequence(reference.get("tags"))) for reference in references]
        contents[name] = content_hash(asked, *answers, *correct)
        if not instance.get("perturbation"):
            original.add(name)
    return contents


def _instances(folder: Path) -> Iterator[Mapping[str, Any]]:
    if (folder / "instances.json").is_file():
        for _, instance in array_elements(folder / "instances.json"):
            yield mapping(instance)
    elif (folder / "scenario_state.json").is_file():
        for name, _, state in object_members(folder / "scenario_state.json", {"request_states"}):
            if name == "request_states":
                yield mapping(mapping(state).get("instance"))


def _short(names: Mapping[str, None]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:4]) + (" …" if len(listed) > 4 else "") + " (--metric NAME reads one)"
