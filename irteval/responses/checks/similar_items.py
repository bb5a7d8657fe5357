"""Items that get the same answers: one question under two ids, or two that depend on each other."""

from __future__ import annotations

from irteval.responses.checks.finding import Finding, Named, listed
from irteval.responses.checks.margins import expected_scores
from irteval.responses.checks.pairs import alike_groups
from irteval.responses.checks.sample import sample_answers
from irteval.responses.matrix import ResponseMatrix

CHECK = "near-identical items"
LEAST = 0.6


def similar_items(responses: ResponseMatrix, seed: int = 0) -> list[Finding]:
    """Groups of items whose answers agree beyond what their difficulty and the subjects explain.

    The test is that of :func:`irteval.responses.checks.pairs.alike_groups`, over at most 5,000 subjects and
    items. A few dozen subjects can't tell: equal columns are common by chance then, and none is reported.
    """
    answers = sample_answers(responses, seed)
    expected = expected_scores(answers.scores, answers.observed)
    groups = alike_groups(answers.scores.T, answers.observed.T, expected.T, LEAST)
    return listed(
        [
            Finding(
                CHECK,
                "note",
                f"{len(group.rows)} items get all but the same answers: they count as one item would",
                items=Named.of(responses.items, answers.items[group.rows]),
                figures={
                    "agreement": group.agreement,
                    "residual_correlation": group.correlation,
                },
            )
            for group in groups
        ]
    )
