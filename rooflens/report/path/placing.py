"""Which versions of a ladder have a place in the roofline plane, and where."""

from __future__ import annotations

from rooflens.model.compare.ladder import Ladder, Rung
from rooflens.model.roofline.standing import Standing, standing


def walker(ladder: Ladder) -> Ladder:
    """Return what is drawn of a ladder: the kernel it follows, else the kernel whose time changed most."""
    if ladder.followed or not ladder.kernels:
        return ladder
    return max(ladder.kernels, key=_changed_ns)


def _changed_ns(kernel: Ladder) -> float:
    known = [kernel.time_of(rung).median_ns or 0.0 for rung in kernel.present if not rung.apart]
    return max(known, default=0.0) - min(known, default=0.0)


def has_path(ladder: Ladder) -> bool:
    """Return whether two versions that are compared have a place in the plane."""
    return len(placed(ladder)) > 1


def placed(ladder: Ladder) -> list[tuple[int, Rung, Standing]]:
    """Return the versions that are compared and have a place, with their numbers, and the library's."""
    return [
        (number, rung, at)
        for number, rung in enumerate(walker(ladder).shown, 1)
        if rung.analysis and not rung.apart and (at := standing(rung.analysis))
    ]
