"""A metric as ncu is asked for it, and the tiers of a collection. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Detail = Literal["quick", "standard", "deep"]
Kind = Literal["hardware", "sass", "sampling", "launch"]
"""Who counts: hardware counters (replay passes), patched code (one SASS pass), the warp sampler, or ncu itself."""

DETAILS: tuple[Detail, ...] = get_args(Detail)


@dataclass(frozen=True, slots=True)
class Metric:
    """One name to ask ncu for.

    Attributes:
        detail: The tier from which on this chip's collection holds it.
    """

    name: str
    kind: Kind
    meaning: str
    detail: Detail
