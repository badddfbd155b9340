"""Pair the programs of two or more sides, and compare them, for the command and the Python API alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rooflens.errors import InputError
from rooflens.model.compare.across import Across, Unpaired, across
from rooflens.model.compare.compare import compare
from rooflens.model.compare.gate import Compared
from rooflens.model.compare.pairing import Pair, is_of_others, pair_programs, refusals, warnings
from rooflens.model.records import AnalyzedReport


def pair_sides(
    sides: Sequence[Sequence[AnalyzedReport]], labels: Sequence[str]
) -> tuple[list[Pair], tuple[Unpaired, ...]]:
    """Pair the programs of each later side with those of the first one; return those without a partner, too.

    Args:
        sides: The reports of each side, two or more.
        labels: What the sides are called.

    Raises:
        InputError: A side has no program in common with the first one.
    """
    base, *heads = sides
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    for head, label in zip(heads, labels[1:], strict=True):
        pairing = pair_programs(base, head, (labels[0], label))
        pairs += pairing.pairs
        names = ("the base", "the head") if len(heads) == 1 else (f"{labels[0]}, and not {label},", label)
        found = zip(names, (pairing.only_base, pairing.only_head), strict=True)
        unpaired += [Unpaired(name, programs) for name, programs in found if programs]
    return pairs, tuple(unpaired)


def set_across(pairs: Sequence[Pair], compared: Sequence[Compared]) -> Iterator[Across]:
    """Set the sides of each program that has more than two side by side."""
    found: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        found[pair.base.digests].append(i)
    for of in found.values():
        if len(of) > 1:
            names = dict.fromkeys(pairs[i].program for i in of)
            name = next(iter(names)) if len(names) == 1 else pairs[of[0]].base.label
            labels = (pairs[of[0]].base.label, *(pairs[i].head.label for i in of))
            yield across(name, labels, [compared[i].comparison for i in of])


def compare_pairs(pairs: Sequence[Pair], threshold: float, *, anyway: bool, hint: str) -> list[Compared]:
    """Compare the sides of each pair; where a program has several, its name says which.

    Args:
        pairs: Two sides of a program each.
        threshold: Smaller changes count as no change.
        anyway: Compare even recordings that were not collected alike.
        hint: How the caller's user asks for that.

    Raises:
        InputError: Two sides were not collected alike, or have neither a GPU nor a kernel in common.
    """
    several = Counter(pair.base.digests for pair in pairs)
    found = []
    for pair in pairs:
        name = _pair_name(pair) if several[pair.base.digests] > 1 else pair.program
        reasons = refusals(pair)
        if reasons and not anyway:
            raise InputError(f"{name}: {'; '.join(reasons)}", hint)
        notes = (*reasons, *warnings(pair), *_single(pair))
        comparison = compare(pair.base, pair.head, threshold)
        if not anyway and is_of_others(comparison):
            raise InputError(f"{name}: the sides are of different GPUs and have no kernel in common", hint)
        found.append(Compared(name, comparison, notes))
    return found


def _pair_name(pair: Pair) -> str:
    """Name one of several pairs of a program; by the sides alone where the program's name has both already."""
    sides = f"{pair.base.label} -> {pair.head.label}"
    return sides if " -> " in pair.program else f"{pair.program}: {sides}"


def _single(pair: Pair) -> tuple[str, ...]:
    alone = [name for name, side in (("base", pair.base), ("head", pair.head)) if len(side.recordings) == 1]
    if not alone:
        return ()
    who = "base and head have one run each" if len(alone) == 2 else f"the {alone[0]} has one run"
    return (f"{who}, so that noise is not known",)
