"""The item bank: calibrated items with their parameters, identity and provenance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from irteval import __version__
from irteval.bank_card import bank_card
from irteval.bank_format import (
    BANK_FILES,
    CARD_FILE,
    INFO_FILE,
    SCORE_ARRAYS,
    BankInfo,
    BankParts,
    ScoreModel,
    SourceScores,
    SubjectRegister,
    content_hash,
    make_item_table,
    read_bank_folder,
)
from irteval.errors import BankMismatchError, InputError
from irteval.files import check_folder, json_bytes, write_folder
from irteval.irt.parameters import ItemParameters
from irteval.responses.matrix import ResponseMatrix

__all__ = ["BankInfo", "FitReport", "ItemBank", "ScoreModel", "SourceScores"]

IDENTIFICATION = "ability has mean 0 and covariance I over the calibrated subjects; logit metric, D = 1"
# A response table that knows fewer of its items than this share is of another benchmark.
_LEAST_SHARE_KNOWN = 0.5


@dataclass(frozen=True)
class FitReport:
    """How the fit that made a bank went.

    Attributes:
        response_model, dims: of the primary fit.
        subjects, items, cells: size of the responses; cells are the observed ones.
        converged, iterations, seconds: of the primary fit, seconds of everything.
        warnings: one line each.
    """

    response_model: str
    dims: int
    subjects: int
    items: int
    cells: int
    converged: bool
    iterations: int
    seconds: float
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self) | {"warnings": list(self.warnings)}


@dataclass(frozen=True, eq=False)
class ItemBank:
    """J calibrated items.

    Make one with ``build`` (fits do), ``from_parameters`` or ``from_difficulty`` (plain numbers), ``load``.

    Attributes:
        UNNAMED: the benchmark's name where the responses gave none.
        items: ids, in the order of every ``[J]`` array.
        parameters: the primary fit.
        item_table: one row an item: ``item``, ``benchmark``, and where known ``content_hash``, ``prompt``,
            ``cost``, ``times_answered``, ``mean``, ``flags``.
        info: identity and provenance.
        further: other 2PL fits by name, such as ``k2`` and ``k4``, that the default scorer mixes.
        score_model: what the default scorer keeps of the source; None in a bank made from plain numbers.
        fit_report: how the fit went; None in a bank that was loaded or made from plain numbers.
    """

    UNNAMED: ClassVar[str] = "benchmark"

    items: tuple[str, ...]
    parameters: ItemParameters
    item_table: pd.DataFrame
    info: BankInfo
    further: Mapping[str, ItemParameters] = field(default_factory=dict)
    score_model: ScoreModel | None = None
    fit_report: FitReport | None = None

    @classmethod
    def build(
        cls,
        items: Iterable[str],
        parameters: ItemParameters,
        *,
        benchmarks: Iterable[str] | None = None,
        item_table: pd.DataFrame | None = None,
        further: Mapping[str, ItemParameters] | None = None,
        score_model: ScoreModel | None = None,
        subjects: Iterable[str] = (),
        name: str | None = None,
        metric: str = "score",
        calibration: str = "parameters given as numbers",
        dates: Mapping[str, str] | None = None,
        fit_report: FitReport | None = None,
    ) -> ItemBank:
        """A bank from its parts.

        Args:
            items: J distinct ids.
            parameters: the primary fit.
            benchmarks: one name an item; None where the responses named none.
            item_table: columns beyond ``item`` and ``benchmark``, rows in the items' order.
            further: other fits by name.
            score_model: what the default scorer needs.
            subjects: ids of the calibrated subjects; only salted hashes of them are kept.
            name: of the bank; its benchmarks' names by default.
            metric: name of the score.
            calibration: how it was fitted, in a line.
            dates: ISO dates by name; ``made`` is today unless given.
            fit_report: how the fit went.

        Raises:
            InputError: parts that do not fit together.
        """
        items = tuple(items)
        names = (cls.UNNAMED,) * len(items) if benchmarks is None else tuple(benchmarks)
        further = dict(sorted((further or {}).items()))
        _check_items(items)
        _check_fit_names(further, parameters)
        _check_lengths(items, names, parameters, further, score_model, item_table)
        parts = BankParts(parameters, further, make_item_table(items, names, item_table), score_model)
        hashes = parts.hashes()
        own_names = list(dict.fromkeys(names))
        info = BankInfo(
            name=name or " + ".join(own_names),
            response_model=parameters.response_model,
            dims=parameters.dims,
            identification=IDENTIFICATION,
            metric=metric,
            benchmarks=own_names,
            subjects=_register(subjects, salt=content_hash(hashes)),
            dates={"made": datetime.now(UTC).date().isoformat()} | dict(dates or {}),
            versions=_versions(),
            primary=_primary_name(parameters),
            calibration=calibration,
            part_hashes=hashes,
            content_hash=content_hash(hashes),
        )
        return cls(items, parameters, parts.item_table, info, further, score_model, fit_report)

    @classmethod
    def from_parameters(
        cls,
        items: Iterable[str],
        slope: ArrayLike,
        intercept: ArrayLike,
        *,
        covariance: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        scaling: float = 1.0,
        benchmarks: Iterable[str] | None = None,
        name: str | None = None,
    ) -> ItemBank:
        """A bank from published numbers: ``P = c + (u - c) sigmoid(D (a·theta + d))``.

        Args:
            items: J distinct ids.
            slope: a, ``[J]`` or ``[J, K]``.
            intercept: d, ``[J]``.
            covariance: of (a_1 … a_K, d), ``[J, K + 1, K + 1]``.
            lower, upper: asymptotes c and u, ``[J]``.
            scaling: D of the published metric: 1 in the logit, 1.7 or 1.702 in the normal metric. The bank
                keeps D = 1.
            benchmarks: one name an item.
            name: of the bank.

        Raises:
            InputError: shapes that do not fit together, or a value that is not finite.
        """
        parameters = ItemParameters(
            slope=scaling * np.asarray(slope, dtype=np.float64),
            intercept=scaling * np.asarray(intercept, dtype=np.float64),
            covariance=None if covariance is None else scaling**2 * np.asarray(covariance, dtype=np.float64),
            lower=None if lower is None else np.asarray(lower, dtype=np.float64),
            upper=None if upper is None else np.asarray(upper, dtype=np.float64),
            response_model="4pl" if upper is not None else "3pl" if lower is not None else "2pl",
        )
        return cls.build(items, parameters, benchmarks=benchmarks, name=name)

    @classmethod
    def from_difficulty(
        cls,
        items: Iterable[str],
        a: ArrayLike,
        b: ArrayLike,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        scaling: float = 1.0,
        benchmarks: Iterable[str] | None = None,
        name: str | None = None,
    ) -> ItemBank:
        """A one-dimensional bank from discriminations a and difficulties b, ``[J]`` each: ``d = -a b``.

        The other arguments are those of ``from_parameters``.
        """
        slope = np.asarray(a, dtype=np.float64)
        return cls.from_parameters(
            items,
            slope,
            -slope * np.asarray(b, dtype=np.float64),
            lower=lower,
            upper=upper,
            scaling=scaling,
            benchmarks=benchmarks,
            name=name,
        )

    @cached_property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmark of each item, ``[J]``."""
        return tuple(self.item_table["benchmark"])

    @property
    def fits(self) -> dict[str, ItemParameters]:
        """Every fit by name, the primary one first."""
        return {self.info.primary: self.parameters, **self.further}

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {item: position for position, item in enumerate(self.items)}

    @cached_property
    def _members(self) -> frozenset[str]:
        return frozenset(self.info.subjects.members)

    def __len__(self) -> int:
        """J, the number of items."""
        return len(self.items)

    def index(self, items: Iterable[str]) -> NDArray[np.intp]:
        """Positions of item ids in the bank.

        Raises:
            BankMismatchError: an id that the bank does not hold.
        """
        try:
            return np.array([self._positions[item] for item in items], dtype=np.intp)
        except KeyError as error:
            raise BankMismatchError(f"bank '{self.info.name}' has no item {error}") from None

    def match(self, responses: ResponseMatrix) -> ResponseMatrix:
        """The responses over the bank's items in the bank's order, missing where there are none.

        Raises:
            BankMismatchError: fewer than half of the responses' items are in the bank, or they go by the
                name of another benchmark there.
        """
        known = np.array([item in self._positions for item in responses.items], dtype=bool)
        if not known.any() or known.mean() < _LEAST_SHARE_KNOWN:
            stranger = responses.items[int(np.argmin(known))] if known.size else ""
            raise BankMismatchError(
                f"bank '{self.info.name}' holds {known.sum()} of the {known.size} items of the responses "
                f"(not '{stranger}'), wanted at least half of them"
            )
        self._check_benchmark(responses, known)
        matched = responses.with_items(self.items)
        if known.all():
            return matched
        left_out = (
            f"{(~known).sum()} of {known.size} items are not in bank '{self.info.name}' and are left out"
        )
        return replace(matched, notes=(*matched.notes, left_out))

    def _check_benchmark(self, responses: ResponseMatrix, known: NDArray[np.bool_]) -> None:
        """Positional ids such as ``17`` are in every benchmark: names tell them apart where there are any."""
        own = set(self.info.benchmarks)
        if responses.benchmarks is None or own == {self.UNNAMED}:
            return
        theirs = {name for name, is_known in zip(responses.benchmarks, known, strict=True) if is_known}
        if own.isdisjoint(theirs):
            raise BankMismatchError(
                f"bank '{self.info.name}' is of {_listed(own)}, the responses are of {_listed(theirs)}"
            )

    def knows_subject(self, subject: str) -> bool:
        """Whether the subject belongs to the calibrated population, whose scores are no test of the bank."""
        return _member_hash(self.info.content_hash, subject) in self._members

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False, card_notes: str = "") -> None:
        """Write the bank's folder, whole or not at all. The same bank gives the same bytes.

        Args:
            folder: where.
            overwrite: replace a bank that is there already.
            card_notes: Markdown that the card ends with, such as the error measured on held-out subjects.

        Raises:
            InputError: the folder exists, and is not to be overwritten or holds other files.
            OSError: the disk is full or the place can't be written; what was there stays as it was.
        """
        parts = BankParts(self.parameters, self.further, self.item_table, self.score_model)
        files = {INFO_FILE: json_bytes(self.info.model_dump()), **parts.to_files()}
        files[CARD_FILE] = bank_card(self.info, parts, Path(folder).name, card_notes).encode()
        write_folder(folder, files, replaces=BANK_FILES if overwrite else ())

    @staticmethod
    def check_place(folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Check, before a long fit, that ``save`` would take this place.

        Raises:
            InputError: the folder exists, and is not to be overwritten or holds other files.
        """
        check_folder(folder, BANK_FILES if overwrite else ())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> ItemBank:
        """Read a bank's folder and check that it is whole and unchanged.

        Raises:
            InputError: a file that is missing, damaged, edited, or of another version; names the file.
        """
        info, parts = read_bank_folder(Path(folder))
        items = tuple(parts.item_table["item"])
        return cls(items, parts.parameters, parts.item_table, info, parts.further, parts.score_model)


def _check_items(items: tuple[str, ...]) -> None:
    if not items:
        raise InputError("a bank needs at least one item", field="items")
    if len(set(items)) < len(items):
        twice = next(item for item in items if items.count(item) > 1)
        raise InputError(f"item '{twice}' is there twice", field="items")


def _check_fit_names(further: Mapping[str, ItemParameters], parameters: ItemParameters) -> None:
    for name, fit in further.items():
        if fit.response_model != "2pl" or name in {"score", _primary_name(parameters)}:
            raise InputError("a further fit is a 2PL under a name of its own", field=name)


def _check_lengths(
    items: tuple[str, ...],
    benchmarks: tuple[str, ...],
    parameters: ItemParameters,
    further: Mapping[str, ItemParameters],
    score_model: ScoreModel | None,
    item_table: pd.DataFrame | None,
) -> None:
    lengths = {"benchmarks": len(benchmarks), "parameters": parameters.items}
    lengths |= {name: fit.items for name, fit in further.items()}
    if item_table is not None:
        lengths["item_table"] = len(item_table)
    if score_model is not None:
        arrays = {name: getattr(score_model, name) for name in SCORE_ARRAYS}
        lengths |= {name: len(value) for name, value in arrays.items() if value is not None}
    for name, length in lengths.items():
        if length != len(items):
            raise InputError(f"{length} rows, wanted one for each of {len(items)} items", field=name)


def _primary_name(parameters: ItemParameters) -> str:
    return f"k{parameters.dims}" if parameters.response_model == "2pl" else parameters.response_model


def _versions() -> dict[str, str]:
    return {"irteval": __version__} | {name: metadata.version(name) for name in ("numpy", "torch")}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _register(subjects: Iterable[str], salt: str) -> SubjectRegister:
    ids = sorted(set(subjects))
    digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()
    return SubjectRegister(
        count=len(ids), hash=digest, members=sorted(_member_hash(salt, subject) for subject in ids)
    )


def _member_hash(salt: str, subject: str) -> str:
    return hashlib.sha256(f"{salt}\0{subject}".encode()).hexdigest()[:16]
