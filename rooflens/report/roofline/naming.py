"""Names of kernels at their points: in full where there is room, and versions by the labels of their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log10
from typing import Literal, NamedTuple

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.summary import Launch
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.names import FULL_LABEL_WIDTH, LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.placement import Spot, Text, around, beside
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.viewport import SizeClass, radius_px
from rooflens.report.roofline.versions import Version, versions

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


class KernelNames(Struct, frozen=True):
    """The names that the kernels of a plane may have.

    Attributes:
        known: Versions by the keys of their kernels; kernels of one report alone are not in it.
        by_width: Names by key for each number of characters; versions share theirs.
    """

    plane: Plane
    known: Mapping[str, Sequence[Version]]
    by_width: Mapping[int, Mapping[str, str]]

    def ask(self, stands: Iterable[Stand], size: SizeClass, own: Own) -> Iterator[Iterator[Label]]:
        """Ask for the names of the kernels with most time, each at the longest of its launches that has room.

        The name of a kernel with versions goes to the newest that has room; then each has the label of its report.

        Args:
            stands: Where launches are drawn.
            size: The class of sizes, which says how many names there may be and how long.
            own: Gives the boxes that only the name of a launch has to avoid.
        """
        by_kernel: dict[str, list[Stand]] = {}
        for stand in sorted(stands, key=lambda stand: -(stand.launch.time_share or 0.0)):
            by_kernel.setdefault(stand.launch.group_key, []).append(stand)
        # One name a kernel, whatever the number of its versions.
        first = {self._first(key, by_kernel) for key in by_kernel}
        for key in [key for key in by_kernel if key in first][: size.names]:
            if key in self.known:
                yield from self._ask_versions(self.known[key], by_kernel, size, own)
            else:
                words = self._words(key, by_kernel[key], size)
                yield self._tried([(stand, words) for stand in by_kernel[key][:LAUNCHES_TRIED]], own)

    def _first(self, key: str, drawn: Mapping[str, Sequence[Stand]]) -> str:
        """Find the kernel that asks for the name of all its versions."""
        versions_ = (version.launch.group_key for version in self.known.get(key, ()))
        return next((one for one in versions_ if one in drawn), key)

    def _ask_versions(
        self, known: Sequence[Version], by_kernel: Mapping[str, Sequence[Stand]], size: SizeClass, own: Own
    ) -> Iterator[Iterator[Label]]:
        width = NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH
        drawn = [
            (stands, fmt.cut_middle(version.label, width))
            for version in known
            if (stands := by_kernel.get(version.launch.group_key))
        ]
        named = (
            (stands[0], [f"{name}, {label}" for name in self._words(stands[0].launch.group_key, stands, size)])
            for stands, label in reversed(drawn)
        )
        yield self._tried(list(named), own)
        # Both ends of the path tell most.
        for stand, label in _apart(
            [(stands[0], label) for stands, label in (*drawn[-1:], *drawn[:1], *drawn[-2:0:-1])]
        ):
            spots = around(radius_px(self.plane, stand.launch))
            yield iter((stand.label("name", (label,), spots, own(stand.launch)),))

    def _tried(self, names: Sequence[tuple[Stand, Sequence[str]]], own: Own) -> Iterator[Label]:
        """Try the whole names beside their points, then shorter ones farther away too."""
        for spots, at in ((beside, 0), (around, -1)):
            for stand, words in names:
                launch = stand.launch
                yield stand.label("name", (words[at],), spots(radius_px(self.plane, launch)), own(launch))

    def _words(self, key: str, stands: Sequence[Stand], size: SizeClass) -> list[str]:
        """Name a kernel in full and short, with how many launches are drawn."""
        widths = (NARROW_LABEL_WIDTH,) if size.narrow else (FULL_LABEL_WIDTH, LABEL_WIDTH)
        count = f" x{len(stands)}" if len(stands) > 1 else ""
        return [f"{self.by_width[width][key]}{count}" for width in widths]


def kernel_names(plane: Plane) -> KernelNames:
    """Find the names of a plane's kernels."""
    kernels = {p.launch.group_key: p.launch.analysis for p in plane.placed}
    known = {version.launch.group_key: one for one in versions(plane) for version in one}
    # Namesakes get distinct names; versions are one kernel and are distinguished by their labels.
    newest = {key: known[key][-1].launch.group_key if key in known else key for key in kernels}
    named = {key: kernels[key] for key in dict.fromkeys(newest.values())}
    by_width = {}
    for width in (FULL_LABEL_WIDTH, LABEL_WIDTH, NARROW_LABEL_WIDTH):
        names = short_names(named, width)
        by_width[width] = {key: names[newest[key]] for key in kernels}
    return KernelNames(plane, known, by_width)


def _apart(drawn: Sequence[tuple[Stand, str]]) -> list[tuple[Stand, str]]:
    """Leave out versions that stand where one before them does."""
    kept: list[tuple[Stand, str]] = []
    for stand, label in drawn:
        if not any(are_near(stand, other) for other, _ in kept):
            kept.append((stand, label))
    return kept
