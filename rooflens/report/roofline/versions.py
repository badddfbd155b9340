"""Versions of a kernel: what several reports hold of one name on one GPU, joined in the order of recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import rounded, table, ways
from rooflens.report.plane.plane import DrawnLaunch, Plane, Point

MOST = 8
"""Kernels whose paths are drawn while none is isolated; more would hide each other."""

FAMILY = "families[kernel]"
"""Expression of the versions that the isolated kernel belongs to."""

_AT = "level === 'own' ? datum.near : datum.level === (level === 'all' ? far : level)"
_SHOWN = f"kernel === '' ? datum.f < {MOST} : datum.f === {FAMILY}"


def versions(plane: Plane) -> tuple[tuple[DrawnLaunch, ...], ...]:
    """List the kernels that several reports hold, those with most time first: their longest launch of each version."""
    longest: dict[str, dict[str, DrawnLaunch]] = {}
    for launch in plane.launches:
        if launch.report:
            longest.setdefault(launch.line, {}).setdefault(launch.report, launch)
    found = [own for own in longest.values() if len(own) > 1]
    found.sort(key=lambda own: -sum(launch.time_share for launch in own.values()))
    return tuple(tuple(own[report] for report in plane.reports if report in own) for own in found)


def families(versions: Sequence[Sequence[DrawnLaunch]]) -> dict[str, int]:
    """Map the key of each kernel that has versions to their number."""
    return {version.group_key: i for i, one in enumerate(versions) for version in one}


def path_rows(plane: Plane, versions: Sequence[Sequence[DrawnLaunch]]) -> list[dict[str, Any]]:
    """Make a row per version and level, in the order of recording: `f` number of the kernel, `i` of the version."""
    at: defaultdict[str, list[Point]] = defaultdict(list)
    for point in plane.points:
        at[point.launch.key].append(point)
    return [
        {
            "f": f,
            "i": i,
            "k": version.key,
            "g": version.group_key,
            "level": point.level,
            **({"near": 1} if point.nearest else {}),
            "x": rounded(point.intensity),
            "y": rounded(point.per_s),
        }
        for f, one in enumerate(versions)
        for i, version in enumerate(one)
        for point in at[version.key]
    ]


def path_layers() -> list[alt.Chart]:
    """Join the versions that no filter hides, with a head on each part of the path that is long enough."""
    seen = table("versions").transform_filter(_AT).transform_filter(f"!hidden[datum.k] && ({_SHOWN})")
    return ways(seen)
