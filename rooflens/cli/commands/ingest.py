"""`rooflens ingest`: reports into a Parquet store."""

from __future__ import annotations

from pathlib import Path

import click

from rooflens.cli.console import finish, progress, say
from rooflens.cli.loading import MAX_UNPACKED, PATHS, find_reports
from rooflens.format import count


@click.command()
@PATHS
@click.option("--store", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write to.")
@MAX_UNPACKED
def ingest(paths: tuple[str, ...], store: Path, max_unpacked_bytes: int | None) -> None:
    """Read reports, or folders of them, into a Parquet store.

    A report that is stored already is skipped; a damaged one is named and costs nothing but itself.
    """
    from rooflens.ingest.ncu.unprofiled import read_unprofiled
    from rooflens.ingest.reports.load import ingest_reports
    from rooflens.model.store.store import Store

    inputs = find_reports(paths, max_unpacked_bytes)
    with progress(len(inputs.jobs)) as advance:
        loaded = ingest_reports(inputs.jobs, Store(store), advance, read_unprofiled)
    stored = f"stored {count(loaded.report_count, 'report')} with {count(loaded.kernel_count, 'kernel')}"
    skipped = f", {count(loaded.skipped_count, 'report')} already there" if loaded.skipped_count else ""
    say(f"{stored}{skipped}")
    finish(loaded, f"wrote {store}")
