"""The loop of a live driver: ask, run several calls at once, tell each as it comes in."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

from irteval.errors import IrtevalError
from irteval.estimate.result import Estimate
from irteval.session import ItemReference, Response, Session

MOST_FAILED_CALLS = 3  # in a row, before the fault is taken to be the harness's and not the items'

Outcomes = Mapping[str, Response]


class HarnessError(IrtevalError):
    """What should answer the items does not work at all."""

    code = "harness"


class Harness(Protocol):
    """What answers items for real."""

    def recover(self, items: Sequence[ItemReference]) -> Outcomes:
        """Answers to items in flight that an earlier process left behind."""
        ...

    def answer(self, items: Sequence[ItemReference]) -> Outcomes:
        """Run items, in a thread of its own; one that fails has an outcome too, as has every item."""
        ...

    def stop(self) -> None:
        """End what is running, after an interrupt or an error."""
        ...


def run_live(
    session: Session,
    harness: Harness,
    *,
    at_once: int | None = None,
    concurrency: int = 1,
    max_seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Estimate:
    """Test a subject until its session stops.

    A call that ends makes room for the next one; its items are chosen with those still in flight allowed for.
    What an earlier process asked and nobody answered is run first.

    Calls in which every item failed are held back: if three come in a row, or nothing else came at all, the
    harness is taken to be broken, its items stay in flight, and the run goes on from there when it is mended.

    Args:
        session: of the subject; its folder is the journal.
        harness: what answers the items.
        at_once: items a call at most; as many as the design wants before its next look where None.
        concurrency: calls at once.
        max_seconds: ask nothing more once this call has taken so long.
        progress: called with the number of items told, and most to ask.

    Raises:
        HarnessError: the harness is broken.
    """
    began = time.monotonic()
    if left := harness.recover(session.in_flight):
        session.tell(left)
    backlog = deque(session.in_flight)
    held: list[Outcomes] = []
    running: set[Future[Outcomes]] = set()

    def in_time() -> bool:
        return max_seconds is None or time.monotonic() - began < max_seconds

    def next_items() -> list[ItemReference]:
        if backlog:
            return [backlog.popleft() for _ in range(min(len(backlog), at_once or len(backlog)))]
        return session.ask(at_once)

    with ThreadPoolExecutor(concurrency) as pool:
        try:
            while True:
                while len(running) < concurrency and in_time() and (items := next_items()):
                    running.add(pool.submit(harness.answer, items))
                if not running:
                    if held and any(response.status == "ok" for response in session.answers.values()):
                        session.tell(_merged(held))
                        held = []
                        continue
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outcomes = future.result()
                    held.append(outcomes)
                    if all(response.status in ("error", "timeout") for response in outcomes.values()):
                        if len(held) >= MOST_FAILED_CALLS:
                            raise HarnessError(f"{len(held)} calls in a row failed; {_resume_hint(session)}")
                        continue
                    session.tell(_merged(held))
                    held = []
                if progress is not None:
                    progress(len(session.answers), session.budget)
        except BaseException:
            harness.stop()
            raise
    if held:
        raise HarnessError(f"no item was answered; {_resume_hint(session)}")
    estimate = session.write_results()
    return estimate if session.stopped or in_time() else estimate.with_stop("budget")


def _merged(outcomes: Sequence[Outcomes]) -> dict[str, Response]:
    return {item: response for part in outcomes for item, response in part.items()}


def _resume_hint(session: Session) -> str:
    """What a person does next."""
    if session.folder is None:
        return "see the log above"
    return "see the log above; the same command goes on where this one ended"
