"""A subject that follows another: the ability of the checkpoint before as a prior that may be wrong.

A robust prior (Schmidli et al. 2014, Robust meta-analytic-predictive priors in clinical trials with
historical control information): beside the hypotheses about a new subject stands one more, "near the previous
one", N(m, s² + drift²) about its ability m with standard error s. Hypotheses are weighed by how well they
predict the answers. Where the new checkpoint is near, the narrow one wins and saves answers; where it is not,
its evidence falls and the others, with their wide priors, take over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from irteval.bank import ItemBank
from irteval.calibrate.hypotheses import GIVEN, INSIDE, HypothesisSet
from irteval.calibrate.prediction import Prediction, predict
from irteval.calibrate.source import implied_score_model, logistic_equivalent
from irteval.errors import InputError
from irteval.estimate.scorer import Answers, Scorer

DRIFT = 0.5  # standard deviation of the change in ability from one checkpoint to the next


@dataclass(frozen=True)
class CarriedPrior:
    """Ability of the subject before, as its estimate gives it.

    Attributes:
        mean, sd: under the bank's primary response model, one value a dimension.
    """

    mean: Sequence[float]
    sd: Sequence[float]


class CarriedScorer(Scorer):
    """A `Scorer` with the hypothesis "near the previous subject".

    Args:
        bank: the calibrated items.
        prior: the previous subject's ability.
        device: where tensors live.

    Raises:
        InputError: the ability has not the bank's dimensions.
    """

    def __init__(self, bank: ItemBank, prior: CarriedPrior, device: str = "cpu") -> None:
        super().__init__(bank, device)
        dims = bank.parameters.dims
        if not len(prior.mean) == len(prior.sd) == dims:
            raise InputError(
                f"ability in {len(prior.mean)} dimensions with {len(prior.sd)} standard errors, "
                f"the bank has {dims}",
                field="prior_mean",
            )
        model = bank.score_model or implied_score_model(bank.parameters, bank.benchmarks, bank.info.primary)
        near = HypothesisSet.build(
            logistic_equivalent(bank.parameters),
            np.asarray(model.difficulty_bin),
            np.unique(np.asarray(bank.benchmarks, dtype=str), return_inverse=True)[1],
            None if model.beyond is None else np.asarray(model.beyond),
            (GIVEN if bank.score_model is None else INSIDE,),
            self.device,
        )
        mean, precision = near.prior_mean.clone(), near.prior_precision.clone()
        mean[0, :dims] = torch.as_tensor(np.asarray(prior.mean, dtype=np.float64))
        precision[0, :dims] = 1 / (torch.as_tensor(np.asarray(prior.sd, dtype=np.float64)) ** 2 + DRIFT**2)
        self._near = replace(near, prior_mean=mean, prior_precision=precision)

    def predict(self, answers: Answers) -> Prediction:
        """See `Scorer.predict`."""
        return predict((*self._fits, self._near), answers.items, answers.y, answers.weight)
