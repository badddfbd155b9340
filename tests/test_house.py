"""The lines by capability of `benchmarks/house.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import house


def test_every_capability_names_what_is_there() -> None:
    """A folder or file that is gone makes its capability look smaller than it is, and the script ends with an error."""
    assert house.stale_paths() == []
