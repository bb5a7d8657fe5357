"""How long a large table takes to read into a sparse matrix, and how much memory.

Long tables of distinct cells in no order, 0/1 scores, written to a temporary folder: many rows over 20,000
subjects (parquet and CSV), and 66,000 subjects by 66,000 items with one cell each. Each is read in a process
of its own. Printed are seconds, and the peak resident size of that process, of which its imports take a part.

    python experiments/reading_scale.py [--rows 50000000]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ROWS_A_GROUP = 1_000_000
SUBJECTS, ITEMS = 20_000, 12_500
DIAGONAL = 66_000
STRIDE = 982_451_653  # a prime: k -> STRIDE k mod N J meets every cell once
SCHEMA = pa.schema([("subject", pa.string()), ("item", pa.string()), ("score", pa.int64())])
HEADER = """\
| table | MB on disk | seconds | peak MB | of which imports | matrix |
|---|---|---|---|---|---|"""


def batches(rows: int, subjects: int, items: int) -> Iterator[pa.RecordBatch]:
    """Distinct cells, their order mixed over the whole matrix."""
    subject_ids = pa.array([f"organisation/model-{n:06d}" for n in range(subjects)])
    item_ids = pa.array([f"benchmark-{n:06d}" for n in range(items)])
    for start in range(0, rows, ROWS_A_GROUP):
        k = np.arange(start, min(rows, start + ROWS_A_GROUP), dtype=np.int64)
        subject, item = np.divmod(k * STRIDE % (subjects * items), items)
        if rows == subjects == items:  # one cell in each row and column
            subject, item = k, k * STRIDE % items
        score = (subject * 31 + item * 17) % 3 > 0
        columns = [subject_ids.take(pa.array(subject)), item_ids.take(pa.array(item))]
        yield pa.record_batch([*columns, pa.array(score.astype(np.int64))], schema=SCHEMA)


def write(path: Path, rows: int, subjects: int, items: int) -> None:
    """The table, as parquet or CSV by its extension."""
    kind: Any = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pyarrow.parquet.ParquetWriter
    with kind(path, SCHEMA) as writer:
        for batch in batches(rows, subjects, items):
            writer.write_batch(batch)


def read(path: Path) -> dict[str, Any]:
    """What reading takes, in a process that has done nothing else."""
    from irteval.responses.read import read_responses

    imports, start = _peak(), time.perf_counter()
    matrix = read_responses(path)
    return {
        "seconds": time.perf_counter() - start,
        "peak": _peak(),
        "imports": imports,
        "matrix": repr(matrix),
    }


def _peak() -> float:
    """Peak resident size of this process in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's value, from a new process: peaks of other work would count as its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000_000)
    rows = parser.parse_args().rows
    cases = [
        ("long.parquet", rows, SUBJECTS, ITEMS),
        ("long.csv", rows, SUBJECTS, ITEMS),
        ("diagonal.parquet", DIAGONAL, DIAGONAL, DIAGONAL),
    ]
    print(HEADER)
    for name, *size in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            alone(write, path, *size)
            found = alone(read, path)
            on_disk = path.stat().st_size / 2**20
        print(
            f"| {name} | {on_disk:.0f} | {found['seconds']:.1f} | {found['peak']:.0f} | "
            f"{found['imports']:.0f} | {found['matrix']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
