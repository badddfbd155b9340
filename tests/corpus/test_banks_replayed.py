"""Bank conflicts replayed from the source, held against what the hardware counted on published kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.sources import SourceFolder
from rooflens.model.records import Hotspot, Kernel
from rooflens.model.source.banks import Replay, accesses, find_remedy
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.layouts import counted_ways
from rooflens.model.source.place import parsed
from rooflens.model.source.text import is_c_like

_LARGEST_BYTES = 20_000_000


def _kernels(corpus: Path) -> Iterator[tuple[str, Kernel]]:
    """Yield the kernels of all reports at hand, with the sources that lie beside them."""
    outcomes = corpus.parent / "outcomes"
    folder = SourceFolder(outcomes / "sources", is_asked=False) if (outcomes / "sources").is_dir() else None
    for path in sorted([*corpus.glob("*.ncu-rep"), *outcomes.glob("reports/*/*.ncu-rep")]):
        if path.stat().st_size < _LARGEST_BYTES and path.read_bytes()[:4] == b"NVR\0":
            kernels = read_report(path, path.name, ReadOptions()).kernels
            if folder is not None and path.is_relative_to(outcomes):
                kernels, _ = folder.added_to_all(kernels)
            yield from ((path.name, kernel) for kernel in kernels)


def _replayed(kernel: Kernel, spot: Hotspot) -> tuple[float, float | None] | None:
    """Return the ways of a line today and with the layout proposed; None where its addresses cannot be told."""
    held = kernel.sources.get(spot.file or "")
    if held is None or held.text is None or spot.line is None or not is_c_like(spot.file or ""):
        return None
    source = parsed(held.text)
    statement = source.statement_at(spot.line)
    function = None if statement is None else source.function_at(statement.start)
    if statement is None or function is None:
        return None
    replay = Replay(source, kernel, function)
    try:
        if not accesses(replay.site, statement, replay.arrays):
            return None
        before = replay.at(statement)
        remedy = find_remedy(replay, statement, before)
    except UnknownError:
        return None
    return before.ways, None if remedy is None else remedy.after.ways


@pytest.fixture(scope="module")
def lines(corpus: Path) -> dict[str, tuple[float, float, float | None]]:
    """Return ways counted, replayed, and with the proposed layout, of each line whose addresses can be told."""
    found: dict[str, tuple[float, float, float | None]] = {}
    for name, kernel in _kernels(corpus):
        for spot in kernel.hotspots:
            counted = counted_ways(spot) if spot.by == "line" else None
            replayed = _replayed(kernel, spot) if counted is not None else None
            if counted is not None and replayed is not None:
                place = f"{name} {kernel.function_name} {Path(spot.file or '').name}:{spot.line}"
                found[place] = (counted, *replayed)
    if not found:
        pytest.skip("no sources beside the reports")
    return found


def test_ways_replayed_are_those_counted(lines: dict[str, tuple[float, float, float | None]]) -> None:
    """On every line whose addresses the source tells, the replay takes as many passes an access as were counted."""
    for place, (counted, replayed, after) in lines.items():
        print(f"{place}: counted {counted:.4g}, replayed {replayed:.4g}, proposed {after}")  # noqa: T201 - the list
    wrong = [place for place, (counted, replayed, _) in lines.items() if replayed != pytest.approx(counted, rel=0.02)]
    assert wrong == []
    assert sum(counted > 1 for counted, _, _ in lines.values()) > 5


def test_the_layout_proposed_has_no_conflicts(lines: dict[str, tuple[float, float, float | None]]) -> None:
    """For every such line with conflicts there is a proposal, with which each access takes one pass."""
    assert [place for place, (counted, _, after) in lines.items() if counted > 1 and after != 1.0] == []
