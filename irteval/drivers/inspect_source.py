"""A source of samples for Inspect: what runs next follows from the answers so far.

Inspect asks a `SampleSource` for samples while its task runs. Each sample that ends makes room for one more,
so that the connections stay busy, with every solver, scorer and sandbox.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from inspect_ai import SampleSource
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample
from inspect_ai.scorer import value_to_float

from irteval.bank import ItemBank
from irteval.errors import BankMismatchError, InputError
from irteval.responses.logs.inspect_log import sample_content
from irteval.session import Response, Session

log = logging.getLogger(__name__)


class AdaptiveSource(SampleSource):
    """Asks a session which samples to run, and tells it what came out.

    Args:
        session: of the subject.
        samples: by item, as `match_samples` finds them.
        parallel: samples in flight.
        scorer: whose value is the score, ``scorer`` or ``scorer.key``; the first one where None.
        max_seconds: ask nothing more after so long.
    """

    def __init__(
        self,
        session: Session,
        samples: dict[str, Sample],
        *,
        parallel: int = 10,
        scorer: str | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.session, self.samples, self.parallel, self.scorer = session, samples, parallel, scorer
        self._items = {str(sample.id): item for item, sample in samples.items()}
        self._ends = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self._to_float = value_to_float()
        self._started: list[Sample] | None = None
        self._in_flight: set[str] = set()

    def initial_samples(self) -> list[Sample]:
        """What was in flight when an earlier process ended, and the first that the session asks."""
        if self._started is None:  # Inspect asks whenever the task is copied
            left = [reference.item for reference in self.session.in_flight]
            self._in_flight |= set(left)
            self._started = [self.samples[item] for item in left] + self._next()
        return self._started

    async def next_samples(self) -> list[Sample] | None:
        """More samples once none is in flight; None ends the task."""
        return self._next() or None

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Tell the answer, and fill the room that it left."""
        if sample.epoch > 1:
            raise InputError("more than one epoch, wanted one: an item is asked once", field="epochs")
        return self._told(self._items[str(sample.id)], self._response(sample))

    async def sample_abandoned(self, sample: Sample, epoch: int) -> list[Sample] | None:
        """A sample that was cancelled is an error."""
        return self._told(self._items[str(sample.id)], Response(None, status="error"))

    def _told(self, item: str, response: Response) -> list[Sample] | None:
        self._in_flight.discard(item)
        self.session.tell({item: response})
        return self._next() or None

    def _next(self) -> list[Sample]:
        room = self.parallel - len(self._in_flight)
        if room < 1 or time.monotonic() >= self._ends:
            return []
        asked = [reference.item for reference in self.session.ask(room)]
        self._in_flight |= set(asked)
        return [self.samples[item] for item in asked]

    def _response(self, sample: EvalSample) -> Response:
        """The outcome of a sample: a score counts however it ended, as Inspect's own does."""
        usage = sample.model_usage or {}
        tokens = sum(part.total_tokens for part in usage.values()) or None
        scores = sample.scores or {}
        if not scores:
            failed = sample.error is not None or sample.limit is not None
            timed_out = (
                sample.error is None and sample.limit is not None and sample.limit.type in ("time", "working")
            )
            return Response(
                None, status="timeout" if timed_out else "error" if failed else "unscored", tokens=tokens
            )
        score = self._score({name: score.value for name, score in scores.items()})
        if score is None:
            log.warning("sample '%s' has the scores %s, wanted a share in [0, 1]", sample.id, list(scores))
            return Response(None, status="unscored", tokens=tokens)
        return Response(score, tokens=tokens)

    def _score(self, values: dict[str, Any]) -> float | None:
        """The scorer's value as a share; None where it is none."""
        name, key = self.scorer or next(iter(values)), None
        if name not in values and "." in name:
            name, _, key = name.partition(".")
        if name not in values:
            raise InputError(f"no scorer '{name}', wanted one of {', '.join(values)}", field="scorer")
        value = values[name]
        if key is not None:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None or isinstance(value, dict | list):
            return None
        number = float(self._to_float(value))
        return number if 0 <= number <= 1 else None


def match_samples(bank: ItemBank, samples: Sequence[Sample], task: str) -> dict[str, Sample]:
    """The sample of every item of a bank, known by its content as ``irteval import`` knows it.

    Args:
        bank: whose items are asked.
        samples: of the task's dataset; one without an id gets its place, as Inspect numbers them.
        task: its name, for a message.

    Raises:
        BankMismatchError: an item that is no sample of the task.
    """
    found: dict[str, Sample] = {}
    copies: Counter[int] = Counter()
    for place, sample in enumerate(samples, 1):
        if sample.id is None:
            sample.id = place
        content = sample_content(
            {
                "id": sample.id,
                "input": sample.input
                if isinstance(sample.input, str)
                else [message.model_dump() for message in sample.input],
                "target": sample.target,
                "choices": sample.choices,
            }
        )
        copies[content] += 1
        again = f"#{copies[content]}" if copies[content] > 1 else ""
        found[f"{content:016x}{again}"] = sample
    keys = {item: item.rpartition("/")[2] for item in bank.items}
    if missing := [item for item, key in keys.items() if key not in found]:
        raise BankMismatchError(
            f"{len(missing)} of the {len(bank)} items of bank '{bank.info.name}' are no sample of '{task}', "
            f"first '{missing[0]}'; wanted ids of samples' content, as irteval import makes them",
            field="item",
        )
    return {item: found[key] for item, key in keys.items()}
