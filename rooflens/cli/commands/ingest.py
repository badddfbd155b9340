"""`rooflens ingest`: reports into a Parquet store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import finish, progress, say
from rooflens.cli.loading import PATHS, find_reports, with_reading
from rooflens.format import count

if TYPE_CHECKING:
    from rooflens.ingest.reports.report import ReadOptions


@click.command()
@PATHS
@click.option("--store", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write to.")
@with_reading
def ingest(paths: tuple[str, ...], store: Path, reading: ReadOptions) -> None:
    """Read reports, or folders of them, into a Parquet store.

    A report that is stored already is skipped; a damaged one is named and costs nothing but itself.
    """
    from rooflens.ingest.ncu.unprofiled import read_unprofiled
    from rooflens.ingest.reports.load import ingest_reports
    from rooflens.model.store.store import Store

    inputs, options = find_reports(paths, reading), replace(reading, raw="values")
    with progress(len(inputs.jobs)) as advance:
        loaded = ingest_reports(inputs.jobs, Store(store), advance, read_unprofiled, options=options)
    stored = f"stored {count(loaded.report_count, 'report')} with {count(loaded.kernel_count, 'kernel')}"
    skipped = f", {count(loaded.skipped_count, 'report')} already there" if loaded.skipped_count else ""
    say(f"{stored}{skipped}")
    finish(loaded, f"wrote {store}")
