"""What ``import irteval`` promises."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import irteval


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_import_loads_neither_torch_nor_pandas():
    heavy = "{'torch', 'pandas', 'scipy', 'sklearn', 'matplotlib'}"
    assert python(f"import sys, irteval; print({heavy} & set(sys.modules))") == "set()"


@pytest.mark.parametrize("name", irteval.__all__)
def test_every_public_name_is_there(name):
    assert getattr(irteval, name) is not None
    assert name in dir(irteval)


def test_no_module_takes_the_place_of_a_public_name():
    code = """
import pkgutil, types, irteval
for module in pkgutil.walk_packages(irteval.__path__, "irteval."):
    __import__(module.name)
print([name for name in irteval.__all__ if isinstance(getattr(irteval, name), types.ModuleType)])
"""
    assert python(code) == "[]"


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        irteval.nothing  # noqa: B018


def test_the_version_is_the_installed_one():
    assert irteval.__version__ == version("irteval")
