"""What is installed with rooflens."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("package", "mended"),
    [
        ("jinja2", (3, 1, 6)),  # CVE-2025-27516: a template leaves its sandbox
        ("protobuf", (5, 29, 5)),  # CVE-2025-4565: deep nesting exhausts the stack of the reader in Python
    ],
)
def test_no_release_with_a_known_hole_is_enough(package: str, mended: tuple[int, ...]) -> None:
    """The least version that the project asks for is the one that mended the hole, or a later one."""
    (least,) = (found[1] for one in PROJECT["dependencies"] if (found := re.match(rf"{package}>=([\d.]+)", one)))
    assert tuple(map(int, least.split("."))) >= mended
