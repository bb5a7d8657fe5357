"""Small tables on disk, and the matrix as plain values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """A function of (text or bytes, file name) that writes a file and gives its path."""

    def write_file(content: str | bytes, name: str = "responses.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
