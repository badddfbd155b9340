"""Fixtures that every part of the tests shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of published reports; skip the test where there is none."""
    folder = Path(os.environ.get("ROOFLENS_CORPUS") or _REPOSITORY.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip(f"no corpus of published reports at {folder}: set ROOFLENS_CORPUS to one")
    return folder


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Return the folder of the stored reports."""
    return _REPOSITORY / "fixtures"
