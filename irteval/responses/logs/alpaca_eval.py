"""Reader of AlpacaEval annotations: ``annotations.json``, an array of judged pairs of answers.

Each entry has ``instruction``, ``generator_1`` (the reference), ``generator_2`` (the subject),
``annotator`` and ``preference``. The reference and the judge are a variant: the same subject against
another is another score.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from irteval.errors import InputError
from irteval.responses.logs.fields import number, plain, text
from irteval.responses.logs.json_stream import array_elements
from irteval.responses.logs.reader import ReadOptions
from irteval.responses.logs.records import RecordBuilder, Records, Run, content_hash
from irteval.responses.policies.preferences import share_preferred

_KEYS = (b'"generator_1"', b'"generator_2"')


class AlpacaEval:
    """Annotations of AlpacaEval; the score is how far the subject was preferred."""

    name = "alpaca-eval"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Files named ``annotations*.json``, and arrays of objects with two generators."""
        if path.suffix != ".json" or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            return False
        return path.name.startswith("annotations") or any(key in head for key in _KEYS)

    def records(self, path: Path, options: ReadOptions) -> Iterator[Records]:
        """The records, a batch at a time.

        Raises:
            InputError: an entry that is no annotation.
        """
        runs: dict[tuple[str, str, str], Run] = {}
        builder = RecordBuilder(str(path))
        for line, entry in array_elements(path):
            if not isinstance(entry, dict) or not isinstance(entry.get("instruction"), str):
                raise InputError("an entry without an instruction", file=str(path), line=line)
            subject, reference = text(entry.get("generator_2")), text(entry.get("generator_1"))
            if not subject:
                raise InputError("no name of a subject", file=str(path), line=line, field="generator_2")
            names = subject, reference, text(entry.get("annotator"))
            content = content_hash(entry["instruction"], plain(entry.get("dataset")))
            builder.add(
                runs.get(names) or runs.setdefault(names, _run(path, *names)),
                f"{content:016x}",
                line,
                {"preference": share_preferred(entry.get("preference"))},
                content=content,
                seconds=number(entry.get("time_per_example")),
                empty=entry.get("output_2") == "",
            )
            yield from builder.full()
        yield from builder.flush()


def _run(path: Path, subject: str, reference: str, judge: str) -> Run:
    facets = [("against", reference), ("judge", judge)]
    return Run(
        file=str(path),
        subject=subject,
        benchmark="alpaca_eval",
        variant=";".join(f"{name}={value}" for name, value in facets if value),
        harness="alpaca-eval",
        main_metrics=("preference",),
    )
