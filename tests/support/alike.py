"""Compare what sums were made of in another order: all is equal, numbers but for their last digits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict


def are_alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal, numbers in them up to a part in a million millions."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, Struct) and type(one) is type(other):
        return are_alike(asdict(one), asdict(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(are_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(are_alike, one, other))
    return bool(one == other)
