"""Small stores for tests: reports made from a few numbers, without files to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from support.kernels import make_kernel

from rooflens.model.records import Hotspot, Kernel, Run
from rooflens.model.store.dataset import ReportFiles, Store, StoredReport, report_files
from rooflens.model.store.tables import ReportRows


def digest_of(number: int) -> str:
    """Return a digest that sorts like its number."""
    return f"{number:064x}"


DIGESTS = tuple(digest_of(number) for number in range(8))


def make_report(digest: str, kernel_count: int, **of_run: Any) -> tuple[Run, tuple[Kernel, ...]]:
    """Make a report whose kernels take as many microseconds as their position, counted from 1."""
    source = f"{int(digest, 16)}.ncu-rep"
    kernels = tuple(
        make_kernel(
            {"duration_ns": 1e3 * (index + 1)},
            digest=digest,
            source=source,
            index=index,
            hotspots=(Hotspot("line", file=source, line=index + 1, measures={"samples": 1.0}),),
        )
        for index in range(kernel_count)
    )
    return Run(digest, source, 100, kernel_count, synthetic=False, **of_run), kernels


def files_of(digest: str, kernel_count: int = 1, **of_run: Any) -> ReportFiles:
    """Make the files of such a report."""
    return report_files(ReportRows(*make_report(digest, kernel_count, **of_run)))


def commit(folder: Path, *reports: ReportFiles) -> None:
    """Commit reports to a store together."""
    store = Store(folder)
    store.prepare()
    store.put(reports)


def stored(folder: Path) -> list[StoredReport]:
    """Return the reports of a store, all of which must be whole, without the time at which they were stored."""
    found = list(Store.existing(folder).reports())
    whole = [replace(report, stored_unix_s=0) for report in found if isinstance(report, StoredReport)]
    assert len(whole) == len(found), found
    return whole
