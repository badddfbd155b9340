"""Small stores for tests: reports made from a few numbers, without files to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.kernels import make_kernel

from rooflens.model.records import Hotspot, Kernel, Run
from rooflens.model.store.dataset import Store, StoredReport
from rooflens.model.store.tables import ReportRows, report_tables


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


def tables_of(digest: str, kernel_count: int = 1, **of_run: Any) -> dict[str, pa.Table]:
    """Make the tables of such a report."""
    return report_tables(ReportRows(*make_report(digest, kernel_count, **of_run)))


def commit(folder: Path, *reports: Mapping[str, pa.Table]) -> str:
    """Commit reports to a store as one ingest; return the name of its files."""
    with Store(folder).writing() as writer:
        for tables in reports:
            writer.add_reports(tables)
    return writer.id


def stored(folder: Path) -> list[StoredReport]:
    """Return the reports of a store, all of which must be whole."""
    found = list(Store.existing(folder).reports())
    whole = [report for report in found if isinstance(report, StoredReport)]
    assert len(whole) == len(found), found
    return whole
