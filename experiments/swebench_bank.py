"""The shipped bank of SWE-bench Verified: its error on submissions left out, then the bank of them all.

    python experiments/swebench_bank.py                     # prints the table
    python experiments/swebench_bank.py --write             # and makes fitted_models/swebench-verified

The figures come from refits without the held-out submissions: the newest fifth by date, and random fifths.
The bank itself uses every submission.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from irteval.calibrate.fit import fit
from irteval.responses import ResponseMatrix, read_responses
from irteval.validation import validate

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "swebench_verified" / "responses.parquet"
BANK = ROOT / "fitted_models" / "swebench-verified"
SIZES = (25, 50, 100)
HELD_OUT = 0.2


def held_out_table(responses: ResponseMatrix, repeats: int) -> pd.DataFrame:
    """The first eight characters of a submission's id are its date."""
    return validate(
        responses,
        sizes=SIZES,
        splits=("newest", "interpolation"),
        methods=("auto", "random"),
        repeats=repeats,
        share=HELD_OUT,
        order=[subject[:8] for subject in responses.subjects],
    )


def markdown(table: pd.DataFrame) -> str:
    """The table for the card and the docs, in points."""
    names = {"newest": "newest 20 %", "interpolation": "random 20 %"}
    methods = {"auto": "adaptive", "random": "random items, plain mean"}
    lines = [
        "| left out | items asked | method | mean absolute error (SE) | coverage of 95 % (SE) | mean width |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {names[row.split]}, {row.subjects} submissions | {row['size']} of 500 | {methods[row.method]} "
        f"| {100 * row.mae:.2f} ({100 * row.mae_se:.2f}) | {row.coverage:.3f} ({row.coverage_se:.3f}) "
        f"| {100 * row.width:.1f} |"
        for row in rows(table)
    ]
    return "\n".join(lines)


def rows(table: pd.DataFrame) -> Iterable[pd.Series]:
    return (
        row
        for _, row in table.sort_values(["split", "size", "method"], ascending=[False, True, True]).iterrows()
    )


def card_notes(responses: ResponseMatrix, table: pd.DataFrame, repeats: int) -> str:
    dates = sorted(subject[:8] for subject in responses.subjects)
    return f"""## Where it comes from

Outcomes of {len(responses.subjects)} public submissions to the SWE-bench Verified leaderboard, dated
{iso(dates[0])} to {iso(dates[-1])}, as collected in github.com/dariakryvosheieva/agent-psychometrics (MIT
licence). A score is 1 where the submission resolved the task.

## Error on submissions left out

In points of the full score, from refits without the submissions left out ({repeats} seeds;
`python experiments/swebench_bank.py`). Standard errors are clustered by submission.

{markdown(table)}
"""


def iso(date: str) -> str:
    return f"{date[:4]}-{date[4:6]}-{date[6:8]}"


def write_bank(responses: ResponseMatrix, notes: str) -> None:
    dates = sorted(subject[:8] for subject in responses.subjects)
    bank = fit(
        responses,
        metric="resolved",
        name="swebench-verified",
        dates={"made": "2026-11-30", "first_subject": iso(dates[0]), "last_subject": iso(dates[-1])},
    )
    BANK.parent.mkdir(exist_ok=True)
    bank.save(BANK, overwrite=True, card_notes=notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="make the bank")
    arguments = parser.parse_args()
    responses = read_responses(arguments.data)
    table = held_out_table(responses, arguments.repeats)
    print(markdown(table))
    newest = table[(table.split == "newest") & (table["size"] == 50)].set_index("method")
    print(f"newest, 50 items: error {newest.mae['auto'] / newest.mae['random']:.2f} x random items'")
    if arguments.write:
        write_bank(responses, card_notes(responses, table, arguments.repeats))
        print(f"wrote {BANK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
