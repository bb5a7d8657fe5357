"""The documentation as a test: its commands run, its links lead somewhere, its JSON is what is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from irteval.cli import app
from irteval.estimate.result import Estimate

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# Blocks that are not run here, by a part of their text, and why.
NOT_RUN = {
    "-e . && .venv/bin/irteval demo": "installs into the clone; the demo itself is run by the fixture below",
    ".venv/bin/python -m pytest": "is this test run; .ci/run takes the line from the README as it stands",
    "source .venv/bin/activate": "sets a developer's shell up",
    "python experiments/": "takes minutes; the scripts are linted and typed, and their parts have tests",
    "ruff check . && ruff format .": "changes the clone; .ci/run checks the same",
}


@dataclass(frozen=True)
class Block:
    language: str
    text: str

    @property
    def reason_not_run(self) -> str | None:
        return next((reason for part, reason in NOT_RUN.items() if part in self.text), None)


def blocks_of(document: Path) -> list[Block]:
    fences = re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in fences]


def runnable(document: Path) -> list[Block]:
    return [b for b in blocks_of(document) if b.language in ("sh", "python") and b.reason_not_run is None]


def run(arguments: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        arguments, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    run(["irteval", "demo"], folder)
    return folder / "irteval-demo"


def put_harness_files(shared: Path, folder: Path) -> None:
    """Logs, tasks and a model, by the names that docs/harnesses.md gives them."""
    for name in ("lm_eval", "inspect_ai", "transformers"):
        pytest.importorskip(name)
    samples = shared / "samples"
    kept = ("toy_mc_a", "toy_mc_b", "toy_fewshot")
    for log in (samples / "lm-eval" / "out").glob("*/*"):
        if log.name.startswith(("results_", *(f"samples_{task}_" for task in kept))):
            (folder / "lm-eval-logs" / log.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(log, folder / "lm-eval-logs" / log.parent.name)
    (folder / "tasks").mkdir()
    for task in kept:
        text = (samples / "lm-eval" / "tasks" / f"{task}.yaml").read_text()
        (folder / "tasks" / f"{task}.yaml").write_text(text.replace("./", f"{samples}/lm-eval/tasks/"))
    (folder / "tinygpt2").symlink_to(samples / "tinygpt2")


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if runnable(d)], ids=lambda d: d.name)
def test_the_commands_of_a_page_run_in_its_order(document, demo_folder, tmp_path, request):
    shutil.copytree(demo_folder, tmp_path / "irteval-demo")
    if document.name == "harnesses.md":
        put_harness_files(request.getfixturevalue("shared"), tmp_path)
    for language, group in groupby(runnable(document), key=lambda block: block.language):
        for text in [b.text for b in group] if language == "sh" else ["\n".join(b.text for b in group)]:
            if file := re.match(r"# (\w+\.py)\b", text):
                (tmp_path / file[1]).write_text(text)
            elif language == "sh":
                run(["bash", "-euo", "pipefail", "-c", text], tmp_path)
            else:
                run([sys.executable, "-c", text], tmp_path)


def test_no_reason_is_left_over():
    everything = "\n".join(block.text for document in DOCUMENTS for block in blocks_of(document))
    assert [part for part in NOT_RUN if part not in everything] == []


def anchors(document: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        page = document.parent / name if name else document
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), target


def flags(command: Any) -> set[str]:
    own = {flag for parameter in command.params for flag in parameter.opts}
    return own.union(*(flags(below) for below in getattr(command, "commands", {}).values()))


def test_every_flag_in_the_docs_is_one_of_the_command_line():
    prose = "\n".join(d.read_text() for d in DOCUMENTS if d.parent.name == "docs" or d.name == "README.md")
    # Blocks that are run speak for themselves, and hold the flags of pip and pytest.
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", prose, flags=re.DOTALL))
    mentioned = {flag for text in inline for flag in re.findall(r"(?<!\S)--[a-z-]+", text)}
    assert mentioned - flags(get_command(app)) - {"--help"} == set()


def test_the_documented_estimate_has_the_keys_of_a_real_one():
    example = next(b for b in blocks_of(ROOT / "docs" / "files.md") if '"estimates"' in b.text)
    (estimate,) = json.loads(example.text)["estimates"]
    assert list(estimate) == [field.name for field in fields(Estimate)]


def test_the_docs_show_the_same_errors_as_the_card_of_the_bank():
    def rows(document: Path) -> set[str]:
        return set(re.findall(r"^\| (?:newest|random) \d+ %, .*$", document.read_text(), flags=re.MULTILINE))

    card = rows(ROOT / "fitted_models" / "swebench-verified" / "README.md")
    shown = rows(ROOT / "README.md"), rows(ROOT / "docs" / "accuracy.md")
    assert all(shown)
    assert set.union(*shown) <= card
