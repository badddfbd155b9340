"""Make a store of this version from one of schema 2, 3 or 4; the old one is kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.old_stores.rows import WITH_HOTSPOTS, read_old
from rooflens.model.store.marker import old_version
from rooflens.model.store.parts import FILE_NAME, PART_BYTES, PartWriter
from rooflens.model.store.place import Place
from rooflens.model.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

OLDEST = 2


class Migrated(Struct, frozen=True):
    """What became of an old store.

    Attributes:
        version: Schema version it had.
        kept: Where it is now.
        report_count: How many reports the new store has.
        failures: File in the store, and error, of each report that could not be migrated.
    """

    version: int
    kept: Path
    report_count: int
    failures: tuple[tuple[str, InputError], ...]

    @property
    def without_hotspots(self) -> bool:
        """Whether the old store kept no hot spots."""
        return self.version < WITH_HOTSPOTS


def migrate(folder: Path, *, with_instances: bool = False) -> Migrated:
    """Write the reports of an old store into a new one, and swap the two.

    Args:
        folder: The old store, afterwards the new one.
        with_instances: Keep the values by instance too.

    Raises:
        InputError: It is not an old store, is of schema 1, or the folder beside it cannot be written to.
    """
    version = old_version(Place(folder))
    if version is None:
        Store.existing(folder)  # says what is wrong, if it is not a store
        raise InputError(f"`{folder}` is a store of this version already", "there is nothing to do")
    if version < OLDEST:
        raise InputError(f"`{folder}` holds schema version {version}", "ingest its reports into a new store")
    new, kept = (folder.with_name(f"{folder.resolve().name}.{what}") for what in ("migrating", f"schema-{version}"))
    if kept.exists():
        raise InputError(f"`{kept}` is in the way: the old store goes there", "move it elsewhere")
    digests = sorted(match[1] for file in (folder / "runs").iterdir() if (match := FILE_NAME.fullmatch(file.name)))
    failures: list[tuple[str, InputError]] = []
    with Store(new).writing() as store:
        waiting = [digest for digest in digests if digest not in store.digests()]
        while waiting:
            with PartWriter(store.place) as writer:
                while waiting and writer.byte_count < PART_BYTES:
                    _take(folder, waiting.pop(), writer, failures, with_instances=with_instances)
            store.commit(writer.summary)
        report_count = len(store.digests())
    try:
        folder.rename(kept)
        new.rename(folder)
    except OSError as error:
        message = f"the new store is in `{new}`, and cannot take the place of `{folder}`: {error.strerror}"
        raise InputError(message, "rename the two yourself") from error
    return Migrated(version, kept, report_count, tuple(failures))


def _take(
    folder: Path, digest: str, writer: PartWriter, failures: list[tuple[str, InputError]], *, with_instances: bool
) -> None:
    try:
        report = read_old(folder, digest)
    except InputError as error:
        failures.append((str(folder / "runs" / f"{digest}.parquet"), error))
        return
    instances = report.instances if with_instances else None
    writer.add_report(replace(report, instances=instances))
