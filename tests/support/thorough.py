"""Cases that run by default, and cases that only the thorough run adds."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def mostly_thorough(cases: Iterable[Any], *, kept: Container[Any]) -> list[Any]:
    """Return all cases for `parametrize`, where those not kept are run only by `make test-all`.

    A plain tuple contains the values of several arguments.
    """
    return [case if case in kept else _thorough(*(case if type(case) is tuple else (case,))) for case in cases]


def _thorough(*values: Any) -> Any:
    """Return the values of one case, marked."""
    return pytest.param(*values, marks=pytest.mark.thorough)
