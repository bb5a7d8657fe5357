"""One subject being tested: ask, tell, estimate, stop.

The harness stays the user's own: ask which items to run, run them, tell what came out, until nothing is
asked any more. Items may be asked while others are still running, and answers may come late, out of order,
or not at all.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from irteval.bank import ItemBank
from irteval.cohort import Cohort, Decision, Look
from irteval.errors import BankMismatchError, InputError
from irteval.estimate.carried_prior import CarriedPrior
from irteval.estimate.result import Estimate
from irteval.estimate.stopping import Goal, Rival
from irteval.journal import JournalLine, RunFolder, now

Status = Literal["ok", "error", "timeout", "unscored"]

KNOWN_SUBJECT = "the subject belongs to the calibrated population: its score is no test of the bank"


@dataclass(frozen=True)
class ItemReference:
    """An item to ask.

    Attributes:
        item: its id.
        benchmark: its benchmark.
        step: the design's step that asks it.
        probability: its inclusion probability; None where it was chosen, not drawn.
    """

    item: str
    benchmark: str
    step: int
    probability: float | None


@dataclass(frozen=True)
class Response:
    """What came out of one item.

    Attributes:
        score: a share in [0, 1]; None where there is none.
        trials: n, where the score is k of n.
        status: ``ok``, ``error``, ``timeout`` or ``unscored``.
        cost: in the user's unit.
        tokens: that the item took, in and out.
        time: ISO 8601; now where None.
    """

    score: float | None
    trials: int | None = None
    status: Status = "ok"
    cost: float | None = None
    tokens: int | None = None
    time: str | None = None


@dataclass(frozen=True)
class SessionSettings:
    """How a session runs.

    Attributes:
        budget: most items to ask; None for the whole bank.
        target: half-width of the interval at which to stop; None never to.
        level: of the interval.
        batch: items between two looks, from the 26th on (before, most to choose at once); None for the
            default schedule.
        criterion: how items are picked. Chosen: ``score`` (the default: reduce the variance of the full
            score, then sample), ``fisher``, ``kl`` or ``d-optimal`` (information on ability),
            ``posterior-variance`` (the least certain answers). Drawn with known probabilities: ``random``,
            ``stratified``, ``balanced``, ``pps``, ``faq``.
        seed: of every draw.
        errors: what an item that failed to run counts as: ``missing`` or ``wrong``.
        costs: ``bank`` allows for what each item costs by the bank (criterion ``score``), so that the target
            is reached at less cost; ``ignore`` takes them to be alike.
        max_cost: ask nothing more once the told costs add up to this.
        max_tokens: likewise of tokens.
        shares: benchmark to the least and the greatest share of the items asked, so that each benchmark of a
            suite gets an estimate: ``{"mmlu": (0.1, 0.5)}``. A name may have ``*``.
        difference: stop when a difference of two full scores of this size would be found, at the level with
            a power of 80 %: from the rivals, or where there are none from another subject tested as closely.
        rivals: subject to lower and upper limit of its full score, at this level; equal where it is known.
        stop_rank: stop when the subject is known to be above or below each rival.
        prior_mean, prior_sd: ability and its standard error, a value a dimension, of a subject that this one
            follows, such as the checkpoint before: ``estimate.ability`` and ``estimate.ability_se``. What
            the answers say goes before it.
    """

    budget: int | None = None
    target: float | None = None
    level: float = 0.95
    batch: int | None = None
    criterion: str = "score"
    seed: int = 0
    errors: str = "missing"
    costs: str = "ignore"
    max_cost: float | None = None
    max_tokens: int | None = None
    shares: Mapping[str, Sequence[float]] | None = None
    difference: float | None = None
    rivals: Mapping[str, Sequence[float]] | None = None
    stop_rank: bool = False
    prior_mean: Sequence[float] | None = None
    prior_sd: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("budget", "batch", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{value}, wanted at least 1", field=name)
        for name in ("target", "level", "difference"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise InputError(f"{value}, wanted a fraction between 0 and 1", field=name)
        if self.max_cost is not None and not self.max_cost > 0:
            raise InputError(f"{self.max_cost}, wanted more than 0", field="max_cost")
        if self.errors not in ("missing", "wrong"):
            raise InputError(f"'{self.errors}', wanted missing or wrong", field="errors")
        if self.costs not in ("ignore", "bank"):
            raise InputError(f"'{self.costs}', wanted ignore or bank", field="costs")
        for name, (low, high) in (self.rivals or {}).items():
            if not 0 <= low <= high <= 1:
                wanted = "wanted 0 <= lower <= upper <= 1"
                raise InputError(f"{low:g} to {high:g} of '{name}', {wanted}", field="rivals")
        if self.stop_rank and not self.rivals:
            raise InputError("no rival, wanted at least one", field="rivals")
        if (self.prior_mean is None) != (self.prior_sd is None):
            raise InputError("wanted prior_mean and prior_sd, or neither", field="prior_mean")
        if any(not sd > 0 for sd in self.prior_sd or ()):
            raise InputError(f"{self.prior_sd}, wanted more than 0", field="prior_sd")
        _ = self.goal  # refuses a difference that no test can find

    @property
    def prior(self) -> CarriedPrior | None:
        """The ability that a subject starts from; None where it is like any other."""
        if self.prior_mean is None or self.prior_sd is None:
            return None
        return CarriedPrior(self.prior_mean, self.prior_sd)

    @property
    def goal(self) -> Goal | None:
        """At what to stop, budgets aside; None for never."""
        if self.target is None and self.difference is None and not self.stop_rank:
            return None
        rivals = tuple(Rival(name, low, high) for name, (low, high) in (self.rivals or {}).items())
        return Goal(self.level, self.target, self.difference, rivals, self.stop_rank)

    def item_costs(self, bank: ItemBank) -> NDArray[np.float64] | None:
        """What each item costs, ``[N]``; None where costs are ignored.

        Raises:
            InputError: the bank has no costs, or one that is not above 0.
        """
        if self.costs == "ignore":
            return None
        if "cost" not in bank.item_table:
            raise InputError(f"bank '{bank.info.name}' has no costs of items", field="costs")
        cost = bank.item_table["cost"].to_numpy(dtype=np.float64)
        if not (np.isfinite(cost) & (cost > 0)).all():
            worst = bank.items[int(np.argmin(np.isfinite(cost) & (cost > 0)))]
            raise InputError(f"item '{worst}' has no cost above 0", field="costs")
        return cost

    def score(self, response: Response) -> float:
        """What a response counts as; NaN where it stays missing."""
        if response.status in ("error", "timeout"):
            return 0.0 if self.errors == "wrong" else np.nan
        if response.status != "ok" or response.score is None:
            return np.nan
        if not 0 <= response.score <= 1:
            raise InputError(f"{response.score}, wanted a share in [0, 1]", field="score")
        return float(response.score)


class Session:
    """One subject tested on a bank.

    Args:
        bank: the calibrated items.
        subject: the subject's id; part of the seed of every draw.
        folder: an open run folder that keeps what is asked and told; None keeps it in memory.
        device: where the arithmetic runs.
        settings: the attributes of `SessionSettings`, as keywords.

    Example:
        >>> session = Session(bank, "my-model", budget=50)          # doctest: +SKIP
        >>> while batch := session.ask(16):                         # doctest: +SKIP
        ...     session.tell({reference.item: run(reference.item) for reference in batch})
        >>> session.estimate().interval                             # doctest: +SKIP

    Raises:
        InputError: a setting outside its range.
    """

    def __init__(
        self,
        bank: ItemBank,
        subject: str = "subject",
        *,
        folder: RunFolder | None = None,
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        self.bank = bank
        self.subject = subject
        self.settings = SessionSettings(**settings)
        self.folder = folder
        self._cohort = Cohort(
            bank,
            [subject],
            criterion=self.settings.criterion,
            seed=self.settings.seed,
            cost=self.settings.item_costs(bank),
            shares=self.settings.shares,
            prior=self.settings.prior,
            device=device,
        )
        self._row = torch.zeros(1, dtype=torch.long, device=self._cohort.device)
        self._budget = min(self.settings.budget or len(bank), len(bank))
        self._queue: deque[ItemReference] = deque()
        self._asked: dict[str, ItemReference] = {}
        self._told: dict[str, Response] = {}
        self._looks: list[dict[str, Any]] = []
        self._stopped: str | None = None
        self._goal = self.settings.goal
        self._decision: Decision | None = None

    # What it says

    @property
    def stopped(self) -> str | None:
        """Why nothing more is asked: ``target``, ``difference``, ``rank``, ``budget``, ``bank_empty``; None
        while it goes on."""
        return self._stopped

    @property
    def pending(self) -> list[str]:
        """Items asked and not told yet, in the order of asking."""
        return [item for item in self._asked if item not in self._told]

    @property
    def in_flight(self) -> list[ItemReference]:
        """The same with all that is known of them."""
        return [self._asked[item] for item in self.pending]

    @property
    def budget(self) -> int:
        """Most items that are asked."""
        return self._budget

    @property
    def answers(self) -> dict[str, Response]:
        """Every response told so far, by item."""
        return dict(self._told)

    @property
    def trajectory(self) -> pd.DataFrame:
        """The estimate at every look: ``subject, step, items_asked, score, lo, hi, ability_0 …``."""
        return pd.DataFrame(self._looks)

    def estimate(self) -> Estimate:
        """The full score and its interval from the answers told so far."""
        goal = None if self._decision is None else self._goal
        look = self._cohort.look(self._row, self.settings.level, goal, self._decision)
        return self._cohort.estimates(look, [self._warnings()])[0].with_stop(self._stopped)

    # The loop

    def ask(self, k: int | None = None) -> list[ItemReference]:
        """The next items to run; none when the session has stopped or waits for its last answers.

        Args:
            k: how many at most; as many as the design wants before its next look where None.
        """
        if k is not None and k < 1:
            raise InputError(f"{k}, wanted at least 1", field="k")
        if not self._queue or self._spent():
            self._check_stop()
        asked: list[ItemReference] = []
        planned = False
        while self._stopped is None and len(asked) < (k or 1):
            if not self._queue:
                planned = self._plan(None if k is None else k - len(asked))
                if not planned:
                    break
            taken = min(len(self._queue), len(self._queue) if k is None else k - len(asked))
            asked += [self._queue.popleft() for _ in range(taken)]
        self._asked |= {reference.item: reference for reference in asked}
        if self.folder is not None:
            waiting = list(self._queue) if planned else []
            self.folder.append_asked(
                [self._asked_line(reference, "asked") for reference in asked]
                + [self._asked_line(reference, "planned") for reference in waiting]
            )
        return asked

    def tell(self, answers: Mapping[str, float | bool | Response | None]) -> None:
        """Take in what came out of items, in any order; None for an item that gave no score.

        Args:
            answers: item id to score, or to a `Response` with more to say.

        Raises:
            BankMismatchError: an item that the bank does not hold.
            InputError: an item that was not asked, a score outside [0, 1], or a second, different answer to
                an item. Nothing of the call is taken in then.
        """
        responses = {item: _response(value) for item, value in answers.items()}
        news = {item: response for item, response in responses.items() if self._is_news(item, response)}
        if not news:
            return
        scores = [self.settings.score(response) for response in news.values()]
        if self.folder is not None:
            self.folder.append_told(self._told_line(item, response) for item, response in news.items())
        self._take(list(news), scores)
        self._told |= news
        if not self.pending and not self._queue:
            self._check_stop()

    def _plan(self, wanted: int | None) -> bool:
        """Queue the next step of the design; False where nothing is left to ask."""
        cohort = self._cohort
        limit = min(self._budget - int(cohort.asked[0]), int(cohort.open_items()[0]))
        if limit < 1:
            return False
        plan = cohort.plan(self._row, limit, self.settings.batch or wanted)
        for item, probability in zip(plan.items[0].tolist(), plan.inclusion[0].tolist(), strict=True):
            known = None if np.isnan(probability) else probability
            self._queue.append(
                ItemReference(self.bank.items[item], self.bank.benchmarks[item], plan.step, known)
            )
        return True

    def _take(self, items: Sequence[str], scores: Sequence[float]) -> None:
        device = self._row.device
        numbers = torch.as_tensor(self.bank.index(items), device=device)
        self._cohort.tell(
            self._row, numbers[None], torch.tensor([scores], dtype=torch.float64, device=device)
        )

    def _is_news(self, item: str, response: Response) -> bool:
        """Whether a response says something that was not known; a lost answer may still come in."""
        self.bank.index([item])
        if item not in self._asked:
            raise InputError(f"item '{item}' was not asked", field="item")
        before = self._told.get(item)
        score = self.settings.score(response)
        if before is None or np.isnan(self.settings.score(before)):
            return before is None or not np.isnan(score)
        if score != self.settings.score(before):
            raise InputError(
                f"item '{item}' has the answer {before.score}, now {response.score}", field="score"
            )
        return False

    def _check_stop(self) -> None:
        """Look where nothing is under way, and decide whether to go on."""
        if self._stopped is not None:
            return
        cohort, settings = self._cohort, self.settings
        quiet, spent = not self.pending, self._spent()
        exhausted = quiet and (int(cohort.open_items()[0]) == 0 or int(cohort.asked[0]) >= self._budget)
        if not self._told or (self._goal is None and not quiet and not spent):
            self._stopped = "bank_empty" if exhausted and int(cohort.open_items()[0]) == 0 else None
            return
        look = cohort.look(self._row, settings.level, self._goal)
        self._note(look)
        if reason := look.reason(0, self._goal):
            self._stopped, self._decision = reason, look.decision
        elif exhausted or spent:
            self._stopped = "bank_empty" if int(cohort.open_items()[0]) == 0 else "budget"

    def _spent(self) -> bool:
        """Whether a budget other than items is used up."""
        settings, told = self.settings, self._told.values()
        cost = settings.max_cost is not None and sum(r.cost or 0 for r in told) >= settings.max_cost
        return cost or (
            settings.max_tokens is not None and sum(r.tokens or 0 for r in told) >= settings.max_tokens
        )

    def _note(self, look: Look) -> None:
        """Add a look to the trajectory, once for each number of answers."""
        answered = int(look.answers.answered[0].sum())
        if not self._looks or self._looks[-1]["items_asked"] != answered:
            estimate = self._cohort.estimates(look)[0]
            self._looks.append(trajectory_row(estimate, int(self._cohort.steps[0])))

    def _warnings(self) -> tuple[str, ...]:
        told = self._told.values()
        without = [response for response in told if response.status != "ok" or response.score is None]
        lost = [response for response in without if np.isnan(self.settings.score(response))]
        lines = [_lost(lost, len(told), "gave no score and count as missing")] if lost else []
        if wrong := [response for response in without if response not in lost]:
            lines.append(_lost(wrong, len(told), "failed and count as wrong"))
        if self.bank.knows_subject(self.subject):
            lines.append(KNOWN_SUBJECT)
        return tuple(lines)

    # Keeping it

    @classmethod
    def create(
        cls, folder: str | PathLike[str], bank: str | PathLike[str], subject: str = "subject", **settings: Any
    ) -> Session:
        """Start a session that lives in a folder, so that it survives the process.

        Args:
            folder: where; must not hold a run yet.
            bank: the bank's folder; its path is kept.
            subject: the subject's id.
            settings: the attributes of `SessionSettings`.
        """
        loaded = ItemBank.load(bank)
        document = run_settings(loaded, bank, subject=subject, **asdict(SessionSettings(**settings)))
        return cls(loaded, subject, folder=RunFolder.create(folder, document), **settings)

    @classmethod
    def create_or_resume(
        cls,
        folder: str | PathLike[str],
        bank: ItemBank,
        path: str | PathLike[str],
        subject: str,
        driver: Mapping[str, Any],
        *,
        device: str = "cpu",
        **settings: Any,
    ) -> Session:
        """The session of a driver: the one in the folder where it has these settings, or a new one.

        Args:
            folder: where.
            bank, path: the bank, and the folder that it is kept in.
            subject: the subject's id.
            driver: what the driver was set to, kept in ``run.json``.
            device: where the arithmetic runs.
            settings: the attributes of `SessionSettings`.

        Raises:
            InputError: the folder holds a run with other settings, or another process uses it.
        """
        chosen = asdict(SessionSettings(**settings))
        document = run_settings(bank, path, subject=subject, **chosen, driver=dict(driver))
        place = RunFolder.create_or_resume(folder, document)
        session = cls(bank, subject, folder=place, device=device, **settings)
        session._restore(place.asked(), place.told())
        return session

    @classmethod
    def resume(cls, folder: str | PathLike[str], bank: ItemBank | None = None) -> Session:
        """Go on with a session: what was told is told again, what was asked stays pending.

        Args:
            folder: of the session.
            bank: the bank, if it is at hand; loaded from where it was otherwise.

        Raises:
            BankMismatchError: the bank is not the one that the session was started with.
        """
        place = RunFolder.open(folder)
        settings = dict(place.settings)
        path, content_hash = settings.pop("bank"), settings.pop("bank_hash")
        settings.pop("driver", None)
        bank = ItemBank.load(path) if bank is None else bank
        if bank.info.content_hash != content_hash:
            raise BankMismatchError("the bank has changed since the session was started", file=str(path))
        place.lock()
        session = cls(bank, settings.pop("subject"), folder=place, **settings)
        session._restore(place.asked(), place.told())
        return session

    def save(self, folder: str | PathLike[str], bank: str | PathLike[str]) -> None:
        """Keep a session that was in memory, and go on in that folder.

        Args:
            folder: where; must not hold a run yet.
            bank: folder that the bank is saved in.
        """
        document = run_settings(self.bank, bank, subject=self.subject, **asdict(self.settings))
        self.folder = RunFolder.create(folder, document)
        self.folder.append_asked(self._asked_line(reference, "asked") for reference in self._asked.values())
        self.folder.append_asked(self._asked_line(reference, "planned") for reference in self._queue)
        self.folder.append_told(self._told_line(item, response) for item, response in self._told.items())

    def write_results(self) -> Estimate:
        """Write the estimate and the trajectory into the folder; returns the estimate."""
        estimate = self.estimate()
        if self.folder is not None:
            self.folder.write_trajectory(self.trajectory)
            self.folder.write_estimates({"estimates": [estimate.to_json()]})
        return estimate

    def close(self) -> None:
        """Let other processes use the folder."""
        if self.folder is not None:
            self.folder.close()

    def _restore(self, asked: Sequence[JournalLine], told: Sequence[JournalLine]) -> None:
        """Ask, look and tell again, step by step, what the journal holds."""
        responses = {
            line.item: Response(
                line.score, line.trials, cast(Status, line.status), line.cost, line.tokens, line.time
            )
            for line in told
            if line.status not in ("asked", "planned")
        }
        steps: dict[int, dict[str, ItemReference]] = {}
        handed = {line.item for line in asked if line.status == "asked"}
        benchmark = dict(zip(self.bank.items, self.bank.benchmarks, strict=True))
        for line in asked:
            step = line.step or 0
            reference = ItemReference(line.item, benchmark[line.item], step, line.probability)
            steps.setdefault(step, {})[line.item] = reference
        for step in sorted(steps):
            references = list(steps[step].values())
            inclusion = [np.nan if r.probability is None else r.probability for r in references]
            if self._told:
                self._note(self._cohort.look(self._row, self.settings.level, self._goal))
            self._cohort.restore(0, self.bank.index(r.item for r in references).tolist(), inclusion, step)
            self._asked |= {r.item: r for r in references if r.item in handed}
            self._queue.extend(r for r in references if r.item not in handed)
            known = [r.item for r in references if r.item in responses]
            if known:
                self._take(known, [self.settings.score(responses[item]) for item in known])
                self._told |= {item: responses[item] for item in known}
        self._told = {item: responses[item] for item in responses if item in self._told}
        if self._told and not self.pending and not self._queue:
            self._check_stop()

    def _asked_line(self, reference: ItemReference, status: Literal["asked", "planned"]) -> JournalLine:
        return JournalLine(
            time=now(),
            subject=self.subject,
            item=reference.item,
            score=None,
            status=status,
            step=reference.step,
            probability=reference.probability,
        )

    def _told_line(self, item: str, response: Response) -> JournalLine:
        reference = self._asked[item]
        return JournalLine(
            time=response.time or now(),
            subject=self.subject,
            item=item,
            score=response.score,
            trials=response.trials,
            status=response.status,
            cost=response.cost,
            tokens=response.tokens,
            step=reference.step,
            probability=reference.probability,
        )


def run_settings(bank: ItemBank, path: str | PathLike[str], **settings: Any) -> dict[str, Any]:
    """What ``run.json`` keeps: the bank's place and hash, and how the run goes."""
    return {"bank": str(Path(path).resolve()), "bank_hash": bank.info.content_hash, **settings}


def trajectory_row(estimate: Estimate, step: int) -> dict[str, Any]:
    """One row of ``trajectory.parquet``."""
    row = {
        "subject": estimate.subject,
        "step": step,
        "items_asked": estimate.items_asked,
        "score": estimate.score,
        "lo": estimate.interval[0],
        "hi": estimate.interval[1],
    }
    return row | {f"ability_{k}": value for k, value in enumerate(estimate.ability)}


def _lost(responses: Sequence[Response], told: int, what: str) -> str:
    """How many items gave no score, by outcome."""
    counts = Counter(response.status if response.status != "ok" else "unscored" for response in responses)
    outcomes = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return f"{len(responses)} of {told} items {what} ({outcomes})"


def _response(value: float | bool | Response | None) -> Response:
    if isinstance(value, Response):
        return value
    return Response(None if value is None else float(value))
