"""Reader of details of the first Open LLM Leaderboard: ``details_harness|<task>|<shots>_<date>.parquet``.

Two schemas: with ``metrics`` as one column of values by name, or, until July 2023, a column a metric. The
text is in ``example``, ``query`` or ``full_prompt``, and there is no id: a row's number is its native id.
Some runs hold only a part of a task, and there are several dates a model; where ``predictions`` and
``gold`` are there, accuracies that disagree with them are counted. The second leaderboard has logs of
lm-eval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from irteval.responses.logs.fields import plain, sequence, text
from irteval.responses.logs.lighteval import details_run
from irteval.responses.logs.parquet_rows import column_names, parquet_rows
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, content_hash

_TEXTS = ("example", "query", "full_prompt")
_METRICS = ("acc", "acc_norm", "mc1", "mc2", "em", "f1", "exact_match", "quasi_exact_match")
_SMALL = 1e-9


class OpenLlmLeaderboard:
    """Details of the Open LLM Leaderboard v1, one task and one subject a file."""

    name = "open-llm-leaderboard"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Parquet files with a text, ``predictions`` or ``gold``, and metrics."""
        if not head.startswith(b"PAR1"):
            return False
        names = set(column_names(path))
        has_text, has_score = names & set(_TEXTS), names & {"metrics", *_METRICS}
        return bool(has_text and has_score) and bool(names & {"predictions", "gold", "hashes", "full_prompt"})

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: a damaged file.
        """
        wanted = {*_TEXTS, *_METRICS, "metrics", "predictions", "gold", "gold_index", "choices"}
        run, builder, wrong = details_run(path, "", self.name), RecordBuilder(str(path)), 0
        for number, row in parquet_rows(path, wanted.__contains__):
            scores = _scores(row)
            asked = next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), "")
            builder.add(
                run,
                number - 1,
                number,
                scores,
                status="ok" if scores else "unscored",
                content=content_hash(asked, plain(row.get("choices")), _gold(row)) if asked else 0,
            )
            wrong += _disagrees(row, scores)
            yield from builder.full()
        yield from builder.flush()
        if wrong:
            options.note(f"{path.name}: {wrong} accuracies are not those of the most likely choice")


def _scores(row: Mapping[str, Any]) -> Mapping[str, Any]:
    given = row.get("metrics")
    if isinstance(given, dict):
        return {name: value for name, value in given.items() if value is not None}
    return {name: row[name] for name in _METRICS if row.get(name) is not None}


def _gold(row: Mapping[str, Any]) -> str:
    gold = row.get("gold", row.get("gold_index"))
    return plain(gold) or text(gold)


def _disagrees(row: Mapping[str, Any], scores: Mapping[str, Any]) -> bool:
    """Whether the accuracy is another than that of the choice with the highest log-likelihood."""
    likelihoods, gold, accuracy = sequence(row.get("predictions")), row.get("gold"), scores.get("acc")
    if len(likelihoods) < 2 or not isinstance(gold, int) or not isinstance(accuracy, int | float):
        return False
    if not all(isinstance(value, float) for value in likelihoods):
        return False
    best = max(likelihoods)
    return 0 <= gold < len(likelihoods) and abs(float(likelihoods[gold] == best) - accuracy) > _SMALL
