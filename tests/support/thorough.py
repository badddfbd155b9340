"""Cases that run by default, and those that only the thorough run adds."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def mostly_thorough(cases: Iterable[Any], *, kept: Container[Any]) -> list[Any]:
    """Return all cases for `parametrize`, of which those not kept are run by `make test-all` only.

    A plain tuple holds the values of several arguments.
    """
    return [case if case in kept else _thorough(*(case if type(case) is tuple else (case,))) for case in cases]


def _thorough(*values: Any) -> Any:
    """Return the values of one case, marked."""
    return pytest.param(*values, marks=pytest.mark.thorough)
