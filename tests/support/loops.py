"""One test over many cases, which runs all of them and lists every failure in its message."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_all(
    names: str, cases: Iterable[Any], named: Callable[[Any], object] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case for its arguments `names`, as `pytest.mark.parametrize` does, in one item.

    For hundreds of fast cases, for which an item each would cost more than the check itself. The test's other arguments
    are fixtures, the same for all cases.
    """
    arguments, all_cases = [name.strip() for name in names.split(",")], list(cases)

    def looped(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def over_all(**fixtures: Any) -> None:
            wrong = []
            for case in all_cases:
                values = case if len(arguments) > 1 else (case,)
                try:
                    test(**dict(zip(arguments, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all cases are tried, and all offenders named
                    wrong.append(f"{named(case)}: {type(error).__name__}: {error}")
            assert all_cases
            assert not wrong, f"{len(wrong)} of {len(all_cases)} cases\n" + "\n".join(wrong)

        taken = inspect.signature(test)
        rest = [value for name, value in taken.parameters.items() if name not in arguments]
        over_all.__signature__ = taken.replace(parameters=rest)  # type: ignore[attr-defined]
        return over_all

    return looped
