"""Hold rows read in columns equal to those of single kernels, over published reports repeated as often as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest import write_repeated

from rooflens.errors import InputError
from rooflens.ingest.columns.reading import read_rows
from rooflens.ingest.reports.read import comparable, read_bytes
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.store.rows import ReportRows, kernels_from_batch, report_tables
from rooflens.model.store.schema import KERNELS as SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.load import Loaded
    from rooflens.ingest.reports.report import Report

KERNELS = 20
MOST_BYTES = 4 << 20
"""Reports of larger kernels are left out: they store values by instruction, and are read one by one."""


def _read(data: bytes, options: ReadOptions) -> tuple[Report, ReportRows]:
    report = read_bytes(data, "report", options)
    return report, ReportRows(report.run, report.kernels, None, report.raw, report.instances, report.rows)


def test_rows_are_the_same_however_they_are_read(corpus: Path, loaded: Loaded, tmp_path: Path) -> None:
    """Kernels and values are equal to the bit, and the rows give back the kernels that are read for an analysis."""
    row_count = 0
    for run, known in loaded.reports:
        source = (corpus / run.source.rpartition("/")[2]).read_bytes()
        if len(source) / max(1, len(known)) * max(KERNELS, len(known)) > MOST_BYTES:
            continue
        try:
            write_repeated(tmp_path / "report.ncu-rep", source, max(KERNELS, len(known)))
            data = (tmp_path / "report.ncu-rep").read_bytes()
            report, single = _read(data, ReadOptions(raw="values"))
        except (ValueError, InputError):
            continue  # compressed
        rows, together = _read(data, ReadOptions(raw="values", read_rows=read_rows))
        expected, found = report_tables(single), report_tables(together)
        assert found["kernels"].cast(SCHEMA).equals(expected["kernels"].cast(SCHEMA)), run.source
        assert found["hotspots"].equals(expected["hotspots"]), run.source
        assert comparable(found["metrics"]).equals(comparable(expected["metrics"])), run.source
        if rows.rows is not None:
            row_count += rows.rows.num_rows
            by_index = {kernel.index: kernel for kernel in report.kernels}
            for batch in rows.rows.to_batches():
                for kernel in kernels_from_batch(batch, {report.run.digest: "report"}, {}):
                    assert kernel == by_index[kernel.index], run.source
    assert row_count > 200
