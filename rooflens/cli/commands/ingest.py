"""`rooflens ingest`: read reports into a Parquet store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import finish, progress, say
from rooflens.cli.loading import GPU, PATHS, READER, find_reports, print_remarks, with_wanted
from rooflens.cli.usage import Command, examples
from rooflens.format import count

if TYPE_CHECKING:
    from rooflens.cli.wanted import Wanted
    from rooflens.ingest.reports.report import Raw


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens ingest reports/ --store runs",
        "rooflens ingest report.ncu-rep --store runs --raw all",
        "rooflens ingest reports/ --store s3://bucket/runs --executor process:8",
    ),
)
@PATHS
@click.option(
    "--store",
    required=True,
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where to write: an empty folder, a store, or an address such as s3://bucket/store.",
)
@click.option(
    "--raw",
    type=click.Choice(["none", "values", "all"]),
    default="values",
    show_default=True,
    help="Raw values to keep as well: none, one per metric, or also those of instances.",
)
@click.option(
    "--executor",
    metavar="WHERE",
    help="Where to read: process:8 (local processes), or dask:tcp://host:8786.  [default: depends on the amount]",
)
@READER
@GPU
@with_wanted
def ingest(*, wanted: Wanted, raw: Raw, executor: str | None) -> None:
    """Read reports, or folders of them, into a Parquet store.

    Stored reports are skipped; damaged reports are named, and the rest are read. Reports are stored in groups as they
    are read: what is stored stays, however the command ends.
    """
    from msgspec.structs import replace

    from rooflens.addresses import shown
    from rooflens.ingest.load import Ingested, ingest_reports, processes_for
    from rooflens.ingest.reports.unprofiled import read_unprofiled
    from rooflens.model.store.dataset import Store

    store = wanted.store or ""
    inputs, options = find_reports(wanted.paths, wanted.reading), replace(wanted.reading, raw=raw)

    def tell(so_far: Ingested) -> None:
        say(f"stored {count(so_far.report_count, 'report')} so far; more follow")

    with progress(len(inputs.jobs)) as move:
        workers = executor or processes_for(inputs.jobs)
        loaded = ingest_reports(
            inputs.jobs,
            Store(store),
            move,
            read_unprofiled,
            options=options,
            executor=workers,
            on_stored=tell,
        )
    stored = f"stored {count(loaded.report_count, 'report')} with {count(loaded.kernel_count, 'kernel')}"
    skipped = f", {count(loaded.skipped_count, 'report')} already there" if loaded.skipped_count else ""
    say(f"{stored}{skipped}")
    print_remarks(loaded)
    finish(loaded, f"wrote {shown(store)}")
