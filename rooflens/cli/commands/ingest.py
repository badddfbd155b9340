"""`rooflens ingest`: reports into a Parquet store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import finish, progress
from rooflens.cli.loading import PATHS, find_reports
from rooflens.format import count

if TYPE_CHECKING:
    from rooflens.ingest.reports.load import Raw


@click.command()
@PATHS
@click.option(
    "--store",
    required=True,
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where to: an empty folder, a store, or an address such as s3://bucket/store.",
)
@click.option(
    "--raw",
    type=click.Choice(["none", "values", "all"]),
    default="values",
    show_default=True,
    help="Which of the reports' own values to keep besides: none, one a metric, or those of its instances too.",
)
def ingest(paths: tuple[str, ...], store: str, raw: Raw) -> None:
    """Read reports, or folders of them, into a Parquet store.

    A report that is stored already is skipped; a damaged one is named and costs nothing but itself.
    """
    from rooflens.ingest.ncu.unprofiled import read_unprofiled
    from rooflens.ingest.reports.load import ingest_reports
    from rooflens.model.store.store import Store

    inputs = find_reports(paths)
    with progress(len(inputs.jobs)) as advance:
        loaded = ingest_reports(inputs.jobs, Store(store, _say_who_writes), advance, read_unprofiled, raw=raw)
    kernel_count = sum(len(kernels) for _, kernels in loaded.reports)
    skipped = f", {count(loaded.skipped_count, 'report')} already there" if loaded.skipped_count else ""
    click.echo(f"stored {count(len(loaded.reports), 'report')} with {count(kernel_count, 'kernel')}{skipped}", err=True)
    finish(loaded, f"wrote {store}")


def _say_who_writes(who: str) -> None:
    click.echo(f"waiting for {who}, which is writing to the store", err=True)
