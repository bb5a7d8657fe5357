"""The ``results_*.json`` beside lm-eval's sample logs: which model, how many shots, which versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from irteval.errors import InputError
from irteval.files import read_json
from irteval.responses.logs.fields import mapping, text
from irteval.responses.logs.records import Run

SAMPLES = re.compile(r"^samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d+)\.jsonl?$")
_NAMES = ("pretrained", "model", "path", "engine", "peft", "delta")
_LARGEST = 2**28


def run_of(path: Path, harness: str) -> Run:
    """The run that a sample log belongs to, from its name and the results beside it.

    A log is named ``samples_<task>_<date>.jsonl`` in a folder named after the model, ``org__name``; the
    results of the same date know more.

    Raises:
        InputError: the results are no JSON object.
    """
    match = SAMPLES.match(path.name)
    task = match["task"] if match else path.stem.removeprefix("samples_")
    date = match["date"] if match else ""
    results = _results(path.parent, date)
    config = mapping(results.get("config"))
    arguments = _arguments(config.get("model_args"))
    revision = text(arguments.get("revision")) or text(config.get("model_revision"))
    return Run(
        file=str(path),
        subject=_subject(results, arguments, path),
        benchmark=task,
        revision="" if revision == "main" else revision,
        weights=_weights(config, arguments),
        version=text(mapping(results.get("versions")).get(task)),
        variant=_variant(results, task),
        harness=f"{harness} {text(results.get('lm_eval_version'))}".strip(),
        run=date,
        time=re.sub(r"T(\d\d)-(\d\d)-", r"T\1:\2:", date),
        lower_is_better=frozenset(
            name
            for name, higher in mapping(mapping(results.get("higher_is_better")).get(task)).items()
            if higher is False
        ),
    )


@lru_cache(maxsize=64)
def _results(folder: Path, date: str) -> Mapping[str, Any]:
    """The results of this date; where there are none, those of the folder if it has one file of them."""
    named = folder / f"results_{date}.json"
    found = [named] if named.is_file() else sorted(folder.glob("results*.json"))
    if len(found) != 1 or not found[0].is_file() or found[0].stat().st_size > _LARGEST:
        return {}
    document = read_json(found[0])
    if not isinstance(document, dict):
        raise InputError("a JSON value, wanted an object", file=str(found[0]))
    return document


def _subject(results: Mapping[str, Any], arguments: Mapping[str, Any], path: Path) -> str:
    name = text(results.get("model_name"))
    if not name:
        name = next((found for key in _NAMES if (found := text(arguments.get(key)))), "")
    return name or path.resolve().parent.name.replace("__", "/", 1) or path.stem


def _arguments(given: Any) -> Mapping[str, Any]:
    """``model_args``, an object or, in older results, ``name=value`` joined by commas."""
    if isinstance(given, str):
        return dict(part.split("=", 1) for part in given.split(",") if "=" in part)
    return mapping(given)


def _weights(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What was loaded beyond the name: its hash, and the adapters on top of it."""
    parts = [text(config.get("model_sha"))]
    parts += [f"{key}={arguments[key]}" for key in ("peft", "delta", "subfolder") if arguments.get(key)]
    return ",".join(part for part in parts if part)


def _variant(results: Mapping[str, Any], task: str) -> str:
    """What is sent around the items, where it is not the plain default."""
    shots = mapping(results.get("n-shot")).get(task)
    facets = {
        "shots": shots if isinstance(shots, int) and shots > 0 else None,
        "chat": text(results.get("chat_template_sha"))[:8],
        "system": text(results.get("system_instruction_sha"))[:8],
        "turns": "many" if shots and results.get("fewshot_as_multiturn") else None,
    }
    return ";".join(f"{name}={value}" for name, value in facets.items() if value)
