"""lm-eval answers the items: its models, its tasks, its metrics, only the chosen documents.

lm-eval's own ``samples`` option is not used: with it few-shot prompts differ from those of a full run, and
unsorted ids are logged beside other documents. Instead tasks and model are loaded once; requests of the
chosen documents are built as a full run builds them, and go to the model in one call a type of request.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irteval.bank import ItemBank
from irteval.drivers.live import Outcomes
from irteval.drivers.lm_eval_fewshot import DrawnExamples, replay_draws
from irteval.errors import BankMismatchError, InputError
from irteval.files import append_file
from irteval.journal import whole_lines
from irteval.responses.policies.filters import default_filter
from irteval.responses.policies.metrics import default_metric, listed
from irteval.session import ItemReference, Response

ROWS_FILE = "rows.jsonl"
HASH_DIGITS = 16  # of SHA-256, in the ids of items and in the bank's prompt hashes
SEEDS = {"random": 0, "numpy": 1234, "torch": 1234, "fewshot": 1234}  # lm-eval's defaults

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskOptions:
    """How tasks are put to the model, as in lm-eval.

    Attributes:
        num_fewshot: examples a document; the task's own number where None.
        apply_chat_template: whether, or the name of one.
        system_instruction: goes before everything.
        fewshot_as_multiturn: examples as turns of a chat.
        gen_kwargs: change a task's generation.
        confirm_run_unsafe_code: run tasks that run what a model wrote.
    """

    num_fewshot: int | None = None
    apply_chat_template: bool | str = False
    system_instruction: str | None = None
    fewshot_as_multiturn: bool = False
    gen_kwargs: dict[str, Any] = field(default_factory=dict)
    confirm_run_unsafe_code: bool = False


@dataclass
class _Document:
    """Where an item is: its task and place there."""

    task: str
    doc_id: int


class LmEvalTasks:
    """Tasks of lm-eval, their documents matched with a bank's items by content.

    Args:
        bank: whose items are asked. Their ids are ``task/`` and 16 digits of the hash of the document, as
            ``irteval import`` makes them.
        tasks: names of tasks, groups or tags; the bank's benchmarks where there are none.
        include_path: folder of further tasks. Where it has all of them, lm-eval's own are not indexed.
        options: how tasks are put to the model.
        metadata: arguments of the model, which some tasks look at.
        metric: ``name`` or ``name,filter`` of the score; that of the bank, else by the policy of
            ``irteval import``.

    Raises:
        InputError: lm-eval is not installed, or has no such task or metric.
        BankMismatchError: an item that is no document of the tasks.
    """

    def __init__(
        self,
        bank: ItemBank,
        tasks: Sequence[str] = (),
        *,
        include_path: Path | None = None,
        options: TaskOptions | None = None,
        metadata: Mapping[str, Any] | None = None,
        metric: str | None = None,
    ) -> None:
        _check_installed()
        self.bank, self.options = bank, options or TaskOptions()
        names = list(tasks) or list(bank.info.benchmarks)
        loaded = _load(names, include_path, dict(metadata or {}))
        self.tasks: dict[str, Any] = loaded["tasks"]
        self.groups: dict[str, Any] = loaded["groups"]
        for name, task in self.tasks.items():
            self._configure(name, task)
        self.docs = {name: list(task.eval_docs) for name, task in self.tasks.items()}
        self.places = self._match()
        self.metrics = {
            name: _metric(name, task, metric or bank.info.metric) for name, task in self.tasks.items()
        }
        column = bank.item_table.get("prompt_hash")
        self.prompts: dict[str, str] = {} if column is None else dict(zip(bank.items, column, strict=True))
        self._draws: dict[str, list[list[list[int]]]] = {}
        self._built: dict[str, dict[int, list[Any]]] = {}

    def _configure(self, name: str, task: Any) -> None:
        """The overrides of a run, as lm-eval's ``simple_evaluate`` makes them."""
        options = self.options
        if getattr(task, "UNSAFE_CODE", False) and not options.confirm_run_unsafe_code:
            message = f"task '{name}' runs code that a model wrote: -T confirm_run_unsafe_code=true"
            raise InputError(message, field="tasks")
        if options.gen_kwargs and task.get_config("output_type") == "generate_until":
            task.set_config(key="generation_kwargs", value=options.gen_kwargs, update=True)
        own = task.get_config("num_fewshot")
        if options.num_fewshot is not None and own != 0:
            task.set_config(key="num_fewshot", value=options.num_fewshot)
        elif own is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=SEEDS["fewshot"])

    def _match(self) -> dict[str, _Document]:
        """Where each item of the bank is."""
        found: dict[str, _Document] = {}
        for name, docs in self.docs.items():
            copies: Counter[str] = Counter()
            for doc_id, doc in enumerate(docs):
                digest = document_hash(doc)[:HASH_DIGITS]
                copies[digest] += 1
                again = f"#{copies[digest]}" if copies[digest] > 1 else ""
                found[f"{name}/{digest}{again}"] = _Document(name, doc_id)
        missing = [item for item in self.bank.items if item not in found]
        if missing:
            raise BankMismatchError(
                f"{len(missing)} of the {len(self.bank)} items of bank '{self.bank.info.name}' are no "
                f"document of {listed(sorted(self.tasks))}, first '{missing[0]}'; wanted ids of documents' "
                "content, as irteval import makes them",
                field="item",
            )
        return {item: found[item] for item in self.bank.items}

    def requests(self, item: str, chat_template: Any) -> list[Any]:
        """The requests of one item, as a full run makes them.

        Raises:
            BankMismatchError: the prompt is not the one that the bank was calibrated on.
        """
        place = self.places[item]
        task, doc = self.tasks[place.task], self.docs[place.task][place.doc_id]
        requests = self._build(place.task, task, place.doc_id, doc, chat_template)
        found, wanted = prompt_hash(requests)[:HASH_DIGITS], self.prompts.get(item)
        if isinstance(wanted, str) and wanted and wanted[:HASH_DIGITS] != found:
            raise BankMismatchError(
                f"item '{item}' has another prompt than the bank was calibrated on (hash {found}, "
                f"wanted {wanted[:HASH_DIGITS]}): few-shot examples, chat template, system instruction or "
                f"version of task '{place.task}' have changed",
                field="prompt_hash",
            )
        return requests

    def _build(self, name: str, task: Any, doc_id: int, doc: Any, chat_template: Any) -> list[Any]:
        options, shots = self.options, task.config.num_fewshot or 0
        if shots and not _is_replayable(task):
            return self._build_all(name, task, chat_template)[doc_id]
        with self._examples(name, task, shots, doc_id):
            context = task.fewshot_context(
                doc,
                num_fewshot=shots,
                system_instruction=options.system_instruction,
                apply_chat_template=bool(options.apply_chat_template),
                fewshot_as_multiturn=options.fewshot_as_multiturn,
                chat_template=chat_template,
                gen_prefix=task.doc_to_prefix(doc),
            )
        made = task.construct_requests(
            doc=doc,
            ctx=context,
            metadata=(task.config["task"], doc_id, task.config.repeats),
            apply_chat_template=bool(options.apply_chat_template),
            chat_template=chat_template,
        )
        return made if isinstance(made, list) else [made]

    @contextmanager
    def _examples(self, name: str, task: Any, shots: int, doc_id: int) -> Iterator[None]:
        """Let a document draw what it draws in a full run."""
        if not shots or not _draws_at_random(task):
            yield
            return
        sampler = task.sampler
        if name not in self._draws:
            leaves_out = task.fewshot_cfg.split == task.config.test_split
            rows, docs = list(sampler.fewshot_docs()), self.docs[name]
            self._draws[name] = replay_draws(rows, docs, shots, SEEDS["fewshot"], leaves_out=leaves_out)
        sampler.rnd = DrawnExamples(self._draws[name][doc_id])
        yield

    def _build_all(self, name: str, task: Any, chat_template: Any) -> dict[int, list[Any]]:
        """The requests of a whole task, where its way of drawing examples can't be replayed."""
        if name not in self._built:
            log.warning("task '%s' draws examples in its own way: all of its requests are built", name)
            task.set_fewshot_seed(seed=SEEDS["fewshot"])
            task.build_all_requests(
                system_instruction=self.options.system_instruction,
                apply_chat_template=bool(self.options.apply_chat_template),
                fewshot_as_multiturn=self.options.fewshot_as_multiturn,
                chat_template=chat_template,
            )
            by_doc: dict[int, list[Any]] = defaultdict(list)
            for request in task.instances:
                by_doc[request.doc_id].append(request)
            self._built[name] = by_doc
        return self._built[name]


class LmEvalHarness:
    """A model of lm-eval that answers documents.

    Args:
        tasks: whose documents are asked.
        model: one of lm-eval's, such as ``hf``, ``vllm`` or ``local-completions``; or an ``LM`` that is
            there.
        model_args: its arguments, such as ``pretrained``.
        folder: where rows of the logs are kept; nowhere where None.

    Raises:
        InputError: lm-eval has no such model, or it can't be loaded.
    """

    def __init__(
        self,
        tasks: LmEvalTasks,
        model: Any,
        model_args: Mapping[str, Any] | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        self.tasks, self.model_name, self.model_args = tasks, model, dict(model_args or {})
        self.lm = _model(model, self.model_args) if isinstance(model, str) else model
        template = tasks.options.apply_chat_template
        if template:
            self.lm.chat_template(template)
        self._template = getattr(self.lm, "apply_chat_template", None) if template else None
        self.file = None if folder is None else folder / ROWS_FILE
        self.rows: dict[str, list[dict[str, Any]]] = {}
        if self.file is not None and self.file.is_file():
            for line in whole_lines(self.file.read_bytes()).decode().split("\n")[:-1]:
                kept = json.loads(line)
                self.rows[kept["item"]] = kept["rows"]

    def recover(self, items: Sequence[ItemReference]) -> Outcomes:
        """Answers whose rows are on disk."""
        kept = [reference.item for reference in items if reference.item in self.rows]
        return {item: self._response(item, self.rows[item]) for item in kept}

    def answer(self, items: Sequence[ItemReference]) -> Outcomes:
        """Run documents, in one call a type of request."""
        asked = [reference.item for reference in items]
        requests = {item: self.tasks.requests(item, self._template) for item in asked}
        self._run([request for item in asked for request in requests[item]])
        outcomes: dict[str, Response] = {}
        plain: dict[str, list[dict[str, Any]]] = {}
        for item, rows in self._rows(asked, requests).items():
            if isinstance(rows, Exception):
                log.warning("item '%s' can't be scored: %s: %s", item, type(rows).__name__, rows)
                outcomes[item] = Response(None, status="error")
                continue
            plain[item] = json.loads(json.dumps(rows, default=_plain, ensure_ascii=False))
            outcomes[item] = self._response(item, plain[item])
        self.keep(plain)
        return outcomes

    def records(self, items: Sequence[str]) -> dict[str, Any]:
        """The rows of these items that have some, as they are logged."""
        return {item: self.rows[item] for item in items if item in self.rows}

    def keep(self, records: dict[str, Any]) -> None:
        """Keep rows of items, on disk when it returns where there is a folder."""
        self.rows |= records
        lines = [
            json.dumps({"item": item, "rows": rows}, ensure_ascii=False) for item, rows in records.items()
        ]
        if self.file is not None and lines:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            append_file(self.file, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))

    def stop(self) -> None:
        """Nothing outlives the process."""

    def _run(self, requests: Sequence[Any]) -> None:
        by_type: dict[str, list[Any]] = defaultdict(list)
        for request in requests:
            request.resps, request.filtered_resps = [], {}
            by_type[request.request_type] += [request] * (request.repeats or 1)
        for kind, repeated in by_type.items():
            for response, request in zip(getattr(self.lm, kind)(repeated), repeated, strict=True):
                request.resps.append(response)

    def _rows(
        self, asked: Sequence[str], requests: Mapping[str, list[Any]]
    ) -> dict[str, list[dict[str, Any]] | Exception]:
        """What lm-eval logs of each item: a row a filter; or why its task can't score it."""
        by_task: dict[str, list[str]] = defaultdict(list)
        for item in asked:
            by_task[self.tasks.places[item].task].append(item)
        found: dict[str, list[dict[str, Any]] | Exception] = {}
        for name, items in by_task.items():
            task = self.tasks.tasks[name]
            task._instances = [request for item in items for request in requests[item]]
            task.apply_filters()
            for item in items:
                place = self.tasks.places[item]
                own = sorted(requests[item], key=lambda request: request.idx)
                try:
                    found[item] = _sample_rows(task, place.doc_id, self.tasks.docs[name][place.doc_id], own)
                except Exception as error:  # a task's own code may raise anything
                    found[item] = error
        return found

    def _response(self, item: str, rows: Sequence[Mapping[str, Any]]) -> Response:
        """The outcome of an item: its score under the metric and filter of its task."""
        name = self.tasks.places[item].task
        metric, wanted = self.tasks.metrics[name]
        chosen = wanted or default_filter([row["filter"] for row in rows], name)
        row = next((row for row in rows if row["filter"] == chosen), None)
        if row is None:
            filters = listed([row["filter"] for row in rows])
            raise InputError(
                f"task '{name}' has no filter '{chosen}', wanted one of {filters}", field="filter"
            )
        value = row.get(metric)
        if isinstance(value, bool | int | float) and math.isfinite(value) and 0 <= value <= 1:
            return Response(float(value))
        log.warning("item '%s': %s is %r, wanted a share in [0, 1]", item, metric, value)
        return Response(None, status="unscored")


def document_hash(doc: Any) -> str:
    """``doc_hash`` of lm-eval's logs."""
    from lm_eval.utils import handle_non_serializable, hash_string

    return str(hash_string(json.dumps(doc, indent=2, default=handle_non_serializable, ensure_ascii=False)))


def prompt_hash(requests: Sequence[Any]) -> str:
    """``prompt_hash`` of lm-eval's logs."""
    from lm_eval.utils import hash_string

    return str(hash_string(requests[0].arguments[0]))


def _sample_rows(task: Any, doc_id: int, doc: Any, requests: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of one document, key by key as lm-eval's ``evaluate`` makes them."""
    from lm_eval.utils import hash_string

    rows = []
    for name in requests[0].filtered_resps:
        metrics = task.process_results(doc, [request.filtered_resps[name] for request in requests])
        target = task.doc_to_target(doc)
        row = {
            "doc_id": doc_id,
            "doc": doc,
            "target": target,
            "arguments": [request.args for request in requests],
            "resps": [request.resps for request in requests],
            "filtered_resps": [request.filtered_resps[name] for request in requests],
            "filter": name,
            "metrics": list(metrics),
            "doc_hash": document_hash(requests[0].doc),
            "prompt_hash": prompt_hash(requests),
            "target_hash": hash_string(str(target)),
        }
        rows.append(row | metrics)
    return rows


def _plain(value: Any) -> Any:
    from lm_eval.utils import handle_non_serializable

    return handle_non_serializable(value)


def _check_installed() -> None:
    try:
        import lm_eval  # noqa: F401
    except ImportError:
        raise InputError("needs lm-eval: pip install 'irteval[lm-eval]'", field="driver") from None


def _load(names: Sequence[str], include_path: Path | None, metadata: dict[str, Any]) -> Any:
    """Tasks and groups. Indexing all of lm-eval's own takes seconds, and is left out where it can be."""
    from lm_eval.tasks import TaskManager

    if include_path is not None and not include_path.is_dir():
        raise InputError("no such folder", file=str(include_path), field="include_path")
    manager = None
    if include_path is not None:
        manager = TaskManager(include_path=str(include_path), include_defaults=False, metadata=metadata)
    if manager is None or not set(names) <= set(manager.all_tasks):
        manager = TaskManager(include_path=include_path and str(include_path), metadata=metadata)
    if unknown := [name for name in names if not manager.match_tasks([name]) and not Path(name).is_file()]:
        raise InputError(f"lm-eval has no task '{unknown[0]}'", field="tasks")
    try:
        return manager.load(list(names))
    except Exception as error:  # data sets that can't be loaded raise anything
        raise InputError(f"{', '.join(names)}: {type(error).__name__}: {error}", field="tasks") from None


def _model(name: str, arguments: Mapping[str, Any]) -> Any:
    import random

    import numpy as np
    import torch
    from lm_eval.api.registry import get_model

    random.seed(SEEDS["random"])
    np.random.seed(SEEDS["numpy"])  # noqa: NPY002 - lm-eval's models draw from the global generators
    torch.manual_seed(SEEDS["torch"])
    try:
        return get_model(name).create_from_arg_obj(dict(arguments))
    except Exception as error:  # models raise anything, from a wrong path to too little memory
        raise InputError(f"model '{name}': {type(error).__name__}: {error}", field="model") from None


def _metric(name: str, task: Any, wanted: str) -> tuple[str, str | None]:
    """Metric and filter of a task's score; a filter of None is settled by the policy once there are rows."""
    higher = dict(task.higher_is_better())
    if wanted != "score":  # what a bank without the name of its metric has
        metric, _, chosen = wanted.partition(",")
        if metric not in higher:
            raise InputError(
                f"task '{name}' has no metric '{metric}', wanted one of {listed(sorted(higher))}",
                field="metric",
            )
        return metric, chosen or None
    fit = [metric for metric in higher if higher[metric] is not False]
    metric = default_metric(list(higher), fit, ()) or ""
    return metric, None


def _draws_at_random(task: Any) -> bool:
    """Whether examples come from lm-eval's plain sampler, which draws them anew for every document."""
    from lm_eval.api.samplers import ContextSampler

    return type(getattr(task, "sampler", None)) is ContextSampler


def _is_replayable(task: Any) -> bool:
    """Whether a document's examples can be told without building all documents before it."""
    from lm_eval.api.samplers import FirstNSampler
    from lm_eval.api.task import ConfigurableTask

    plain = getattr(type(task), "fewshot_context", None) is ConfigurableTask.fewshot_context
    return plain and (_draws_at_random(task) or type(getattr(task, "sampler", None)) is FirstNSampler)
