"""`rooflens store`: what is done to a store as a whole."""

from __future__ import annotations

from pathlib import Path

import click

from rooflens.cli.console import say, show_error
from rooflens.cli.usage import NamedGroup
from rooflens.format import count, quantity

_DIR = click.argument("store", metavar="DIR", type=click.Path(file_okay=False))


@click.group(cls=NamedGroup)
def store() -> None:
    """Compact a store, or migrate an older one to this version."""


@store.command()
@_DIR
@click.option("--drop-damaged", is_flag=True, help="Remove parts that cannot be read, and what they held.")
@click.pass_context
def compact(context: click.Context, store: str, *, drop_damaged: bool) -> None:
    """Merge many small parts into a few large ones, better compressed.

    Nothing is lost: damaged parts are kept and named unless --drop-damaged is given.
    """
    from rooflens.model.store.compacting import compact as compact_store
    from rooflens.model.store.store import Store

    opened = Store.existing(store)
    done = compact_store(opened, drop_damaged=drop_damaged)
    for error in done.damaged.values():
        if drop_damaged:
            say(f"dropped: {error}")
        else:
            show_error(error)
    before, after = quantity(done.bytes_before, "B"), quantity(done.byte_count, "B")
    say(f"{count(done.parts_before, 'part')} of {before} are now {done.parts} of {after}")
    say(f"wrote {opened.place}")
    if done.damaged and not drop_damaged:
        context.exit(1)


@store.command()
@_DIR
@click.option(
    "--raw",
    type=click.Choice(["values", "all"]),
    default="values",
    show_default=True,
    help="Which raw values to carry over: one per metric, or its instances as well.",
)
def migrate(store: str, raw: str) -> None:
    """Migrate a store of an older rooflens (schema 2, 3 or 4) to this version.

    The old store is kept beside it. Hot spots come from reports only: a store of schema 2 has none.
    """
    from rooflens.ingest.old_stores.migrate import migrate as migrate_store

    done = migrate_store(Path(store), with_instances=raw == "all")
    for source, error in done.failures:
        show_error(error, source)
    say(f"stored {count(done.report_count, 'report')} of schema {done.version}")
    if done.without_hotspots:
        say(f"note: schema {done.version} kept no hot spots: ingest the reports again to get them")
    say(f"the old store is now {done.kept}")
    say(f"wrote {store}")
    if done.failures:
        click.get_current_context().exit(1)
