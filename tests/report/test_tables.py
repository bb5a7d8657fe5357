from __future__ import annotations

from io import StringIO

from rich.console import Console

from irteval.report.tables import estimates_table


def printed(table) -> str:
    console = Console(file=StringIO(), width=80, force_terminal=False)
    console.print(table)
    return console.file.getvalue()


def test_a_row_says_what_was_estimated_and_what_was_saved(estimate):
    line = printed(estimates_table([estimate("checkpoint-1", 0.5)])).splitlines()[-1]
    assert line.split() == ["checkpoint-1", "0.500", "0.450", "–", "0.550", "45", "855"]


def test_the_true_score_is_compared_where_it_is_known(estimate):
    rows = [estimate("inside", 0.5), estimate("outside", 0.5), estimate("unknown", 0.5)]
    text = printed(estimates_table(rows, truth={"inside": 0.54, "outside": 0.56}))
    inside, outside, unknown = (line.split() for line in text.splitlines()[-3:])
    assert inside[1] == "0.540"
    assert inside[-1] == "yes"
    assert outside[-1] == "no"
    assert unknown[-1] == "855"


def test_an_extrapolation_is_marked_and_explained(estimate):
    text = printed(estimates_table([estimate("weak", 0.2), estimate("strong", 0.9, extrapolating=True)]))
    assert "strong *" in text
    assert "weak *" not in text
    assert "beyond, or unlike, the calibrated subjects" in text


def test_the_benchmarks_of_a_suite_follow_its_total(estimate):
    parts = (estimate("m", 0.4, benchmark="maths"), estimate("m", 0.6, benchmark="law"))
    lines = printed(estimates_table([estimate("m", 0.5, benchmark="total", groups=parts)])).splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["m", "maths", "law"]


def test_the_demo_sized_table_fits_eighty_columns(estimate):
    rows = [estimate("network-step-400", 0.5, extrapolating=True)]
    assert "…" not in printed(estimates_table(rows, truth={"network-step-400": 0.5}))
