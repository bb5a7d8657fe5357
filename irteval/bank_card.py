"""The card of an item bank: what a person should know before trusting a score that comes from it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from irteval.bank_format import BankInfo, BankParts, ScoreModel


def bank_card(info: BankInfo, parts: BankParts, folder: str, notes: str = "") -> str:
    """The text of a bank's ``README.md``.

    Args:
        info: identity and provenance.
        parts: parameters, item table and score model.
        folder: name of the bank's folder, for the examples.
        notes: Markdown of its maker, such as the error measured on held-out subjects; put last.
    """
    sections = [f"# {info.name}", _summary(info, parts), _facts(info, parts), _limits(info), _usage(folder)]
    if notes:
        sections.append(notes.strip())
    return "\n\n".join(sections) + "\n"


def _summary(info: BankInfo, parts: BankParts) -> str:
    count = info.subjects.count
    origin = (
        f"calibrated on the responses of {count:,} subjects" if count else "with parameters given as numbers"
    )
    return (
        f"An item bank of {_benchmarks(info)}: {len(parts.item_table):,} items, {origin}. With it, a new "
        "subject answers a part of the items and gets the score that the whole benchmark would have given, "
        "with an interval."
    )


def _benchmarks(info: BankInfo) -> str:
    return ", ".join(f"`{name}`" for name in info.benchmarks)


def _facts(info: BankInfo, parts: BankParts) -> str:
    rows = [
        ("Benchmarks", _counts(parts)),
        ("Metric", f"{info.metric}, a share in [0, 1]"),
        ("Subjects", f"{info.subjects.count:,}; the bank keeps salted hashes of their ids, no responses"),
        ("Dates", ", ".join(f"{name.replace('_', ' ')} {date}" for name, date in info.dates.items())),
        ("Response model", _model(info, parts)),
        ("Calibration", info.calibration),
        ("Scale", info.identification),
        *_items(parts),
        *_scores(parts.score_model),
        ("Made with", ", ".join(f"{name} {version}" for name, version in info.versions.items())),
        ("Content hash", f"`{info.content_hash}`"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _counts(parts: BankParts) -> str:
    counts = Counter(parts.item_table["benchmark"])
    return ", ".join(f"`{name}` ({count:,} items)" for name, count in counts.items())


def _model(info: BankInfo, parts: BankParts) -> str:
    dims = "one dimension" if info.dims == 1 else f"{info.dims} dimensions"
    further = f"; further fits {', '.join(sorted(parts.further))} for the score" if parts.further else ""
    return f"{info.response_model.upper()}, {dims}{further}"


def _items(parts: BankParts) -> list[tuple[str, str]]:
    """Spread of the parameters, in one dimension where it can be read."""
    fit = parts.parameters
    if fit.dims > 1:
        return []
    with_slope = np.abs(fit.slope[:, 0]) > 0
    b = np.quantile(fit.difficulty[with_slope], [0.1, 0.5, 0.9]) if with_slope.any() else np.full(3, np.nan)
    a = np.quantile(fit.slope[:, 0], [0.1, 0.5, 0.9])
    falling = int((fit.slope[:, 0] < 0).sum())
    return [
        (
            "Discrimination a",
            f"{a[1]:.2f} (10 % to 90 %: {a[0]:.2f} to {a[2]:.2f}); {falling:,} items below 0",
        ),
        ("Difficulty b", f"{b[1]:.2f} (10 % to 90 %: {b[0]:.2f} to {b[2]:.2f})"),
    ]


def _scores(score_model: ScoreModel | None) -> list[tuple[str, str]]:
    if score_model is None:
        return []
    rows = []
    for name, source in score_model.source.items():
        scores = np.asarray(source.scores)
        rows += [
            (
                f"Subjects' scores, `{name}`",
                f"{scores.min():.3f} to {scores.max():.3f}, median {np.median(scores):.3f}; reliability "
                f"{source.reliability:.3f}; {100 * source.constant_share:.1f} % of it from items that all "
                "pass or all fail",
            )
        ]
    return rows


def _limits(info: BankInfo) -> str:
    return "\n".join(
        [
            "## What it holds for",
            "",
            f"- Items are known by their ids. Responses must be to the same items, graded as {info.metric}.",
            "- A subject outside the range of the calibrated ones is an extrapolation: the estimate says so,",
            "  and its interval leans on the sampling of the items rather than on the fit.",
            "- A subject that was calibrated on is no test of the bank; `run` and `score` warn of it.",
        ]
    )


def _usage(folder: str) -> str:
    return "\n".join(
        [
            "## How to use it",
            "",
            "```bash",
            f"irteval show {folder}",
            f"irteval run {folder} --driver replay --responses responses.parquet --target 0.04",
            f"irteval session new my-session --bank {folder}    # then: session ask, tell, estimate",
            "```",
            "",
            "```python",
            "import irteval as ie",
            "",
            f'bank = ie.ItemBank.load("{folder}")',
            "session = ie.Session(bank, target=0.04)",
            "while references := session.ask(16):",
            "    session.tell({reference.item: grade(reference.item) for reference in references})",
            "print(session.estimate())",
            "```",
        ]
    )
