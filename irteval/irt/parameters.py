"""Item parameters as plain arrays: what every response model is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irteval.errors import InputError


@dataclass(frozen=True, eq=False)
class ItemParameters:
    """Parameters of J items in K dimensions, logit metric (D = 1).

    ``P(y = 1 | theta) = lower + (upper - lower) * sigmoid(slope @ theta + intercept)``

    Attributes:
        slope: discriminations a, ``[J, K]``; signed.
        intercept: d = -a b, ``[J]``.
        covariance: posterior covariance of (slope_1 … slope_K, intercept) of each item,
            ``[J, K + 1, K + 1]``; None where the parameters are taken as known.
        lower, upper: asymptotes c and u, ``[J]``; None stands for 0 and 1.
        response_model: ``1pl`` or ``2pl``.
        population_mean, population_covariance: the calibrated population's ability, ``[K]``, ``[K, K]``;
            None stands for N(0, I).

    Raises:
        InputError: shapes that do not fit together, or a value that is not finite.
    """

    slope: NDArray[np.float64]
    intercept: NDArray[np.float64]
    covariance: NDArray[np.float64] | None = None
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    response_model: str = "2pl"
    population_mean: NDArray[np.float64] | None = None
    population_covariance: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        slope = np.asarray(self.slope, dtype=np.float64)
        slope = slope[:, None] if slope.ndim == 1 else slope
        object.__setattr__(self, "slope", slope)
        if slope.ndim != 2:
            raise InputError(f"slope has {slope.ndim} axes, wanted [items, dims]", field="slope")
        items, dims = slope.shape
        shapes = {
            "slope": (items, dims),
            "intercept": (items,),
            "covariance": (items, dims + 1, dims + 1),
            "lower": (items,),
            "upper": (items,),
            "population_mean": (dims,),
            "population_covariance": (dims, dims),
        }
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is None:
                continue
            value = np.asarray(value, dtype=np.float64)
            if value.shape != shape:
                raise InputError(f"shape {list(value.shape)}, wanted {list(shape)}", field=name)
            # A fixed parameter (the common slope of a 1PL) has no covariance: NaN there by contract.
            if name != "covariance" and not np.isfinite(value).all():
                raise InputError("a value is not finite", field=name)
            object.__setattr__(self, name, value)

    @property
    def items(self) -> int:
        """J, the number of items."""
        return len(self.intercept)

    @property
    def dims(self) -> int:
        """K, the number of dimensions of ability."""
        return int(self.slope.shape[1])

    @property
    def difficulty(self) -> NDArray[np.float64]:
        """b = -d / a, ``[J]``; NaN where a = 0. Defined in one dimension only."""
        if self.dims != 1:
            raise InputError(f"difficulty b is defined in one dimension, the model has {self.dims}")
        with np.errstate(divide="ignore", invalid="ignore"):
            b = -self.intercept / self.slope[:, 0]
        b[~np.isfinite(b)] = np.nan
        return b
