"""Feed broken logs to every reader, and report any fault that is not a clear error.

    python experiments/fuzz_readers.py --minutes 10

Logs of each format are broken at random: bytes flipped, cut short, lines glued or repeated, blocks moved,
values of JSON exchanged for odd ones, members of archives replaced. A reader has to read what is left or
raise an `InputError`; anything else is printed with the file that shows it, and the exit code is 1. Real
logs are taken from `../shared/samples` where that is; for formats without one a small log is made.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from irteval.errors import InputError
from irteval.responses.importing import import_logs

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "samples"
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**30, -(10**400), float("nan"), float("inf"), "", "banana", "\ud800"),
    *("C", "1e999", [], {}, [[]], {"": None}, ["x", 1, None], {"a": {"b": [1]}}, "x" * 70_000, 2**31, 2**63),
)
DEEP = b"[" * 5_000 + b"]" * 5_000


def seeds(folder: Path) -> dict[str, list[Path]]:
    """For each format, folders with one log and its neighbours."""
    made = {name: _made(folder / "made", name, files) for name, files in MADE.items()}
    if SAMPLES.is_dir():
        for name, patterns in REAL.items():
            made.setdefault(name, [])
            for pattern in patterns:
                for number, path in enumerate(sorted(SAMPLES.glob(pattern))[:3]):
                    target = folder / "real" / f"{name}-{len(made[name])}-{number}"
                    shutil.copytree(path.parent, target, ignore=_only(path))
                    made[name].append(target)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return made


def _only(path: Path) -> Callable[[str, list[str]], list[str]]:
    """Leave out the other logs of the folder, but not what is beside this one."""
    return lambda _, names: [
        name for name in names if name != path.name and Path(name).suffix in (".jsonl", ".eval", ".parquet")
    ]


def _made(folder: Path, format: str, files: dict[str, Any]) -> list[Path]:
    place = folder / format
    place.mkdir(parents=True)
    for name, content in files.items():
        path = place / name
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path)
        elif isinstance(content, str):
            path.write_text(content)
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in content))
        else:
            path.write_text(json.dumps(content))
    return [place]


ROWS = range(12)
MADE: dict[str, dict[str, Any]] = {
    "olmes": {
        "task-000-quiz-predictions.jsonl": [
            {
                "doc_id": k,
                "native_id": f"q{k}",
                "metrics": {"acc_raw": k % 2},
                "model_output": [{"continuation": ""}],
            }
            for k in ROWS
        ],
        "task-000-quiz-metrics.json": {"task_name": "quiz", "model_config": {"model": "m"}},
    },
    "every-eval-ever": {
        "x_samples.jsonl": [
            {
                "evaluation_id": "e/m/1",
                "model_id": "m",
                "evaluation_name": "quiz",
                "sample_id": f"q{k}",
                "sample_hash": f"{k:064x}",
                "evaluation": {"score": k % 2, "is_correct": bool(k % 2)},
                "token_usage": {"input_tokens": 3, "output_tokens": 4},
            }
            for k in ROWS
        ]
    },
    "alpaca-eval": {
        "annotations.json": [
            {"instruction": f"do {k}", "generator_1": "a", "generator_2": "b", "preference": 1 + k % 2}
            for k in ROWS
        ]
    },
    "resolved-list": {
        "agent.json": {"resolved_ids": ["a", "b"], "unresolved_ids": ["c"], "error_ids": ["d"]},
    },
    "open-llm-leaderboard": {
        "details_harness|arc|25_2023-08-01T00-00-00.000000.parquet": pd.DataFrame(
            {
                "example": [f"question {k}" for k in ROWS],
                "metrics": [{"acc": float(k % 2), "acc_norm": 1.0} for k in ROWS],
                "predictions": [[-1.0, -2.0] for _ in ROWS],
                "gold": [k % 2 for k in ROWS],
            }
        )
    },
    "table": {
        "long.csv": "subject,item,score,metric\n" + "".join(f"s{k % 3},i{k},{k % 2},acc\n" for k in ROWS),
        "rows.jsonl": [
            {"model": "m", "item_id": k, "score": k / 12, "trial": 1, "status": "ok"} for k in ROWS
        ],
        "wide.csv": "model,a,b\nx,1,0\ny,0,0.5\n",
        "long.parquet": pd.DataFrame({"subject": ["x", "y"], "item": ["a", "b"], "score": [1.0, None]}),
    },
}
REAL = {
    "lm-eval": (
        "lm-eval/out/*/samples_toy_gen_*",
        "lm-eval/out/*/samples_toy_ppl_*",
        "lm-eval/out/*/*_partial_*",
    ),
    "inspect": ("inspect/logs/errors/*.eval", "inspect/logs/subset/*.eval", "inspect/logs/json/*.json"),
    "helm": ("helm/benchmark_output/runs/subset/*/per_instance_stats.json",),
    "lighteval": ("lighteval/out/details/*/*/*/*.parquet",),
}


def mutate(path: Path, rng: random.Random) -> None:
    """Break a file in place."""
    content = path.read_bytes()
    if path.suffix == ".eval" and rng.random() < 0.7:
        path.write_bytes(_archive(content, rng))
    elif path.suffix in (".json", ".jsonl") and rng.random() < 0.6:
        path.write_bytes(_json(content, path.suffix == ".jsonl", rng))
    else:
        path.write_bytes(_bytes(content, rng))


def _bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not data:
            break
        at, kind = rng.randrange(len(data)), rng.randrange(9)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + rng.randrange(1, 50)]
        elif kind == 4:
            data[at:at] = data[: rng.randrange(1, 2000)]
        elif kind == 5:
            data[at:at] = rng.choice(
                (b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"NaN", b"-Infinity", DEEP, b'"', b"\r")
            )
        elif kind == 6 and b"\n" in data:
            line = data.find(b"\n", at)
            if line >= 0:
                del data[line]
        elif kind == 7:
            data[:0] = rng.choice(
                (b"version https://git-lfs.github.com/spec/v1\n", b"\xff\xfe", b"\n\n", b"[")
            )
        else:
            data = bytearray(data.decode("latin-1").encode("utf-16" if rng.random() < 0.3 else "utf-8"))
    return bytes(data)


def _json(content: bytes, by_line: bool, rng: random.Random) -> bytes:
    try:
        texts = content.splitlines() if by_line else [content]
        chosen = rng.randrange(len(texts))
        document = json.loads(texts[chosen])
    except (ValueError, RecursionError):
        return _bytes(content, rng)
    for _ in range(rng.choice((1, 1, 3))):
        document = _exchange(document, rng)
    texts[chosen] = json.dumps(document).encode()
    if by_line and rng.random() < 0.2:
        texts.insert(chosen, texts[rng.randrange(len(texts))])
    return b"\n".join(texts) + b"\n" * by_line


def _exchange(value: Any, rng: random.Random) -> Any:
    """The document with one value, key or element in it exchanged, dropped or repeated."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return rng.choice(ODD)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return [*value[:at], *value[at + 1 :], *value[: rng.randrange(3)]]
        return [*value[:at], _exchange(value[at], rng), *value[at + 1 :]]
    key = rng.choice(list(value))
    if rng.random() < 0.2:
        return {name: inner for name, inner in value.items() if name != key}
    if rng.random() < 0.1:
        return {
            rng.choice(("", "x", "all", "#1", "a,b")) if name == key else name: v for name, v in value.items()
        }
    return value | {key: _exchange(value[key], rng)}


def _archive(content: bytes, rng: random.Random) -> bytes:
    """The archive written anew, with broken members, by deflate."""
    from irteval.responses.logs.archive import Archive

    with tempfile.NamedTemporaryFile(suffix=".eval") as file:
        file.write(content)
        file.flush()
        try:
            with Archive(Path(file.name)) as archive:
                members = {name: archive.read(name) for name in archive.names if "samples/" not in name}
        except InputError:
            return _bytes(content, rng)
    name = rng.choice(list(members))
    members[name] = _json(members[name], False, rng) if rng.random() < 0.8 else _bytes(members[name], rng)
    if rng.random() < 0.2:
        del members[rng.choice(list(members))]
    if rng.random() < 0.05:
        members[rng.choice(("../up.json", "/root.json", "a/../../b"))] = b"{}"
    if rng.random() < 0.05:
        members[name] = b" " * 300_000_000
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive_out:
        for member, data in members.items():
            archive_out.writestr(member, data)
    return out.getvalue()


def trial(format: str, seed: Path, place: Path, rng: random.Random) -> str:
    """Break a copy of a seed and read it: "read", or "refused"; other faults are raised."""
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(seed, place)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    for path in rng.sample(files, min(len(files), rng.choice((1, 1, 2)))):
        mutate(path, rng)
    options = {
        "metric": rng.choice((None, None, "all", "acc", "match")),
        "filter": rng.choice((None, None, "all", "strict-match")),
        "errors": rng.choice(("missing", "wrong")),
        "repeats": rng.choice((None, "trials", "mean", "newest", "oldest", "error")),
        "scale": rng.choice(("share", "share", "percent")),
    }
    source = rng.choice((place, rng.choice(files)))
    try:
        named = rng.choice((format, "auto"))
        result = import_logs(source, format=named, **options)  # type: ignore[arg-type]
        scores = result.table.table().column("score").to_numpy()
        assert not ((scores < 0) | (scores > 1)).any(), "a score beyond [0, 1]"
    except InputError as error:
        if "\n" in str(error):
            raise ValueError("an error of several lines") from error
        return "refused"
    return "read"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="for each format")
    parser.add_argument("--reader", help="only this format")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    found = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for format, places in seeds(folder).items():
            if not places or (arguments.reader not in (None, format)):
                continue
            rng, counts, faults = random.Random(arguments.seed), Counter[str](), Counter[str]()
            end = time.monotonic() + 60 * arguments.minutes
            while time.monotonic() < end:
                try:
                    counts[trial(format, rng.choice(places), folder / "trial", rng)] += 1
                except Exception as error:
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    fault = (
                        f"{type(error).__name__} in {where.filename.split('/')[-1]}:{where.lineno}: {error}"[
                            :160
                        ]
                    )
                    if not faults[fault]:
                        kept = Path(tempfile.mkdtemp(prefix=f"fuzz-{format}-"))
                        shutil.copytree(folder / "trial", kept / "trial")
                        print(f"{format}: {fault}\n  in {kept}\n{traceback.format_exc()}", flush=True)
                    faults[fault] += 1
            print(
                f"{format:22} {counts['read']:7,} read {counts['refused']:7,} refused {len(faults)} faults",
                flush=True,
            )
            found += len(faults)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
