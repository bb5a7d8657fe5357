"""The default score estimator, prepared from a bank: hypotheses, score weights and source ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from irteval.bank import ItemBank
from irteval.calibrate.ability import ability
from irteval.calibrate.hypotheses import BEYOND, GIVEN, INSIDE, SHIFTED, UNRELATED, WIDE, HypothesisSet
from irteval.calibrate.prediction import Prediction, predict
from irteval.calibrate.source import implied_score_model, item_weights, logistic_equivalent
from irteval.device import torch_device
from irteval.estimate.design_based import DesignScore
from irteval.estimate.interval import Interval, combined_interval, design_interval
from irteval.estimate.mixture import ModelScore, SourceRange, mixture_score
from irteval.estimate.result import Estimate

METHOD = "auto"
EXTRAPOLATION = 0.5  # in-range weight below which the estimate is said to extrapolate
MODEL_MARGIN = 1.1  # a stop on the model's half-width asks for this much less than the target


@dataclass(frozen=True)
class Answers:
    """Answers of R subjects, as every estimate needs them.

    Attributes:
        items: item numbers in the order of asking, ``[R, M]``, 0 for padding.
        y: their answers, ``[R, M]``, 0 where there is none.
        weight: 1 where answered, ``[R, M]``.
        answered: 1 where there is an answer, by item, ``[R, N]``.
        y_by_item: ``[R, N]``.
    """

    items: Tensor
    y: Tensor
    weight: Tensor
    answered: Tensor
    y_by_item: Tensor

    @classmethod
    def of(cls, scores: Tensor) -> Answers:
        """From scores by item ``[R, N]``, NaN where there is no answer."""
        answered = ~scores.isnan()
        longest = int(answered.sum(1).max()) if len(scores) else 0
        items = answered.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :longest]
        y = scores.nan_to_num()
        weight = answered.to(torch.float64)
        return cls(items, y.gather(1, items), weight.gather(1, items), weight, y)


class Scorer:
    """Full-benchmark scores from any answers to a bank's items.

    Args:
        bank: the calibrated items.
        device: where tensors live.

    Attributes:
        names: the benchmark's name, or ``total`` and each benchmark of a suite.
        weights: weight of every item in each of these scores, ``[G, N]``; rows sum to 1.
        sources: the calibrated range of each.
        source_mean: share of calibrated subjects who got each item, ``[N]``.
    """

    def __init__(self, bank: ItemBank, device: str = "cpu") -> None:
        self.bank = bank
        self.device = torch_device(device)
        model = bank.score_model or implied_score_model(bank.parameters, bank.benchmarks, bank.info.primary)
        self.names, weights = item_weights(bank.benchmarks)
        self.weights = torch.as_tensor(weights, device=self.device)
        self.sources = tuple(
            SourceRange(
                low=scores.scores[0],
                high=float(np.quantile(scores.scores, 0.9)),
                reliability=scores.reliability,
                constant_share=scores.constant_share,
            )
            for scores in (model.source[name] for name in self.names)
        )
        self.source_mean = torch.as_tensor(model.source_mean, dtype=torch.float64, device=self.device)
        benchmark = np.unique(np.asarray(bank.benchmarks, dtype=str), return_inverse=True)[1]
        inside = GIVEN if bank.score_model is None else INSIDE
        priors = (inside, SHIFTED if model.beyond is None else BEYOND, WIDE, UNRELATED)
        self._fits = tuple(
            HypothesisSet.build(
                logistic_equivalent(bank.fits[name]),
                np.asarray(model.difficulty_bin),
                benchmark,
                None if model.beyond is None else np.asarray(model.beyond),
                priors,
                self.device,
            )
            for name in model.fits
        )

    def predict(self, answers: Answers) -> Prediction:
        """Predicted answers of R subjects to every item."""
        return predict(self._fits, answers.items, answers.y, answers.weight)

    def model_score(self, prediction: Prediction, answers: Answers, group: int = 0) -> ModelScore:
        """Model-based score of one of ``names``."""
        return mixture_score(
            prediction, self.sources[group], self.weights[group], answers.answered, answers.y_by_item
        )

    def interval(
        self, model: ModelScore, design: DesignScore | None, answers: Answers, level: float, group: int = 0
    ) -> Interval:
        """The combined interval of one of ``names``."""
        if design is None:
            nothing = torch.zeros_like(model.mean)
            design = DesignScore(nothing, torch.full_like(nothing, torch.inf), nothing)
        weights = self.weights[group]
        asked = (answers.answered * (weights > 0)).sum(1)
        return combined_interval(
            model,
            design,
            self.sources[group],
            asked,
            self.possible(answers, group),
            self.smallest(group),
            level,
        )

    def design_only_interval(
        self, design: DesignScore, answers: Answers, level: float, group: int = 0
    ) -> Interval:
        """The design-based interval of one of ``names``."""
        return design_interval(design, self.possible(answers, group), self.smallest(group), level)

    def possible(self, answers: Answers, group: int) -> tuple[Tensor, Tensor]:
        """Lowest and highest full score that the open answers allow, ``[R]`` each."""
        weights = self.weights[group]
        low = (weights * answers.answered * answers.y_by_item).sum(1).clamp_max(1)
        return low, (low + (weights * (1 - answers.answered)).sum(1)).clamp_max(1)

    def smallest(self, group: int) -> float:
        """Smallest half-width while items are open: half of the lightest item's weight."""
        weights = self.weights[group]
        return float(weights[weights > 0].min()) / 2

    def estimates(
        self,
        subjects: Sequence[str],
        answers: Answers,
        intervals: Sequence[Interval],
        in_range: Sequence[Tensor],
        level: float,
        warnings: Sequence[tuple[str, ...]],
    ) -> list[Estimate]:
        """Assemble the results of R subjects from the intervals of every one of ``names``."""
        scores = torch.where(answers.answered > 0, answers.y_by_item, torch.nan).cpu().numpy()
        abilities = ability(self.bank.parameters, scores)
        results = []
        for r, subject in enumerate(subjects):
            parts = [
                Estimate(
                    subject=subject,
                    benchmark=name,
                    score=float(interval.score[r]),
                    interval=(float(interval.low[r]), float(interval.high[r])),
                    level=level,
                    items_asked=int((answers.answered[r] * (weights > 0)).sum()),
                    items_total=int((weights > 0).sum()),
                    ability=tuple(float(x) for x in abilities.mean[r]),
                    ability_se=tuple(float(x) for x in abilities.sd[r]),
                    method=METHOD,
                    extrapolating=bool(inside[r] < EXTRAPOLATION),
                )
                for name, weights, interval, inside in zip(
                    self.names, self.weights, intervals, in_range, strict=True
                )
            ]
            total, *groups = parts
            results.append(replace(total, warnings=warnings[r], groups=tuple(groups)))
        return results
