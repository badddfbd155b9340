"""Compare the sides of pairs of programs: what the command and the Python API do alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.model.compare.compare import compare
from rooflens.model.compare.gate import Compared
from rooflens.model.compare.pairing import refusals, warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.compare.pairing import Pair


def compare_pairs(pairs: Sequence[Pair], threshold: float, *, anyway: bool, hint: str) -> list[Compared]:
    """Compare the sides of each pair; where a program has several, its name says which.

    Args:
        pairs: Two sides of a program each.
        threshold: Smaller changes count as none.
        anyway: Compare even what was not collected alike.
        hint: How to say that.

    Raises:
        InputError: Two sides were not collected alike.
    """
    several = Counter(pair.base.digests for pair in pairs)
    found = []
    for pair in pairs:
        name = _pair_name(pair) if several[pair.base.digests] > 1 else pair.program
        reasons = refusals(pair)
        if reasons and not anyway:
            raise InputError(f"{name}: {'; '.join(reasons)}", hint)
        notes = (*reasons, *warnings(pair), *_single(pair))
        found.append(Compared(name, compare(pair.base, pair.head, threshold), notes))
    return found


def _pair_name(pair: Pair) -> str:
    """Name a pair of a program that has several: a program whose name says both sides already is named by them."""
    sides = f"{pair.base.label} -> {pair.head.label}"
    return sides if " -> " in pair.program else f"{pair.program}: {sides}"


def _single(pair: Pair) -> tuple[str, ...]:
    alone = [name for name, side in (("base", pair.base), ("head", pair.head)) if len(side.recordings) == 1]
    if not alone:
        return ()
    who = "base and head have one run each" if len(alone) == 2 else f"the {alone[0]} has one run"
    return (f"{who}, so that noise is not known",)
