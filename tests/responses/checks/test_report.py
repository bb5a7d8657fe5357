"""The report: order, JSON, table, and that it says no more than can be read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import numpy as np
import rich.console

from irteval import ResponseMatrix, check_responses
from irteval.report.findings import findings_table
from irteval.responses.checks.finding import LISTED_FINDINGS, LISTED_IDS, Finding, Named, counted, listed

Draw = Callable[[int, int, int], np.ndarray]


def test_the_gravest_first_and_plain_values(draw_scores: Draw) -> None:
    scores = draw_scores(40, 200, 0)
    scores[0] = scores[1] = scores[20]
    scores[:, (scores == scores[0]).all(axis=0)] = 1
    scores[:, 5] = 1
    report = check_responses(ResponseMatrix.from_dense(scores))
    assert [finding.severity for finding in report.findings] == ["warning", "note"]
    assert (report.worst, report.usable) == ("warning", True)
    document = json.loads(json.dumps(report.to_json()))
    assert document["counts"] == {"note": 1, "warning": 1, "fatal": 0}
    assert document["findings"][0]["subjects"] == {"count": 3, "ids": ["s0", "s1", "s20"]}
    assert "items" not in document["findings"][0]
    assert len(document["checks"]) == 8
    assert report.to_frame()["subjects"].tolist() == [3, 0]


def test_nothing_found(draw_scores: Draw) -> None:
    report = check_responses(ResponseMatrix.from_dense(draw_scores(40, 50, 3)))
    assert (report.worst, report.findings) == (None, ())
    assert "nothing found" in shown(report)


def test_a_matrix_without_answers_is_not_checked_further() -> None:
    report = check_responses(ResponseMatrix.from_dense(np.full((3, 4), np.nan)))
    assert not report.usable
    assert report.checks == ("coverage",)


def test_small_and_sparse_matrices_are_checked() -> None:
    assert check_responses(ResponseMatrix.from_dense([[1]])).usable
    ids = [str(i) for i in range(2001)]
    diagonal = np.arange(2001)
    responses = ResponseMatrix.from_cells(ids, ids, diagonal, diagonal, diagonal % 2)
    assert responses.is_sparse
    blocks = [f for f in check_responses(responses).findings if f.check == "unlinked blocks"]
    assert len(blocks) == LISTED_FINDINGS + 1
    assert blocks[-1].what == "1,981 more blocks, none larger"


def test_long_lists_are_capped() -> None:
    named = Named.of([str(i) for i in range(50)])
    assert (len(named.ids), named.total) == (LISTED_IDS, 50)
    findings = [Finding("c", "note", "w")] * LISTED_FINDINGS
    assert listed(findings) == findings
    assert listed([*findings, Finding("c", "warning", "w")])[-1].severity == "warning"
    assert [counted(1, "item"), counted(1200, "item")] == ["1 item", "1,200 items"]


def test_the_table_names_whom_a_finding_concerns(draw_scores: Draw) -> None:
    scores = draw_scores(40, 200, 0)
    scores[0] = scores[1] = scores[20]
    scores[2:5] = np.nan
    text = shown(check_responses(ResponseMatrix.from_dense(scores)))
    assert "subjects s0, s1 and 1 more" in text
    assert "warning" in text


def shown(report: object) -> str:
    stream = io.StringIO()
    rich.console.Console(file=stream, width=200).print(findings_table(report))  # type: ignore[arg-type]
    return stream.getvalue()
