"""The bank's folder: which file says what, and how each is written, read and checked.

``bank.json`` (what the bank is), ``parameters.safetensors`` (float64 arrays), ``items.parquet`` (one row an
item) and ``score_model.json`` (what the default scorer keeps of the calibrated subjects). Everything is plain
data: reading a bank never runs code from it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensor_bytes

from irteval.errors import InputError
from irteval.files import json_bytes, read_json
from irteval.irt.parameters import ItemParameters

FORMAT_VERSION: Final = 1

INFO_FILE = "bank.json"
PARAMETERS_FILE = "parameters.safetensors"
ITEMS_FILE = "items.parquet"
SCORE_MODEL_FILE = "score_model.json"
CARD_FILE = "README.md"
BANK_FILES = (INFO_FILE, PARAMETERS_FILE, ITEMS_FILE, SCORE_MODEL_FILE, CARD_FILE)

_PARAMETER_NAMES = (
    "slope",
    "intercept",
    "covariance",
    "lower",
    "upper",
    "population_mean",
    "population_covariance",
)
# One value an item: these go with the arrays, the rest of the score model to its own file.
SCORE_ARRAYS = ("source_mean", "difficulty_bin", "beyond")

Model = TypeVar("Model", bound=BaseModel)


class SourceScores(BaseModel):
    """One score of the source subjects.

    Attributes:
        scores: ascending, without ids.
        reliability: share of their variance that is not the chance of single answers.
        constant_share: share of the score that is made of items which every source subject passed, or failed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    scores: list[float]
    reliability: float
    constant_share: float


class ScoreModel(BaseModel):
    """What the default scorer keeps of the source, the calibrated subjects: no ids, no responses.

    Attributes:
        fits: names of the bank's fits that the scorer mixes.
        source: the source's scores by benchmark, and of a suite also the ``total``, which comes first.
        source_mean: smoothed mean score of each item over the source, ``[J]``.
        difficulty_bin: quantile bin of each item's source difficulty, ``[J]``, counted from 0.
        beyond: direction in which items change for subjects beyond the source's range, logits, ``[J]``; None
            where the source is too small to learn it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    fits: list[str]
    source: dict[str, SourceScores]
    source_mean: list[float]
    difficulty_bin: list[int]
    beyond: list[float] | None = None


class SubjectRegister(BaseModel):
    """Who was calibrated on, without naming anyone.

    Attributes:
        count: number of subjects.
        hash: SHA-256 of the sorted ids.
        members: a salted hash of each id, sorted, so that a known id can be recognised.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    hash: str
    members: list[str]


class BankInfo(BaseModel):
    """The content of ``bank.json``.

    Attributes:
        format_version: version of the folder's format.
        name: what people call the bank.
        response_model, dims: of the primary fit.
        identification: what fixes the scale of ability.
        metric: name of the score that the responses measure.
        benchmarks: names, in the order of their first item.
        subjects: the calibrated ones.
        dates: ISO dates by name; ``made``, and where known ``subjects_from`` and ``subjects_to``.
        versions: of the libraries that made it.
        primary: name of the primary fit.
        calibration: how it was fitted, in a line.
        part_hashes: SHA-256 of the content of each file of data.
        content_hash: SHA-256 over those.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format_version: Literal[1] = FORMAT_VERSION
    name: str
    response_model: str
    dims: int
    identification: str
    metric: str
    benchmarks: list[str]
    subjects: SubjectRegister
    dates: dict[str, str]
    versions: dict[str, str]
    primary: str
    calibration: str
    part_hashes: dict[str, str]
    content_hash: str


@dataclass(frozen=True, eq=False)
class BankParts:
    """What the files of a bank hold, before and after the disk.

    Attributes:
        parameters: the primary fit.
        further: other fits by name.
        item_table: one row an item.
        score_model: None where the bank has none.
    """

    parameters: ItemParameters
    further: Mapping[str, ItemParameters]
    item_table: pd.DataFrame
    score_model: ScoreModel | None

    def hashes(self) -> dict[str, str]:
        """SHA-256 of what each file says, by file name: the same whichever library wrote its bytes."""
        numbers = hashlib.sha256()
        for name, value in sorted(_tensors(self).items()):
            numbers.update(f"{name}{list(value.shape)}".encode())
            numbers.update(value.astype("<f8").tobytes())
        columns = json_bytes({str(name): self.item_table[name].tolist() for name in self.item_table})
        hashes = {PARAMETERS_FILE: numbers.hexdigest(), ITEMS_FILE: hashlib.sha256(columns).hexdigest()}
        if self.score_model is not None:
            document = json_bytes(_score_document(self.score_model))
            hashes[SCORE_MODEL_FILE] = hashlib.sha256(document).hexdigest()
        return hashes

    def to_files(self) -> dict[str, bytes]:
        """The content of each file of data, by file name."""
        files = {PARAMETERS_FILE: tensor_bytes(_tensors(self)), ITEMS_FILE: _table_bytes(self.item_table)}
        if self.score_model is not None:
            files[SCORE_MODEL_FILE] = json_bytes(_score_document(self.score_model))
        return files


def content_hash(part_hashes: Mapping[str, str]) -> str:
    """SHA-256 over the hashes of a bank's parts."""
    lines = "".join(f"{name} {part_hashes[name]}\n" for name in sorted(part_hashes))
    return hashlib.sha256(lines.encode()).hexdigest()


def make_item_table(
    items: Sequence[str], benchmarks: Sequence[str], columns: pd.DataFrame | None
) -> pd.DataFrame:
    """One row an item: ``item``, ``benchmark``, then whatever other columns are given.

    It is returned as it will come back from the file, so that its types, and with them the content's hash,
    survive saving and loading.
    """
    table = pd.DataFrame({"item": list(items), "benchmark": list(benchmarks)})
    if columns is not None:
        others = columns.drop(columns=["item", "benchmark"], errors="ignore").reset_index(drop=True)
        table = pd.concat([table, others], axis=1)
    return _parse_table(_table_bytes(table))


def read_bank_folder(folder: Path) -> tuple[BankInfo, BankParts]:
    """Read a bank's files and check that they are whole, fit together and are unchanged.

    Raises:
        InputError: a file that is missing, damaged, edited, or of another version; names the file.
    """
    info = _read_info(folder / INFO_FILE)
    tensors = _read_tensors(folder / PARAMETERS_FILE)
    table = _read_table(folder / ITEMS_FILE)
    score_model = None
    if SCORE_MODEL_FILE in info.part_hashes:
        score_model = _read_score_model(folder / SCORE_MODEL_FILE, tensors)
    parameters, further = _read_fits(folder / PARAMETERS_FILE, tensors, info, len(table))
    parts = BankParts(parameters, further, table, score_model)
    for name, found in parts.hashes().items():
        if info.part_hashes.get(name) != found:
            raise InputError(
                f"changed since the bank was made: its hash is not the one in {INFO_FILE}",
                file=str(folder / name),
            )
    if content_hash(info.part_hashes) != info.content_hash:
        raise InputError(
            "not the hash of the bank's parts", file=str(folder / INFO_FILE), field="content_hash"
        )
    return info, parts


def _table_bytes(table: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    # The pandas metadata names library versions, which would make equal tables differ.
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None), sink)
    return sink.getvalue()


def _parse_table(content: bytes) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(io.BytesIO(content)).to_pandas()
    return frame


def _tensors(parts: BankParts) -> dict[str, NDArray[np.float64]]:
    """Every array of a bank under its name in the file."""
    values = {name: getattr(parts.parameters, name) for name in _PARAMETER_NAMES}
    for prefix, fit in parts.further.items():
        values |= {f"{prefix}.{name}": getattr(fit, name) for name in _PARAMETER_NAMES}
    if parts.score_model is not None:
        values |= {f"score.{name}": getattr(parts.score_model, name) for name in SCORE_ARRAYS}
    return {
        name: np.ascontiguousarray(value, dtype=np.float64)
        for name, value in values.items()
        if value is not None
    }


def _score_document(score_model: ScoreModel) -> dict[str, Any]:
    return score_model.model_dump(exclude=set(SCORE_ARRAYS))


def _read_info(path: Path) -> BankInfo:
    if not path.is_file():
        raise InputError("no such file, so this is no item bank", file=str(path))
    document = read_json(path)
    version = document.get("format_version") if isinstance(document, dict) else None
    if version != FORMAT_VERSION:
        raise InputError(
            f"version {version}, this irteval reads version {FORMAT_VERSION}",
            file=str(path),
            field="format_version",
        )
    return _validated(BankInfo, document, path)


def _validated(model: type[Model], document: Any, path: Path) -> Model:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(first["msg"], file=str(path), field=where) from None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", file=str(path)) from None


def _read_tensors(path: Path) -> dict[str, NDArray[np.float64]]:
    try:
        tensors: dict[str, NDArray[np.float64]] = parse_tensors(_read_bytes(path))
    except SafetensorError as error:
        raise InputError(f"damaged or cut short ({error})", file=str(path)) from None
    for name, value in tensors.items():
        if value.dtype != np.float64:
            raise InputError(f"type {value.dtype}, wanted float64", file=str(path), field=name)
    return tensors


def _read_table(path: Path) -> pd.DataFrame:
    try:
        table = _parse_table(_read_bytes(path))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"damaged or cut short ({str(error).splitlines()[0]})", file=str(path)) from None
    for name in ("item", "benchmark"):
        if name not in table:
            raise InputError("no such column", file=str(path), field=name)
    return table


def _read_score_model(path: Path, tensors: Mapping[str, NDArray[np.float64]]) -> ScoreModel:
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError("wanted an object", file=str(path))
    arrays = {name: tensors[f"score.{name}"].tolist() for name in SCORE_ARRAYS if f"score.{name}" in tensors}
    return _validated(ScoreModel, document | arrays, path)


def _read_fits(
    path: Path, tensors: Mapping[str, NDArray[np.float64]], info: BankInfo, items: int
) -> tuple[ItemParameters, dict[str, ItemParameters]]:
    """The primary fit and the further ones out of the file's flat names."""
    grouped: dict[str, dict[str, NDArray[np.float64]]] = {"": {}}
    for full_name, value in tensors.items():
        prefix, _, name = full_name.rpartition(".")
        if prefix != "score":
            grouped.setdefault(prefix, {})[name] = value
    fits = {}
    for prefix, arrays in grouped.items():
        response_model = info.response_model if prefix == "" else "2pl"
        try:
            fits[prefix] = ItemParameters(**arrays, response_model=response_model)
        except (InputError, TypeError) as error:
            raise InputError(f"{prefix or 'primary'} fit: {error}", file=str(path)) from None
        if fits[prefix].items != items:
            raise InputError(
                f"{fits[prefix].items} rows, {ITEMS_FILE} has {items}", file=str(path), field=prefix or None
            )
    return fits.pop(""), dict(sorted(fits.items()))
