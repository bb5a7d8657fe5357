"""Near-duplicate subjects: merges, fine-tunes that changed nothing, uploads under a second name."""

from __future__ import annotations

from irteval.responses.checks.finding import Finding, Named, listed
from irteval.responses.checks.margins import expected_scores
from irteval.responses.checks.pairs import alike_groups
from irteval.responses.checks.sample import sample_answers
from irteval.responses.matrix import ResponseMatrix

CHECK = "near-duplicate subjects"
LEAST = 0.6  # residual correlation; models of one family have up to about .5


def similar_subjects(responses: ResponseMatrix, seed: int = 0) -> list[Finding]:
    """Groups of subjects whose answers agree beyond what their accuracies and the items explain.

    The test is that of :func:`irteval.responses.checks.pairs.alike_groups`, over at most 5,000 subjects and
    items.
    """
    answers = sample_answers(responses, seed)
    expected = expected_scores(answers.scores, answers.observed)
    return listed(
        [
            Finding(
                CHECK,
                "warning",
                f"{len(group.rows)} subjects give all but the same answers: split and resample them together",
                subjects=Named.of(responses.subjects, answers.subjects[group.rows]),
                figures={
                    "agreement": group.agreement,
                    "residual_correlation": group.correlation,
                },
            )
            for group in alike_groups(answers.scores, answers.observed, expected, LEAST)
        ]
    )
