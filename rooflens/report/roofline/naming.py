"""Names of kernels at their points: in full where there is room, and versions by the labels of their reports."""

from __future__ import annotations

from itertools import chain
from math import log10
from typing import TYPE_CHECKING, Literal, NamedTuple

from rooflens import format as fmt
from rooflens.report.plane.names import FULL_LABEL_WIDTH, LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.placement import Text, around, beside
from rooflens.report.plane.viewport import radius_px
from rooflens.report.roofline.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.launches import Launch
    from rooflens.report.plane.geometry import Box
    from rooflens.report.plane.placement import Spot
    from rooflens.report.plane.plane import Plane
    from rooflens.report.plane.viewport import SizeClass
    from rooflens.report.roofline.versions import Version

    Kind = Literal["rank", "ridge", "mark", "name"]
    Own = Callable[[Launch], Sequence[Box]]

SAME_PLACE_DECADES = 0.1
"""Points nearer than this are one place with one mark."""

LAUNCHES_TRIED = 3
"""Launches of one kernel at which its name is tried."""


class Label(NamedTuple):
    """A text at a launch, or at a ridge, which belongs to none."""

    kind: Kind
    launch: Launch | None
    text: Text


class Stand(NamedTuple):
    """Where a launch is drawn."""

    launch: Launch
    x: float
    y: float

    def label(self, kind: Kind, words: Sequence[str], spots: Sequence[Spot], own: Sequence[Box] = ()) -> Label:
        """Ask for words at it, or for shorter ones."""
        return Label(kind, self.launch, Text(tuple(words), self.x, self.y, spots, bold=kind == "rank", own=own))


def are_near(one: Stand, other: Stand) -> bool:
    """Return whether two places are one to the eye."""
    return abs(log10(one.x / other.x)) < SAME_PLACE_DECADES and abs(log10(one.y / other.y)) < SAME_PLACE_DECADES


def kernel_names(plane: Plane, stands: Iterable[Stand], size: SizeClass, own: Own) -> Iterator[Iterator[Label]]:
    """Ask for the names of the kernels with most time, each at the longest of its launches that has room.

    The name of a kernel with versions stands at the newest one that has room; then each has the label of its report.

    Args:
        plane: The plane.
        stands: Where launches are drawn.
        size: The class of sizes, which says how many names there may be and how long.
        own: Gives the boxes that only the name of a launch has to avoid.
    """
    by_kernel: dict[str, list[Stand]] = {}
    for stand in sorted(stands, key=lambda stand: -(stand.launch.time_share or 0.0)):
        by_kernel.setdefault(stand.launch.group_key, []).append(stand)
    known = {version.launch.group_key: one for one in versions(plane) for version in one}
    words = _words(plane, known, by_kernel, size)
    # One name a kernel, whatever the number of its versions.
    named = {id(known.get(key, key)): key for key in reversed(by_kernel)}
    for key in [key for key in by_kernel if key in named.values()][: size.names]:
        if key not in known:
            yield _tried([(stand, words[key]) for stand in by_kernel[key][:LAUNCHES_TRIED]], plane, own)
            continue
        drawn = [
            (by_kernel[v.launch.group_key][0], _label(v, size)) for v in known[key] if v.launch.group_key in by_kernel
        ]
        newest_first = drawn[::-1]
        yield _tried(
            [(s, [f"{name}, {label}" for name in words[s.launch.group_key]]) for s, label in newest_first], plane, own
        )
        # Both ends of the path tell most.
        for stand, label in _apart([*newest_first[:1], *drawn[:1], *newest_first[1:-1]]):
            yield iter((stand.label("name", (label,), around(radius_px(plane, stand.launch)), own(stand.launch)),))


def _tried(names: Sequence[tuple[Stand, Sequence[str]]], plane: Plane, own: Own) -> Iterator[Label]:
    """Try the whole names beside their points, then shorter ones farther away too."""
    return chain(
        (s.label("name", words[:1], beside(radius_px(plane, s.launch)), own(s.launch)) for s, words in names),
        (s.label("name", words[-1:], around(radius_px(plane, s.launch)), own(s.launch)) for s, words in names),
    )


def _apart(drawn: Sequence[tuple[Stand, str]]) -> list[tuple[Stand, str]]:
    """Leave out versions that stand where one before them does."""
    kept: list[tuple[Stand, str]] = []
    for stand, label in drawn:
        if not any(are_near(stand, other) for other, _ in kept):
            kept.append((stand, label))
    return kept


def _label(version: Version, size: SizeClass) -> str:
    return fmt.cut_middle(version.label, NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH)


def _words(
    plane: Plane,
    known: Mapping[str, Sequence[Version]],
    by_kernel: Mapping[str, Sequence[Stand]],
    size: SizeClass,
) -> dict[str, list[str]]:
    """Name kernels in full and short, with how many launches are drawn."""
    kernels = {p.launch.group_key: p.launch.analysis for p in plane.placed}
    # Namesakes are told apart; versions are one kernel, told apart by their labels.
    newest = {key: known[key][-1].launch.group_key if key in known else key for key in kernels}
    widths = (NARROW_LABEL_WIDTH,) if size.narrow else (FULL_LABEL_WIDTH, LABEL_WIDTH)
    named = {key: kernels[key] for key in dict.fromkeys(newest.values())}
    by_width = [short_names(named, width) for width in widths]
    return {
        key: [f"{names[newest[key]]} x{len(own)}" if len(own) > 1 else names[newest[key]] for names in by_width]
        for key, own in by_kernel.items()
    }
