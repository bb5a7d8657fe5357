"""Many subjects tested at once: what was asked, what was answered, what to ask next, what it says.

Every array has one row a subject, so that a thousand replayed sessions cost little more than one. `Session`
is a cohort of one with names, files and a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from irteval.bank import ItemBank
from irteval.calibrate.ability import ability_posterior
from irteval.calibrate.ability_grid import AbilityGrid
from irteval.calibrate.prediction import Prediction
from irteval.calibrate.threads import threads_for
from irteval.errors import InputError
from irteval.estimate.carried_prior import CarriedPrior, CarriedScorer
from irteval.estimate.design_based import DesignScore, planned_variance, pooled_design_score
from irteval.estimate.interval import Interval
from irteval.estimate.mixture import ModelScore
from irteval.estimate.person_fit import misfit_warnings
from irteval.estimate.result import Estimate
from irteval.estimate.scorer import MODEL_MARGIN, Answers, Scorer
from irteval.estimate.stopping import Goal, Reason, widened
from irteval.select.balanced import BalancedDesign
from irteval.select.content import ContentBounds
from irteval.select.d_optimal import DOptimalDesign
from irteval.select.design import Design, FisherDesign, Plan, RandomDesign, ScoreDesign, View
from irteval.select.faq import FaqDesign
from irteval.select.kullback_leibler import KullbackLeiblerDesign
from irteval.select.posterior_variance import PosteriorVarianceDesign
from irteval.select.proportional import ProportionalDesign
from irteval.select.stratified import StratifiedDesign
from irteval.select.systematic import uniforms

CRITERIA = (
    "score",
    "random",
    "fisher",
    "kl",
    "d-optimal",
    "posterior-variance",
    "stratified",
    "balanced",
    "pps",
    "faq",
)
ON_GRID = ("fisher", "kl")  # criteria that follow a one-dimensional ability
WITH_SHARES = ("score", "random", "stratified", "pps", "faq")  # criteria that keep to shares of benchmarks
OPEN, PENDING, ANSWERED, LOST = 0, 1, 2, 3
LEAST_ANSWERS = 25  # before a stop on the model's width
LEAST_DRAWS = 25  # answers drawn by probability before a stop on the design-based width


class Cohort:
    """S subjects tested on one bank.

    Args:
        bank: the calibrated items.
        subjects: ids, part of the seed of every draw.
        criterion: one of `CRITERIA`.
        seed: of every draw.
        available: whether a subject can be asked an item at all, ``[S, N]``; everything where None.
        cost: of each item, ``[N]``, which the criterion ``score`` allows for; all alike where None.
        shares: benchmark to least and greatest share of the items asked, as in `ContentBounds.of`.
        prior: ability of a subject that these follow, such as an earlier checkpoint.
        device: where tensors live.

    Attributes:
        state: open, pending, answered or lost, ``[S, N]``.
        asked: items asked, ``[S]``.
        steps: steps of the design so far, ``[S]``.
    """

    def __init__(
        self,
        bank: ItemBank,
        subjects: Sequence[str],
        *,
        criterion: str = "score",
        seed: int = 0,
        available: NDArray[np.bool_] | None = None,
        cost: NDArray[np.float64] | None = None,
        shares: Mapping[str, Sequence[float]] | None = None,
        prior: CarriedPrior | None = None,
        device: str = "cpu",
    ) -> None:
        if criterion not in CRITERIA:
            raise InputError(f"'{criterion}', wanted one of {', '.join(CRITERIA)}", field="criterion")
        if shares and criterion not in WITH_SHARES:
            wanted = f"with shares wanted one of {', '.join(WITH_SHARES)}"
            raise InputError(f"'{criterion}', {wanted}", field="criterion")
        self.scorer = Scorer(bank, device) if prior is None else CarriedScorer(bank, prior, device)
        self.subjects = tuple(subjects)
        self.seed = seed
        self.device = self.scorer.device
        relative = np.ones(len(bank)) if cost is None else cost / cost.mean()
        self._cost = torch.as_tensor(relative, dtype=torch.float64, device=self.device)
        self._content = ContentBounds.of(bank.benchmarks, shares, self.device) if shares else None
        shape = (len(self.subjects), len(bank.items))
        self._available = (
            torch.ones(shape, dtype=torch.bool, device=self.device)
            if available is None
            else torch.as_tensor(available, dtype=torch.bool, device=self.device)
        )
        self.state = torch.zeros(shape, dtype=torch.int8, device=self.device)
        self.asked = torch.zeros(shape[0], dtype=torch.long, device=self.device)
        self._y = torch.full(shape, torch.nan, dtype=torch.float64, device=self.device)
        # In the order of asking, [S, M]: item, step, inclusion probability, prediction when asked.
        self._items = torch.zeros((shape[0], 0), dtype=torch.long, device=self.device)
        self._step = torch.zeros_like(self._items)
        self._inclusion = torch.zeros_like(self._items, dtype=torch.float64)
        self._p = torch.zeros_like(self._inclusion)
        # A step and score, [S, B, G]: sum of predictions over what was open, planned variance.
        groups = len(self.scorer.names)
        self._base = torch.zeros((shape[0], 0, groups), dtype=torch.float64, device=self.device)
        self._planned = torch.zeros_like(self._base)
        self.steps = torch.zeros_like(self.asked)
        self._seen: tuple[list[int], Answers, Prediction] | None = None
        on_grid = criterion in ON_GRID
        self._grid = AbilityGrid(bank.parameters, shape[0], self.device) if on_grid else None
        self._design = self._make_design(criterion)

    def _make_design(self, criterion: str) -> Design:
        if self._grid is not None:
            on_grid = {"fisher": FisherDesign, "kl": KullbackLeiblerDesign}
            return on_grid[criterion](self._grid)
        parameters = self.scorer.bank.parameters
        makers: dict[str, Callable[[], Design]] = {
            "score": ScoreDesign,
            "random": RandomDesign,
            "d-optimal": lambda: DOptimalDesign(parameters, self.device),
            "posterior-variance": PosteriorVarianceDesign,
            "stratified": lambda: StratifiedDesign(self.scorer.source_mean),
            "balanced": lambda: BalancedDesign(parameters, self.device),
            "pps": ProportionalDesign,
            "faq": FaqDesign,
        }
        return makers[criterion]()

    @property
    def items_total(self) -> int:
        """N, the items of the bank."""
        return int(self.state.shape[1])

    def open_items(self) -> Tensor:
        """Items that can still be asked, ``[S]``."""
        return ((self.state == OPEN) & self._available).sum(1)

    def wanted(self, rows: Tensor, batch: int | None = None) -> Tensor:
        """How many items each of these subjects would be asked next if none were lacking, ``[R]``."""
        return torch.tensor(
            [self._design.wanted(asked, batch) for asked in self.asked[rows].tolist()], device=self.device
        )

    def plan(self, rows: Tensor, limit: int, batch: int | None = None) -> Asked:
        """Choose the next items of subjects that were asked equally many, and mark them as pending.

        Args:
            rows: numbers of subjects with open items, ``[R]``.
            limit: at most so many items.
            batch: items between two looks; the design's own schedule where None.
        """
        frame = self._frame(rows)
        step = int(self.steps[rows].max())
        limit = min(limit, int(frame.sum(1).min()))
        with threads_for(frame.numel()):
            plan = self._design.plan(self._view(rows, frame, step), limit, batch)
        self._record(rows, frame, plan, step)
        drawn = torch.full(plan.items.shape, torch.nan, dtype=torch.float64, device=self.device)
        return Asked(
            plan.items, drawn if plan.inclusion is None else plan.inclusion.gather(1, plan.items), step
        )

    def restore(self, row: int, items: Sequence[int], inclusion: Sequence[float], step: int) -> None:
        """Mark items as asked before, in another process or by another program, in one step of one subject.

        Predictions are made anew from the answers to earlier steps. They do not depend on what this step
        drew, which is all that the design-based score asks of them.

        Args:
            row: number of the subject.
            items: item numbers.
            inclusion: their inclusion probabilities; NaN where they were chosen.
            step: the step they were asked in, after every step restored so far.
        """
        rows = torch.tensor([row], device=self.device)
        asked = torch.tensor([list(items)], dtype=torch.long, device=self.device)
        drawn = torch.tensor([list(inclusion)], dtype=torch.float64, device=self.device)
        frame = self._frame(rows)
        plan = Plan(asked)
        if not bool(drawn.isnan().any()):
            view = self._view(rows, frame, step)
            size, p = self._design.sizes(view)
            everywhere = view.inclusion(size, asked.shape[1]).scatter(1, asked, drawn)
            plan = Plan(asked, everywhere, p)
        self._record(rows, frame, plan, step)

    def adopt(self, scores: Tensor) -> None:
        """Take in answers ``[S, N]`` to items that were asked in a way nobody knows; NaN for none."""
        known = ~scores.isnan()
        longest = int(known.sum(1).max())
        self._grow(longest, 1)
        order = known.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :longest]
        self._items[:, :longest] = order
        self._step[:, :longest] = torch.where(known.gather(1, order), 0, -1)
        self._p[:, :longest] = self.scorer.source_mean[order]
        self.state[known] = ANSWERED
        self._y[known] = scores[known]
        self.asked[:] = known.sum(1)
        self.steps[:] = 1
        self._seen = None

    def _frame(self, rows: Tensor) -> Tensor:
        return (self.state[rows] == OPEN) & self._available[rows]

    def _view(self, rows: Tensor, frame: Tensor, step: int) -> View:
        pending = (self.state[rows] == PENDING).sum(1)
        waiting = torch.full((len(rows), int(pending.max())), -1, dtype=torch.long, device=self.device)
        if waiting.shape[1]:
            order = (self.state[rows] == PENDING).to(torch.int8).argsort(dim=1, descending=True, stable=True)
            place = torch.arange(waiting.shape[1], device=self.device)
            waiting = torch.where(place < pending[:, None], order[:, : waiting.shape[1]], -1)

        def mixed() -> tuple[Tensor, Tensor]:
            answers, prediction = self._predict(rows)
            model = self.scorer.model_score(prediction, answers)
            return (model.weight[..., None] * prediction.probability).sum(1), model.in_range

        return View(
            asked=int(self.asked[rows].max()),
            frame=frame,
            rest=(self.state[rows] != ANSWERED).double(),
            pending=waiting,
            weights=self.scorer.weights[0],
            source_mean=self.scorer.source_mean,
            ability=lambda: self._ability(rows),
            posterior=lambda: self._posterior(rows),
            prediction=lambda: self._predict(rows)[1],
            mixed=mixed,
            uniform=uniforms(self.seed, [self.subjects[r] for r in rows.tolist()], step).to(self.device),
            cost=self._cost,
            content=None if self._content is None else self._content.after(self.state[rows] != OPEN),
        )

    def _ability(self, rows: Tensor) -> Tensor:
        assert self._grid is not None  # only designs on the grid ask
        return self._grid.mean(rows)

    def _posterior(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        answers = self._answers(rows)
        return ability_posterior(self.scorer.bank.parameters, answers.items, answers.y, answers.weight)

    def _predict(self, rows: Tensor) -> tuple[Answers, Prediction]:
        """Answers and predictions; a look and the plan after it share them."""
        if self._seen is None or self._seen[0] != rows.tolist():
            answers = self._answers(rows)
            self._seen = rows.tolist(), answers, self.scorer.predict(answers)
        return self._seen[1:]

    def _answers(self, rows: Tensor) -> Answers:
        answered = (self.state[rows] == ANSWERED).double()
        y = self._y[rows].nan_to_num()
        items = self._items[rows]
        # Slots beyond a subject's own number of questions hold item 0 with weight 0.
        used = self._step[rows] >= 0
        return Answers(items, y.gather(1, items), answered.gather(1, items) * used, answered, y)

    def _record(self, rows: Tensor, frame: Tensor, plan: Plan, step: int) -> None:
        count = plan.items.shape[1]
        first = int(self.asked[rows].max())
        self._grow(first + count, step + 1)
        place = torch.arange(first, first + count, device=self.device)
        self._items[rows[:, None], place] = plan.items
        self._step[rows[:, None], place] = step
        if plan.inclusion is not None and plan.p is not None:
            weights = self.scorer.weights
            self._inclusion[rows[:, None], place] = plan.inclusion.gather(1, plan.items)
            self._p[rows[:, None], place] = plan.p.gather(1, plan.items)
            unasked = (self.state[rows] == OPEN).double()
            self._base[rows, step] = (plan.p * unasked) @ weights.T
            self._planned[rows, step] = torch.stack(
                [planned_variance(w, plan.p, plan.inclusion, frame) for w in weights], -1
            )
        else:
            self._p[rows[:, None], place] = self.scorer.source_mean[plan.items]
        self.state[rows[:, None], plan.items] = PENDING
        self.asked[rows] = first + count
        self.steps[rows] = step + 1

    def _grow(self, questions: int, steps: int) -> None:
        """Room for more questions and steps; doubled, so that asking one by one costs no more."""
        have = self._items.shape[1]
        if questions > have:
            more = max(questions, 2 * have) - have
            pad = (0, more)
            self._items = torch.nn.functional.pad(self._items, pad)
            self._step = torch.nn.functional.pad(self._step, pad, value=-1)
            self._inclusion = torch.nn.functional.pad(self._inclusion, pad, value=torch.nan)
            self._p = torch.nn.functional.pad(self._p, pad)
        have = self._base.shape[1]
        if steps > have:
            pad2 = (0, 0, 0, max(steps, 2 * have) - have)
            self._base = torch.nn.functional.pad(self._base, pad2, value=torch.nan)
            self._planned = torch.nn.functional.pad(self._planned, pad2, value=1.0)

    def tell(self, rows: Tensor, items: Tensor, y: Tensor) -> None:
        """Record answers, each ``[R, k]``; NaN stands for an answer that was lost (it stays missing)."""
        lost = y.isnan()
        self.state[rows[:, None], items] = torch.where(lost, LOST, ANSWERED).to(torch.int8)
        self._y[rows[:, None], items] = y
        self._seen = None
        if self._grid is not None:
            self._grid.update(rows, items, y)

    def design_score(self, rows: Tensor, group: int = 0) -> DesignScore:
        """The design-based score of one of the scorer's names."""
        items = self._items[rows]
        state = self.state[rows].gather(1, items)
        return pooled_design_score(
            weights=self.scorer.weights[group][items],
            y=self._y[rows].nan_to_num().gather(1, items),
            p=self._p[rows],
            inclusion=self._inclusion[rows],
            step=self._step[rows],
            answered=state == ANSWERED,
            pending=state == PENDING,
            base=self._base[rows][..., group],
            planned=self._planned[rows][..., group],
        )

    def look(
        self, rows: Tensor, level: float, goal: Goal | None = None, decided: Decision | None = None
    ) -> Look:
        """The total score of subjects as it stands, and whether the goal is reached.

        A goal is judged by the model's interval where the subject is in range, with a margin and after at
        least 25 answers; else by the design-based one, after at least 25 answers drawn by probability.
        `irteval.estimate.stopping` has why the interval holds at such a stop.

        Args:
            rows: numbers of subjects, ``[R]``.
            level: of the interval.
            goal: at which to stop; None never to.
            decided: what was decided at an earlier stop, for answers that come in after it.
        """
        with threads_for(len(rows) * self.items_total):
            answers, prediction = self._predict(rows)
            model = self.scorer.model_score(prediction, answers)
        design = self.design_score(rows)
        combined = self.scorer.interval(model, design, answers, level)
        alone = self.scorer.design_only_interval(design, answers, level)
        if decided is None:
            decided = self._decide(rows, goal, answers, model, design, combined, alone)
        total = alone.where(decided.by_design, combined)
        factor = torch.ones_like(total.half_width)
        if goal is not None:
            factor = torch.where(decided.by_rank, goal.widening(total.half_width), factor)
        total = widened(total, factor, self.scorer.possible(answers, 0))
        return Look(rows, answers, prediction, model, total, decided, factor, level)

    def _decide(
        self,
        rows: Tensor,
        goal: Goal | None,
        answers: Answers,
        model: ModelScore,
        design: DesignScore,
        combined: Interval,
        alone: Interval,
    ) -> Decision:
        """Whether to stop, and on what."""
        no = torch.zeros(len(rows), dtype=torch.bool, device=self.device)
        if goal is None:
            return Decision(no, no, no)
        enough = (answers.answered.sum(1) >= LEAST_ANSWERS) | (self.open_items()[rows] == 0)
        trusted, sampled = enough & (model.in_range >= 0.5), design.draws >= LEAST_DRAWS
        careful = replace(combined, half_width=MODEL_MARGIN * combined.half_width)
        by_model = trusted & (careful.half_width <= goal.width)
        by_width = by_model | (sampled & (alone.half_width <= goal.width))
        by_rank = ranked_by_model = no
        if goal.rank:
            names = [self.subjects[row] for row in rows.tolist()]
            ranked_by_model = trusted & goal.settled(careful, names)
            by_rank = (ranked_by_model | (sampled & goal.settled(alone, names))) & ~by_width
        return Decision(by_width, by_rank, (by_width & ~by_model) | (by_rank & ~ranked_by_model))

    def estimates(self, look: Look, warnings: Sequence[tuple[str, ...]] | None = None) -> list[Estimate]:
        """Scores and intervals of the subjects of a look, the suite's benchmarks included.

        Args:
            look: what `look` saw.
            warnings: lines for each subject, to which one is added where its answers fit nobody.
        """
        intervals, ranges = [look.total], [look.model.in_range]
        for group in range(1, len(self.scorer.names)):
            model = self.scorer.model_score(look.prediction, look.answers, group)
            design = self.design_score(look.rows, group)
            combined = self.scorer.interval(model, design, look.answers, look.level, group)
            alone = self.scorer.design_only_interval(design, look.answers, look.level, group)
            own = alone.where(look.decision.by_design, combined)
            intervals.append(widened(own, look.widening, self.scorer.possible(look.answers, group)))
            ranges.append(model.in_range)
        names = [self.subjects[row] for row in look.rows.tolist()]
        answers = look.answers
        misfit = misfit_warnings(self.scorer.bank.parameters, answers.items, answers.y, answers.weight)
        lines = [(*own, *more) for own, more in zip(warnings or [()] * len(names), misfit, strict=True)]
        return self.scorer.estimates(names, look.answers, intervals, ranges, look.level, lines)


@dataclass(frozen=True)
class Asked:
    """What a plan asks: items ``[R, k]``, inclusion probabilities ``[R, k]`` (NaN where chosen), the step."""

    items: Tensor
    inclusion: Tensor
    step: int


@dataclass(frozen=True)
class Decision:
    """Why R subjects stop, ``[R]`` each.

    Attributes:
        by_width: the interval is narrow enough.
        by_rank: every rival is known to be above or below.
        by_design: the stop relies on the design-based interval, not on the model's.
    """

    by_width: Tensor
    by_rank: Tensor
    by_design: Tensor

    @property
    def stop(self) -> Tensor:
        """Whether to ask nothing more."""
        return self.by_width | self.by_rank


@dataclass(frozen=True)
class Look:
    """What `Cohort.look` saw of R subjects.

    Attributes:
        rows: their numbers, ``[R]``.
        answers, prediction, model: what the total rests on.
        total: score and interval of the total: design-based alone where the stop relied on it, widened where
            it was on a rank.
        decision: whether the goal is reached.
        widening: of the intervals, ``[R]``; 1 where the stop was not on a rank.
        level: of the interval.
    """

    rows: Tensor
    answers: Answers
    prediction: Prediction
    model: ModelScore
    total: Interval
    decision: Decision
    widening: Tensor
    level: float

    def reason(self, row: int, goal: Goal | None) -> Reason | None:
        """Why one of the subjects stops, ``row`` counting within the look; None where it goes on."""
        if goal is None or not bool(self.decision.stop[row]):
            return None
        return "rank" if bool(self.decision.by_rank[row]) else goal.reached(float(self.total.half_width[row]))
