"""Plots of estimates as PNG files, drawn without a display and without matplotlib's global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter, StrMethodFormatter
from numpy.typing import NDArray

from irteval.estimate.result import Estimate

# Okabe and Ito's palette, told apart by people with any of the usual colour-vision deficiencies; truth and
# estimate differ in shape as well.
INK, BLUE, ORANGE, GREY = "#222222", "#0072B2", "#D55E00", "#8A8A8A"
LINES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
DOTS_PER_INCH = 130


def training_curve(
    steps: Sequence[int],
    estimates: Sequence[Estimate],
    *,
    truth: Mapping[str, float] | None = None,
    others: Sequence[Estimate] = (),
    best_calibrated: float | None = None,
    title: str = "",
) -> Figure:
    """The score of one training run's checkpoints, with the interval of each as a band.

    Args:
        steps: training steps of the checkpoints, ascending, not negative.
        estimates: their estimates, in the same order.
        truth: full-benchmark scores where they are known, by subject.
        others: further subjects, drawn in a panel beside the curve.
        best_calibrated: score of the strongest calibrated subject, drawn as a line across.
        title: a line above the plot.

    Returns:
        The figure; ``save_png`` writes it.
    """
    figure = Figure(figsize=(8.6, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    if others:
        curve, beside = figure.subplots(1, 2, sharey=True, width_ratios=(6, 1 + 0.5 * len(others)))
        _draw_others(beside, others, truth, best_calibrated)
    else:
        curve = figure.subplots()
    _draw_curve(curve, np.asarray(steps), estimates, truth)
    if best_calibrated is not None:
        curve.axhline(best_calibrated, color=GREY, lw=1, ls=(0, (4, 3)), zorder=1)
        curve.annotate(
            "best calibrated subject",
            (0.0, best_calibrated),
            (6, 4),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=GREY,
            fontsize=8.5,
        )
    curve.legend(loc="lower right", frameon=False, fontsize=9.5)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=INK)
    return figure


def validation_curves(table: pd.DataFrame, level: float) -> Figure:
    """Mean absolute error and coverage against the number of items, a line a method.

    Args:
        table: of `irteval.validation.validate`; one row of panels a benchmark and split. Rows of sessions
            that stop at a half-width are left out.
        level: of the intervals, drawn as a line across.
    """
    fixed = table[table["target"].isna()]
    panels = list(fixed.groupby(["benchmark", "split"], sort=False))
    figure = Figure(figsize=(9.2, 3.6 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 2, squeeze=False)
    colours = iter(np.resize(LINES, len(fixed)).tolist())
    colour = {name: GREY if name == "random" else next(colours) for name in fixed["method"].unique()}
    for ((benchmark, split), rows), (error, coverage) in zip(panels, axes, strict=True):
        for method, part in rows.groupby("method", sort=False):
            # The control is told apart by its dashes as well.
            style = {"color": colour[method], "marker": "o", "ms": 5, "lw": 1.6, "label": str(method)}
            style["ls"] = "--" if method == "random" else "-"
            error.errorbar(part["items"], part["mae"], part["mae_se"], **style)
            coverage.errorbar(part["items"], part["coverage"], part["coverage_se"], **style)
        coverage.axhline(level, color=GREY, lw=1, ls=(0, (4, 3)), zorder=1)
        error.set_ylabel("mean absolute error", color=INK)
        error.set_ylim(0)
        coverage.set_ylabel(f"coverage of {100 * level:g} % intervals", color=INK)
        error.set_title(f"{benchmark} {split}".strip(), loc="left", fontsize=10.5, color=INK)
        for panel in (error, coverage):
            panel.set_xlabel("items asked", color=INK)
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            _plain(panel)
    axes[0, 0].legend(frameon=False, fontsize=9.5)
    return figure


def save_png(figure: Figure, path: Path) -> None:
    """Write the figure; the same figure gives the same bytes."""
    figure.savefig(path, dpi=DOTS_PER_INCH, format="png", metadata={"Software": None})


def _draw_curve(
    axes: Axes, steps: NDArray[np.int64], estimates: Sequence[Estimate], truth: Mapping[str, float] | None
) -> None:
    limits = np.array([estimate.interval for estimate in estimates])
    scores = [estimate.score for estimate in estimates]
    level = f"{100 * estimates[0].level:g} % interval"
    asked = max(estimate.items_asked for estimate in estimates)
    axes.fill_between(steps, limits[:, 0], limits[:, 1], color=BLUE, alpha=0.18, lw=0, label=level)
    axes.plot(steps, scores, color=BLUE, lw=1.6, marker="o", ms=5, label=f"estimate from {asked:,} items")
    if truth is not None:
        known = [truth.get(estimate.subject, np.nan) for estimate in estimates]
        label = f"true score on all {estimates[0].items_total:,} items"
        axes.plot(steps, known, color=ORANGE, ls="", marker="D", ms=8, mfc="none", mew=1.5, label=label)
    _step_axis(axes, steps)
    axes.set_ylabel("score", color=INK)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    _plain(axes)


def _draw_others(
    axes: Axes, others: Sequence[Estimate], truth: Mapping[str, float] | None, best_calibrated: float | None
) -> None:
    for place, estimate in enumerate(others):
        low, high = estimate.interval
        axes.plot([place, place], [low, high], color=BLUE, alpha=0.3, lw=9, solid_capstyle="butt")
        axes.plot(place, estimate.score, color=BLUE, marker="o", ms=5)
        if truth is not None and estimate.subject in truth:
            known = truth[estimate.subject]
            axes.plot(place, known, color=ORANGE, marker="D", ms=8, mfc="none", mew=1.5)
    if best_calibrated is not None:
        axes.axhline(best_calibrated, color=GREY, lw=1, ls=(0, (4, 3)), zorder=1)
    names = [estimate.subject.replace("-", "\n") for estimate in others]
    axes.set_xticks(range(len(others)), names, fontsize=8.5)
    axes.set_xlim(-0.6, len(others) - 0.4)
    axes.tick_params(axis="y", length=0)
    _plain(axes)


def _step_axis(axes: Axes, steps: NDArray[np.int64]) -> None:
    """Linear up to the first step after 0, logarithmic from there: training is fast first, then slow."""
    positive = steps[steps > 0]
    if len(positive):
        axes.set_xscale("symlog", linthresh=float(positive[0]), linscale=0.4)
        decades = 10.0 ** np.arange(np.floor(np.log10(positive[0])), np.log10(positive[-1]) + 1)
        ticks = np.outer(decades, (1, 2, 5)).ravel()
        ticks = ticks[(ticks >= positive[0]) & (ticks <= positive[-1])]
        axes.xaxis.set_major_locator(FixedLocator([0, *ticks] if steps[0] == 0 else list(ticks)))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("training steps", color=INK)


def _plain(axes: Axes) -> None:
    """Only the lines that are read: a light grid, no frame."""
    axes.grid(axis="y", color="#E4E4E4", lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#BBBBBB")
