"""The rooms of the house: data flows one way, and a room imports from rooms above it only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "irteval"

# From the top down, as CONTRIBUTING.md lists them; those in one line may use each other.
ROOMS = [
    {"errors", "files", "device", "__init__"},
    {"responses"},
    {"irt"},
    {"bank", "bank_format", "bank_card"},
    {"calibrate"},
    {"select"},
    {"estimate"},
    {"cohort", "session", "journal", "scoring"},
    {"drivers"},
    {"validation"},
    {"report"},
    {"demo"},
    {"cli"},
]
FLOOR = {name: floor for floor, names in enumerate(ROOMS) for name in names}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    modules = [
        node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    return {name.split(".")[1] for name in modules if name is not None and name.startswith("irteval.")}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_room_imports_from_rooms_above_it(path):
    if path == PACKAGE / "__init__.py":  # the public names come from everywhere, when they are used
        return
    floor = FLOOR[room_of(path)]
    assert {name for name in imported_rooms(path) if FLOOR[name] > floor} == set()
