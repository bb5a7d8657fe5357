"""Full scores from few answers: every method on public benchmarks, inside and beyond the calibrated range.

    python experiments/benchmark_prediction.py --data ../shared/data --seeds 20
    python experiments/benchmark_prediction.py --data ../shared/data --seeds 20 --untouched

The scorer's constants were chosen on the first list of data sets. Those of ``--untouched`` took no part in
that. Errors are in points, over all targets and seeds, with standard errors clustered by subject. Ratios are
geometric means over data sets of a method's error over that of AIPW. Shares of the items and half-widths of
``auto`` follow, beside what a plain random sample needs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irteval import ResponseMatrix, read_responses
from irteval.validation.metrics import clustered_se
from irteval.validation.run import held_out_scores

PEERS = ("random", "stratified", "ridge", "aipw", "pca", "p-irt", "gp-irt", "faq")
MOST_ITEMS = 2500
MOST_TARGETS = 24
FEWEST = {"2.5%": 400}  # items, for a share that would be a handful otherwise


class DataSet(NamedTuple):
    """A benchmark of one of the folders of data; subjects of one family stay on one side of a split."""

    folder: str
    benchmark: str | None = None
    family: str | None = None


TUNED_ON = (
    DataSet("arc_challenge_218"),
    *(DataSet("helm_lite", name) for name in ("commonsense", "gsm", "math", "med_qa", "mmlu")),
    DataSet("zeroeval", "crux"),
    *(DataSet("openllm_v2", name) for name in ("ifeval", "musr", "math_hard")),
    *(DataSet("glue_anchor", name) for name in ("mrpc", "rte", "qnli", "sst2")),
    DataSet("swebench_verified"),
)
UNTOUCHED = (
    *(
        DataSet("nlu29", name, "architecture")
        for name in ("abductive-nli", "arc-easy", "boolq", "commonsenseqa", "cosmosqa", "mctaco", "quoref")
    ),
    DataSet("openllm_v2_full", "bbh"),
    DataSet("openllm_v2_full", "mmlu_pro"),
    DataSet("chembench"),
    DataSet("livecodebench", "lcb_execution"),
    DataSet("bridge_sparse", "swebench_verified"),
)


def read(data: Path, wanted: DataSet) -> ResponseMatrix:
    """The responses of a data set; of very many items, a fixed random part."""
    responses = read_responses(data / wanted.folder / "responses.parquet", benchmark=wanted.benchmark)
    items = responses.shape[1]
    if items > MOST_ITEMS:
        kept = np.random.default_rng(0).choice(items, MOST_ITEMS, replace=False)
        responses = responses.take(items=np.sort(kept))
    return responses.take(subjects=responses.subject_counts() > 0)


def run(data: Path, wanted: DataSet, args: argparse.Namespace) -> pd.DataFrame:
    """Scores of every held-out subject by every method."""
    responses = read(data, wanted)
    families = None
    if wanted.family is not None and responses.subject_table is not None:
        families = responses.subject_table[wanted.family].astype(str).tolist()
    details = held_out_scores(
        responses,
        sizes=(args.size, *(share for share in args.share if responses.shape[1] >= FEWEST.get(share, 0))),
        half_widths=args.half_width,
        methods=("auto", *PEERS),
        splits=("interpolation" if families is None else "family", "extrapolation"),
        repeats=args.seeds,
        most_targets=MOST_TARGETS,
        families=families,
        jobs=args.jobs,
    )
    name = wanted.folder if wanted.benchmark is None else f"{wanted.folder} {wanted.benchmark}"
    shares = {round(responses.shape[1] * float(share[:-1]) / 100): share for share in args.share}
    return details.assign(
        data_set=name,
        split=details["split"].replace("family", "interpolation"),
        share=details["size"].map(shares),
    )


def errors(details: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute error in points and its standard error, a row a split and data set."""

    def cell(part: pd.DataFrame) -> str:
        error = 100 * (part["score"] - part["truth"]).abs().to_numpy(np.float64)
        return f"{error.mean():.2f} ({clustered_se(error, part['subject'].to_numpy()):.2f})"

    keys = ["split", "data_set", "method"]
    rows = [(*key, cell(part)) for key, part in details.groupby(keys)]
    table = pd.DataFrame(rows, columns=[*keys, "error"])
    return table.pivot_table("error", keys[:2], "method", aggfunc="first")[["auto", *PEERS]]


def ratios(details: pd.DataFrame) -> pd.DataFrame:
    """Geometric means over data sets: each method's error over AIPW's, auto's over the best peer's."""
    details = details.assign(error=(details["score"] - details["truth"]).abs())
    mean = details.pivot_table("error", ["split", "data_set"], "method")
    relative = mean.div(mean["aipw"], axis=0)
    relative["auto / best peer"] = mean["auto"] / mean[list(PEERS)].min(axis="columns")
    table = relative.apply(np.log).groupby("split").mean().apply(np.exp)
    table["largest"] = relative["auto / best peer"].groupby("split").max()
    return table


def intervals(details: pd.DataFrame) -> pd.DataFrame:
    """Coverage with its standard error and mean width in points, of auto and of random items (Wilson)."""
    kept = details[details["method"].isin(["auto", "random"])]
    rows = {}
    for key, part in kept.groupby(["split", "method"]):
        coverage, se = covered(part)
        rows[key] = {"coverage": coverage, "se": se, "width": 100 * (part["high"] - part["low"]).mean()}
    table = pd.DataFrame(rows).T.rename_axis(["split", "method"])
    wilson = table["width"].xs("random", level="method")
    return table.assign(width_over_wilson=table["width"] / wilson.reindex(table.index, level="split"))


def covered(part: pd.DataFrame) -> tuple[float, float]:
    """Share of intervals that hold, and its standard error clustered by subject."""
    holds = (part["low"] - 1e-9 <= part["truth"]) & (part["truth"] <= part["high"] + 1e-9)
    names = (part["data_set"] + part["subject"].astype(str)).to_numpy()
    return float(holds.mean()), clustered_se(np.asarray(holds, dtype=np.float64), names)


def stops(details: pd.DataFrame) -> pd.DataFrame:
    """Sessions that end at a half-width: coverage, items used, items that a fixed random sample needs."""
    rows = {}
    for key, part in details.groupby(["split", "target"]):
        coverage, se = covered(part)
        used, needed = part["items"].mean(), part["wilson_items"].mean()
        rows[key] = {"coverage": coverage, "se": se, "items": used, "wilson": needed, "ratio": used / needed}
    return pd.DataFrame(rows).T.rename_axis(["split", "half-width"])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--share", nargs="*", default=["2.5%", "5%", "10%"], help="sizes for the intervals")
    parser.add_argument("--half-width", nargs="*", type=float, default=[0.05, 0.03])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--untouched", action="store_true")
    args = parser.parse_args()
    parts = []
    for wanted in UNTOUCHED if args.untouched else TUNED_ON:
        parts.append(run(args.data, wanted, args))
        print(f"{parts[-1]['data_set'].iloc[0]}: done", flush=True)
    details = pd.concat(parts, ignore_index=True)
    at_size = details[details["size"] == args.size]
    print(f"\n{args.size} items, {args.seeds} seeds: mean absolute error (standard error) in points\n")
    print(errors(at_size).to_string())
    print("\nerror over AIPW's, geometric mean over data sets\n")
    print(ratios(at_size).round(3).to_string())
    print(f"\n95 % intervals, {args.size} items\n{intervals(at_size).round(3).to_string()}")
    for share in args.share:
        print(
            f"\n95 % intervals, {share}\n{intervals(details[details['share'] == share]).round(3).to_string()}"
        )
    if args.half_width:
        print("\nstopped at a half-width")
        print(stops(details[details["target"].notna()]).round(3).to_string())


if __name__ == "__main__":
    main()
