"""Which parts a store has, which part holds which report, and whether their files are what was committed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from msgspec import Struct, field

from rooflens.errors import InputError
from rooflens.model.store.parts import FILE_NAME, Committed, read_commit
from rooflens.model.store.place import hash_of
from rooflens.model.store.rows import runs_from_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rooflens.model.records import Run
    from rooflens.model.store.place import Place

_NAMED = 3
"""Sources that a hint names; there may be thousands."""


class MissingFileError(InputError):
    """A file of a part is not there: it was lost, or a writer has replaced the part since it was listed."""


class Part(Struct, frozen=True):
    """A committed part.

    Attributes:
        rows: Its rows of `runs`, in the order in which its reports stand in its files.
        runs: The same by digest.
    """

    commit: Committed
    rows: pa.Table
    runs: Mapping[str, Run]

    @property
    def key(self) -> str:
        """Its name."""
        return self.commit.key


class Index(Struct, frozen=True):
    """What a store holds.

    Attributes:
        parts: By key, in the order of commit; those that others replace are left out.
        owner: Digest of each report -> key of the part that counts for it.
        unreadable: Key -> why, of the parts whose file in `runs` cannot be read.
        replaced: Keys of parts that still have files though another stands for them.
    """

    parts: Mapping[str, Part]
    owner: dict[str, str]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()

    def digests_of(self, part: Part) -> tuple[str, ...]:
        """Return the reports that a part counts for, in its order."""
        return tuple(digest for digest in part.runs if self.owner[digest] == part.key)

    def with_part(self, part: Part) -> Index:
        """Return what the store holds once a part is committed; this index is not to be used any more."""
        parts = {key: old for key, old in self.parts.items() if key not in part.commit.replaces}
        unreadable = {key: why for key, why in self.unreadable.items() if key not in part.commit.replaces}
        self.owner.update(dict.fromkeys(part.runs, part.key))
        return Index({**parts, part.key: part}, self.owner, unreadable)


def part_of(commit: Committed, rows: pa.Table) -> Part:
    """Put together what is known of a part."""
    return Part(commit, rows, {run.digest: run for run in runs_from_table(rows)})


def read_index(place: Place) -> Index:
    """Read every file in `runs`.

    Raises:
        InputError: The folder cannot be listed.
    """
    found: dict[str, Part] = {}
    unreadable: dict[str, str] = {}
    gone: set[str] = set()
    is_whole = False
    while not is_whole:
        keys = _keys(place)
        is_whole = True
        for key in sorted(keys - found.keys() - unreadable.keys() - gone):
            try:
                commit, rows = read_commit(place, key)
                found[key] = part_of(commit, rows)
            except FileNotFoundError:  # a writer has replaced it, by one that may not have been listed yet
                gone.add(key)
                is_whole = False
            except (OSError, ValueError, TypeError, KeyError) as error:
                unreadable[key] = str(error)
    ordered = sorted(found.values(), key=lambda part: (part.commit.committed_unix_ns, part.key))
    replaced = frozenset(old for part in ordered for old in part.commit.replaces)
    replaced &= found.keys() | unreadable.keys() | gone
    parts = {part.key: part for part in ordered if part.key not in replaced}
    owner = {digest: part.key for part in parts.values() for digest in part.runs}
    return Index(parts, owner, {key: why for key, why in unreadable.items() if key not in replaced}, replaced)


def _keys(place: Place) -> set[str]:
    try:
        return {match[1] for entry in place.list("runs") if (match := FILE_NAME.fullmatch(entry.name))}
    except OSError as error:
        raise InputError(f"cannot read the store `{place}`: {error}", "give a store that can be read") from error


def open_all_checked(place: Place, part: Part, table: str) -> list[Any]:
    """Open all files of a part that hold a table, in their order; errors as those of `open_checked`."""
    with ExitStack() as stack:
        found = (open_checked(place, part, table, key) for key in part.commit.keys)
        files = [stack.enter_context(file) for file in found if file is not None]
        stack.pop_all()  # whoever asked closes them
        return files


def open_checked(place: Place, part: Part, table: str, key: str | None = None) -> Any:
    """Open a file of a part that is what was committed; None where the part has no such table.

    Args:
        place: The store.
        part: The part.
        table: The table.
        key: Which of its files, where it has more than one; the first by default.

    Raises:
        MissingFileError: It is not there.
        InputError: It is not what was committed.
    """
    key = key or part.key
    summary = (part.commit.files if key == part.key else part.commit.more[key]).get(table)
    if summary is None:
        return None
    runs, name = tuple(part.runs.values()), f"{table}/{key}.parquet"
    try:
        file = place.open(name)
        try:
            if file.size() != summary.byte_count or hash_of(file) != summary.sha256:
                raise ValueError("it is not the file that was committed")  # noqa: TRY301 - one message for all damage
            if pq.ParquetFile(file).metadata.num_rows != summary.rows:
                raise ValueError("it does not have the rows that were committed")  # noqa: TRY301
            file.seek(0)
        except BaseException:
            file.close()
            raise
    except FileNotFoundError as error:
        raise damaged(place, name, "it is missing", runs, MissingFileError) from error
    except (OSError, ValueError) as error:
        raise damaged(place, name, error, runs) from error
    return file


def damaged(
    place: Place,
    name: str,
    why: object,
    runs: tuple[Run, ...] = (),
    kind: type[InputError] = InputError,
) -> InputError:
    """Return the error for a damaged file of a part; its reports replace it when they are ingested again."""
    file = place.text_of(name)
    others = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    sources = " ".join(f"`{run.source}`" for run in runs[:_NAMED]) or "its reports"
    hint = f"ingest {sources}{others} again to replace it"
    drop = f"; `rooflens store compact {place} --drop-damaged` removes what you no longer have the reports of"
    return kind(f"damaged store file `{file}`: {why}", hint + drop)
