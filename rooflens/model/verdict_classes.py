"""The six classes of verdicts, as verdicts and the cases of workloads name them, and how one that is open is shown."""

from collections.abc import Collection
from typing import Literal, cast, get_args

Bound = Literal["memory", "compute", "latency", "overhead", "balanced", "unknown"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)

ShownClass = Literal[
    "memory",
    "memory?",
    "compute",
    "compute?",
    "latency",
    "latency?",
    "overhead",
    "overhead?",
    "balanced",
    "unknown",
]
"""A class as it is shown and added up: an open one apart from the sure one. `balanced` is never open, for both sides
were measured, nor `unknown`, which says itself that nothing was."""
SHOWN_CLASSES: tuple[ShownClass, ...] = get_args(ShownClass)

_OPEN = "?"


def shown_class(bound: Bound, or_bound: Collection[Bound]) -> ShownClass:
    """Return what every output calls a class: `latency`, and `latency?` where it could be another one."""
    return cast("ShownClass", marked(bound, or_bound))


def marked(name: str, or_bound: Collection[Bound]) -> str:
    """Put the mark of an open class behind words that name it."""
    return f"{name}{_OPEN}" if or_bound else name


def is_open(shown: str) -> bool:
    """Return whether a class, as it is shown, is open."""
    return shown.endswith(_OPEN)


def bound_of(shown: str) -> str:
    """Return the class itself, whether it is open or not."""
    return shown.removesuffix(_OPEN)
