from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from irteval.report.plots import save_png, training_curve, validation_curves


@pytest.fixture
def curve(estimate):
    steps = [0, 10, 100, 1000]
    rows = [estimate(f"step-{step}", score) for step, score in zip(steps, (0.1, 0.3, 0.8, 0.9), strict=True)]
    truth = {row.subject: row.score + 0.01 for row in rows}
    return steps, rows, truth


def test_the_curve_shows_estimates_band_and_truth(curve):
    steps, rows, truth = curve
    axes = training_curve(steps, rows, truth=truth).axes[0]
    estimate, known = axes.lines
    np.testing.assert_allclose(
        estimate.get_xydata(), [(s, r.score) for s, r in zip(steps, rows, strict=True)]
    )
    np.testing.assert_allclose(known.get_ydata(), list(truth.values()))
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    for step, row in zip(steps, rows, strict=True):
        heights = corners[corners[:, 0] == step, 1]
        assert heights.min() == pytest.approx(row.interval[0])
        assert heights.max() == pytest.approx(row.interval[1])


def test_other_subjects_stand_beside_the_curve(curve, estimate):
    steps, rows, _ = curve
    figure = training_curve(steps, rows, others=[estimate("better-svm", 0.98)], best_calibrated=0.95)
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["better\nsvm"]


def test_every_step_lies_on_the_axis_and_ticks_stay_inside(curve):
    steps, rows, _ = curve
    axes = training_curve(steps, rows).axes[0]
    low, high = axes.get_xlim()
    assert low <= steps[0]
    assert steps[-1] <= high
    assert set(axes.get_xticks()) == {0, 10, 20, 50, 100, 200, 500, 1000}


def test_the_same_curve_gives_the_same_file(curve, tmp_path):
    steps, rows, truth = curve
    for name in ("one.png", "two.png"):
        save_png(training_curve(steps, rows, truth=truth, title="a curve"), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    height, width, _ = imread(tmp_path / "one.png").shape
    assert width > height > 400


def test_a_line_a_method_and_no_line_of_stopped_sessions():
    rows = pd.DataFrame(
        {
            "benchmark": "",
            "split": ["interpolation"] * 4 + ["newest"] * 2,
            "method": ["auto", "auto", "auto", "random", "auto", "random"],
            "target": [np.nan, np.nan, 0.05, np.nan, np.nan, np.nan],
            "items": [10, 20, 33, 10, 10, 10],
            "mae": [0.05, 0.03, 0.02, 0.08, 0.06, 0.09],
            "mae_se": 0.01,
            "coverage": 0.95,
            "coverage_se": 0.01,
        }
    )
    axes = validation_curves(rows, 0.95).axes
    assert [panel.get_title(loc="left") for panel in axes[::2]] == ["interpolation", "newest"]
    auto, random = axes[0].containers
    np.testing.assert_allclose(auto.lines[0].get_xydata(), [[10, 0.05], [20, 0.03]])
    assert [part.get_label() for part in (auto, random)] == ["auto", "random"]
    assert random.lines[0].get_linestyle() == "--"
