"""How fast lm-eval's logs are read, beside bare parsing of the same lines, and how much memory it takes.

    python experiments/reading_speed.py --megabytes 2000

A sample log is repeated with new ids and new content hashes until the file has the wanted size, in a
temporary folder. Printed are the best of three of each: `orjson.loads` line by line and no more; the reader
alone, which gives columns; the whole import with its policies. Memory is the peak of the process that
imports, less what it had after its imports. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "samples" / "lm-eval" / "out" / "acme__toy-7b"
MIB = 2**20


def repeat(source: Path, target: Path, size: int) -> int:
    """Write a log of this size, and return how many lines it has."""
    lines = source.read_bytes().splitlines(keepends=True)
    parts = [
        re.fullmatch(rb'({"doc_id": )(\d+)(.*"doc_hash": ")[0-9a-f]{16}(.*)', line, re.S) for line in lines
    ]
    number = again = 0
    with open(target, "wb") as file:
        while file.tell() < size:
            for part in parts:
                if part is None:
                    raise ValueError(f"{source} has a line of another form")
                document = again * len(lines) + int(part[2])
                content = (document + 1) * 0x9E3779B97F4A7C15 % 2**64
                file.write(b"%s%d%s%016x%s" % (part[1], document, part[3], content, part[4]))
                number += 1
            again += 1
    return number


def bare(path: Path) -> None:
    """Parse every line, and do nothing with it."""
    import orjson

    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)


def reader(path: Path) -> None:
    """Read the records, batch by batch."""
    from irteval.responses.logs.lm_eval import LmEval
    from irteval.responses.logs.reader import ReadOptions

    for _ in LmEval().records(path, ReadOptions()):
        pass


def whole(path: Path) -> None:
    """Import the log, with every policy."""
    from irteval.responses.importing import import_logs

    import_logs(path)


STEPS: dict[str, Callable[[Path], None]] = {"bare": bare, "reader": reader, "import": whole}


def peak() -> int:
    """Peak resident memory of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def one_step(name: str, path: Path) -> None:
    """Run a step in this process; print its seconds, and the memory it took in MiB."""
    if name != "bare":
        import irteval.responses.importing  # noqa: F401 (its memory is not the step's)
    before = peak()
    start = time.perf_counter()
    STEPS[name](path)
    print(time.perf_counter() - start, (peak() - before) / MIB)


def measure(name: str, path: Path) -> tuple[float, float]:
    """Best seconds of three, and the largest memory, each in a process of its own."""
    runs = []
    for _ in range(3):
        command = [sys.executable, __file__, "--step", name, "--file", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(tuple(map(float, done.stdout.split())))
    return min(seconds for seconds, _ in runs), max(memory for _, memory in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--task", default="toy_mc_a", help="of the sample log: toy_mc_a, toy_gen …")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        one_step(arguments.step, arguments.file)
        return
    source = next(SAMPLES.glob(f"samples_{arguments.task}_2026-11-30T14*.jsonl"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "org__model"
        folder.mkdir()
        path = folder / source.name
        count = repeat(source, path, arguments.megabytes * 1_000_000)
        size = path.stat().st_size
        print(f"{arguments.task}: {size / 1e6:,.0f} MB, {count:,} lines of {size / count:,.0f} bytes")
        seconds = {}
        for step in STEPS:
            seconds[step], memory = measure(step, path)
            share = seconds["bare"] / seconds[step]
            print(
                f"{step:7} {seconds[step]:7.2f} s {size / 1e6 / seconds[step]:6.0f} MB/s"
                f" {share:5.0%} of bare {memory:6.0f} MiB"
            )


if __name__ == "__main__":
    main()
