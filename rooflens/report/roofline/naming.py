"""Names of kernels at their points: in full where there is room, and versions by the labels of their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from rooflens import format as fmt
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.names import FULL_LABEL_WIDTH, LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.placement import Spot, Text, apart, around, beside
from rooflens.report.plane.plane import DrawnLaunch, Plane, Point
from rooflens.report.plane.viewport import SizeClass, radius_px
from rooflens.report.roofline.versions import versions

Kind = Literal["ridge", "mark", "name"]
BoxesOf = Callable[[Point], Sequence[Box]]

LAUNCHES_TRIED = 3
"""Launches of a kernel at which its name is tried."""


class PlaneLabel(NamedTuple):
    """A text at a launch, or at a ridge, which belongs to none."""

    kind: Kind
    launch: DrawnLaunch | None
    text: Text


def label(
    kind: Kind, point: Point, words: Sequence[str], spots: Sequence[Spot], boxes: Sequence[Box] = ()
) -> PlaneLabel:
    """Ask for words at a launch, or for shorter ones."""
    return PlaneLabel(kind, point.launch, Text(tuple(words), *point.at, spots, own=boxes))


class KernelNames(Struct, frozen=True):
    """The names that the kernels of a plane may have.

    Attributes:
        known: Versions by the keys of their kernels; kernels of one report alone are not in it.
        by_width: Names by key for each number of characters; versions share theirs.
    """

    plane: Plane
    known: Mapping[str, Sequence[DrawnLaunch]]
    by_width: Mapping[int, Mapping[str, str]]

    def ask(
        self, points: Iterable[Point], first: str, size: SizeClass, boxes_of: BoxesOf
    ) -> Iterator[Iterator[PlaneLabel]]:
        """Ask for the names of the kernels with most time, each at the longest of its launches that has room.

        That of the launch which the page is about first comes before all.

        The name of a kernel with versions goes to the newest that has room; then each has the label of its report.
        Beside a ladder the versions that it follows have its labels alone, and all other kernels their own names.

        Args:
            points: Where launches are drawn.
            first: Key of that launch.
            size: The class of sizes, which says how many names there may be and how long.
            boxes_of: Gives the boxes that only the name of a launch has to avoid.
        """
        by_kernel: dict[str, list[Point]] = {}
        for point in sorted(points, key=lambda point: (point.launch.key != first, -point.launch.time_share)):
            by_kernel.setdefault(point.launch.group_key, []).append(point)
        yield from self._ask_climbers(by_kernel, size, boxes_of)
        # One name a kernel, for any number of versions.
        heads = {self._first(key, by_kernel) for key in by_kernel}
        for key in [key for key in by_kernel if key in heads][: size.names]:
            if key in self.known:
                yield from self._ask_versions(self.known[key], by_kernel, size, boxes_of)
            else:
                words = self._name_words(by_kernel[key], size)
                yield self._tried([(point, words) for point in by_kernel[key][:LAUNCHES_TRIED]], boxes_of)

    def _ask_climbers(
        self, by_kernel: dict[str, list[Point]], size: SizeClass, boxes_of: BoxesOf
    ) -> Iterator[Iterator[PlaneLabel]]:
        """Ask for the labels of the versions that a ladder follows, and leave one of each other name to be named."""
        if not self.plane.climbers:
            return
        width = NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH
        followed = [points[0] for points in by_kernel.values() if points[0].launch.called]
        followed.sort(key=lambda point: self.plane.climbers.index(point.launch.called))
        for point in followed:
            del by_kernel[point.launch.group_key]
        for point in apart(followed):
            words = (fmt.cut_middle(point.launch.called, width),)
            spots = around(radius_px(self.plane, point.launch))
            yield iter((label("name", point, words, spots, boxes_of(point)),))
        left = {points[0].launch.name: key for key, points in reversed(by_kernel.items())}
        for key in by_kernel.keys() - set(left.values()):
            del by_kernel[key]

    def _first(self, key: str, drawn: Mapping[str, Sequence[Point]]) -> str:
        versions_ = (version.group_key for version in self.known.get(key, ()))
        return next((one for one in versions_ if one in drawn), key)

    def _ask_versions(
        self,
        versions: Sequence[DrawnLaunch],
        by_kernel: Mapping[str, Sequence[Point]],
        size: SizeClass,
        boxes_of: BoxesOf,
    ) -> Iterator[Iterator[PlaneLabel]]:
        width = NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH
        labels = {version.group_key: fmt.cut_middle(version.report, width) for version in versions}
        drawn = [points for key in labels if (points := by_kernel.get(key))]
        named = [
            (points[0], [f"{name}, {labels[points[0].launch.group_key]}" for name in self._name_words(points, size)])
            for points in reversed(drawn)
        ]
        yield self._tried(named, boxes_of)
        # Both ends of the path tell most.
        for point in apart(points[0] for points in (*drawn[-1:], *drawn[:1], *drawn[-2:0:-1])):
            spots = around(radius_px(self.plane, point.launch))
            yield iter((label("name", point, (labels[point.launch.group_key],), spots, boxes_of(point)),))

    def _tried(self, names: Sequence[tuple[Point, Sequence[str]]], boxes_of: BoxesOf) -> Iterator[PlaneLabel]:
        """Try the whole names beside their points, then shorter ones farther away too."""
        for spots, at in ((beside, 0), (around, -1)):
            for point, words in names:
                yield label("name", point, (words[at],), spots(radius_px(self.plane, point.launch)), boxes_of(point))

    def _name_words(self, points: Sequence[Point], size: SizeClass) -> list[str]:
        """Name a kernel in full and short, with how many launches are drawn."""
        widths = (NARROW_LABEL_WIDTH,) if size.narrow else (FULL_LABEL_WIDTH, LABEL_WIDTH)
        count = f" x{len(points)}" if len(points) > 1 else ""
        return [f"{self.by_width[width][points[0].launch.group_key]}{count}" for width in widths]


def kernel_names(plane: Plane) -> KernelNames:
    """Find the names of a plane's kernels."""
    kernels = {p.launch.group_key: p.launch.name for p in plane.placed}
    known = {version.group_key: one for one in versions(plane) for version in one if not plane.climbers}
    # Namesakes get distinct names; versions are one kernel and are distinguished by their labels.
    newest = {key: known[key][-1].group_key if key in known else key for key in kernels}
    named = {key: kernels[key] for key in dict.fromkeys(newest.values())}
    by_width = {}
    for width in (FULL_LABEL_WIDTH, LABEL_WIDTH, NARROW_LABEL_WIDTH):
        names = short_names(named, width)
        by_width[width] = {key: names[newest[key]] for key in kernels}
    return KernelNames(plane, known, by_width)
