"""Read the reports of a part one after the other, in bounded memory."""

from __future__ import annotations

import math
import operator
from contextlib import ExitStack
from functools import reduce
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from msgspec import Struct

from rooflens.errors import InputError
from rooflens.model.keys import Keys
from rooflens.model.store.index import MissingFileError, damaged, open_all_checked, open_checked, read_index
from rooflens.model.store.rows import LAUNCH_COLUMNS, kernels_from_batch, launches_from_batch
from rooflens.model.store.schema import KERNELS
from rooflens.model.store.tables.columns import sendable, sent, texts
from rooflens.model.store.tables.findings import hotspots_from_batch
from rooflens.model.store.tables.unprofiled import unprofiled_from_row
from rooflens.model.store.where import for_run, to_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.records import Hotspot, Kernel, Run
    from rooflens.model.store.index import Index, Part
    from rooflens.model.store.place import Place
    from rooflens.model.store.where import Node
    from rooflens.model.unprofiled import Unprofiled

_ROWS_AT_ONCE = 2048
"""Kernels that are decoded together: some 20 MB."""


class StoredReport(Struct, frozen=True):
    """One report as it comes out of a store, or a piece of it.

    Attributes:
        unprofiled: Its run without the profiler; None where none was kept.
        chosen: Positions in the report of the kernels that were asked for, where more are here; None for all of them.
        keys: Keys of all launches of the report, by position, where some of them are not here; None where all are, or
            will come.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    unprofiled: Unprofiled | None = None
    chosen: frozenset[int] | None = None
    keys: Mapping[int, str] | None = None


class Piece(Struct, frozen=True):
    """A report of a chunk, or a piece of one.

    Attributes:
        kernel_count: Rows of the chunk that are its own.
        unprofiled, chosen, keys: As `StoredReport` has them.
    """

    run: Run
    kernel_count: int
    unprofiled: Unprofiled | None = None
    chosen: frozenset[int] | None = None
    keys: Mapping[int, str] | None = None


class Chunk(Struct, frozen=True):
    """Reports of a part as rows, in its order, from which records can be made in another process.

    Attributes:
        key: Key of the part.
        rows: Of `kernels`.
        spots: Rows of `hotspots`: of these kernels, and maybe of others of the same reports.
    """

    key: str
    pieces: tuple[Piece, ...]
    rows: tuple[pa.RecordBatch, ...]
    spots: tuple[pa.RecordBatch, ...]

    @property
    def kernel_count(self) -> int:
        """Kernels of all its reports."""
        return sum(piece.kernel_count for piece in self.pieces)

    def __reduce__(self) -> tuple[Any, ...]:
        return _sent_chunk, (self.key, self.pieces, sendable(self.rows), sendable(self.spots))

    def reports(self) -> list[StoredReport]:
        """Make the records.

        Raises:
            ValueError, TypeError, KeyError: The rows are not such as a store holds.
        """
        kernels = iter(self._kernels())
        return [
            StoredReport(
                piece.run, tuple(islice(kernels, piece.kernel_count)), piece.unprofiled, piece.chosen, piece.keys
            )
            for piece in self.pieces
        ]

    def _kernels(self) -> list[Kernel]:
        if not self.rows:
            return []
        (batch,) = pa.Table.from_batches(self.rows).combine_chunks().to_batches()
        sources = {piece.run.digest: piece.run.source for piece in self.pieces}
        spots: dict[str, dict[int, tuple[Hotspot, ...]]] = {}
        for rows in self.spots:
            for digest, of_report in hotspots_from_batch(rows).items():
                known = spots.setdefault(digest, {})
                for index, more in of_report.items():
                    known[index] = known.get(index, ()) + more
        return kernels_from_batch(batch, sources, spots)


def _sent_chunk(key: str, pieces: tuple[Piece, ...], rows: pa.Buffer | None, spots: pa.Buffer | None) -> Chunk:
    return Chunk(key, pieces, sent(rows), sent(spots))


Failure = tuple[str, InputError]
"""A file as messages show it, and what is wrong with it."""


class Choice(Struct, frozen=True):
    """Which kernels of a store are wanted.

    Attributes:
        where: A condition; True for all.
        is_whole: Whether a report needs all of its kernels, whichever were asked for; one with a run without the
            profiler always does.
        at_once: Kernels of a report that come together at most, where not all of them are needed: a larger report comes
            in pieces, one after the other; None for whole reports.
        are_named: Whether launches of reports that do not come whole need their names.
    """

    where: Node = True
    is_whole: Callable[[Run], bool] = lambda _: False
    at_once: int | None = None
    are_named: bool = True


def read_reports(
    place: Place, index: Index, choice: Choice, known: Collection[str] = ()
) -> Iterator[StoredReport | Failure]:
    """Read reports of a store, as `read_chunks` does."""
    for found in read_chunks(place, index, choice, known):
        if not isinstance(found, Chunk):
            yield found
            continue
        try:
            reports = found.reports()
        except (OSError, ValueError, TypeError, KeyError) as error:
            yield undecodable(place, found, error)
        else:
            yield from reports


def undecodable(place: Place, chunk: Chunk, error: object) -> Failure:
    """Return the failure of a chunk whose rows cannot be decoded, though its files are what was committed."""
    runs = tuple(piece.run for piece in chunk.pieces)
    return place.text_of("runs", f"{chunk.key}.parquet"), damaged(place, f"kernels/{chunk.key}.parquet", error, runs)


def read_chunks(place: Place, index: Index, choice: Choice, known: Collection[str] = ()) -> Iterator[Chunk | Failure]:
    """Read reports of a store, part by part; a damaged part gives its file and what is wrong.

    A part that a writer replaces meanwhile is read where its reports are now, each once. Reports without a wanted
    kernel are left out, and so are the parts in `known`.
    """
    seen: set[str] = {*known, *(digest for key in known for digest in index.digests_of(index.parts[key]))}
    while not (yield from _read_parts(place, index, choice, seen)):
        index = read_index(place)


def _read_parts(place: Place, index: Index, choice: Choice, seen: set[str]) -> Generator[Chunk | Failure, None, bool]:
    """Read what was not seen; return whether all parts were still there."""
    for key, why in index.unreadable.items():
        if key not in seen:
            seen.add(key)
            error = damaged(place, f"runs/{key}.parquet", why)
            error.report_count = None
            yield place.text_of("runs", f"{key}.parquet"), error
    for part in index.parts.values():
        left = {digest: for_run(choice.where, part.runs[digest]) for digest in index.digests_of(part)}
        wanted = {digest: node for digest, node in left.items() if node not in {False, None} and digest not in seen}
        if not wanted or part.key in seen:
            continue
        try:
            for chunk in _read_part(place, part, wanted, choice):
                seen.update(piece.run.digest for piece in chunk.pieces)
                yield chunk
        except InputError as error:
            if isinstance(error, MissingFileError) and not place.exists("runs", f"{part.key}.parquet"):
                return False
            seen.add(part.key)
            error.report_count = len(wanted.keys() - seen)
            yield place.text_of("runs", f"{part.key}.parquet"), error
    return True


def _read_part(place: Place, part: Part, wanted: Mapping[str, Node], choice: Choice) -> Iterator[Chunk]:
    """Read reports of a part in its order.

    Args:
        place: The store.
        part: The part.
        wanted: The reports wanted, in the part's order, each with the condition on its kernels.
        choice: Says which reports need all of their kernels, and how many kernels of the others come together.

    Raises:
        InputError: A file is damaged; a missing one is found out before the first report.
    """
    with ExitStack() as stack:
        files: dict[str, list[Any]] = {}
        for table in ("kernels", "hotspots", "unprofiled"):
            files[table] = open_all_checked(place, part, table)
            for file in files[table]:
                stack.enter_context(file)
        try:
            without = _unprofiled(next(iter(files["unprofiled"]), None))
            partly = [digest for digest, node in wanted.items() if node is not True]
            needed = {digest for digest in wanted if digest in without or choice.is_whole(part.runs[digest])}
            whole = needed.intersection(partly)
            chosen = _positions(files["kernels"], {digest: wanted[digest] for digest in whole})
            named = [digest for digest in wanted if choice.are_named and digest not in whole]
            most = choice.at_once or math.inf
            keys = _keys(files["kernels"], [d for d in named if d in partly or part.runs[d].kernel_count > most])
            conditions = {digest: True if digest in whole else node for digest, node in wanted.items()}
            slices = groupby(_slices(files["kernels"], part, conditions), key=lambda piece: piece[0])
            ahead = next(slices, None)
            chunks = _Chunks(part, files["hotspots"])
            for digest, node in wanted.items():
                is_next = ahead is not None and ahead[0] == digest
                rows = (batch for _, batch in ahead[1]) if ahead is not None and is_next else iter(())
                at_once = None if digest in needed else choice.at_once
                only = frozenset(chosen[digest]) if digest in whole else None
                for number, found in enumerate(_cut(rows, at_once)):
                    count = sum(batch.num_rows for batch in found)
                    if number:
                        yield from chunks.add(Piece(part.runs[digest], count, keys=keys.get(digest)), found)
                    elif node is True or (count if only is None else only):
                        piece = Piece(part.runs[digest], count, without.get(digest), only, keys.get(digest))
                        yield from chunks.add(piece, found)
                if is_next:
                    ahead = next(slices, None)
            yield from chunks.rest()
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise damaged(place, f"kernels/{part.key}.parquet", error, tuple(part.runs.values())) from error


def unprofiled_of(place: Place, part: Part) -> dict[str, Unprofiled]:
    """Return the runs without the profiler that a part keeps, by the report's digest.

    Raises:
        InputError: The file is damaged.
    """
    file = open_checked(place, part, "unprofiled")
    if file is None:
        return {}
    with file:
        return _unprofiled(file)


def _unprofiled(file: Any) -> dict[str, Unprofiled]:
    rows = pq.ParquetFile(file).read().to_pylist() if file is not None else []
    return {row["digest"]: unprofiled_from_row(row) for row in rows}


def _positions(files: Sequence[Any], wanted: Mapping[str, Node]) -> dict[str, list[int]]:
    """Return the positions in each report of the kernels that its condition chooses."""
    found: dict[str, list[int]] = {digest: [] for digest in wanted}
    if wanted:
        for batch in _scan(files, wanted, ["digest", "kernel_index"]):
            for digest, index in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                found[digest].append(index)
    return found


def _keys(files: Sequence[Any], digests: Sequence[str]) -> dict[str, dict[int, str]]:
    """Name all launches of reports, as those that are not read count in the names of the others."""
    found: dict[str, dict[int, str]] = {digest: {} for digest in digests}
    named = {digest: Keys() for digest in digests}
    if digests:
        for batch in _scan(files, dict.fromkeys(digests, True), [*LAUNCH_COLUMNS]):
            for digest, index, launch in launches_from_batch(batch):
                found[digest][index] = named[digest].next(launch)
    return found


def _scan(
    files: Sequence[Any], wanted: Mapping[str, Node], columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of `kernels` that the conditions of their reports choose; what has no match is skipped unread."""
    by_node: dict[Node, list[str]] = {}
    for digest, node in wanted.items():
        by_node.setdefault(node, []).append(digest)
    filters = (pc.field("digest").isin(digests) & to_expression(node) for node, digests in by_node.items())
    condition = reduce(operator.or_, filters)
    for file in files:
        fragment = pads.ParquetFileFormat().make_fragment(file)
        held = fragment.physical_schema
        schema = pa.schema([*held, *(field for field in KERNELS if field.name not in held.names)])
        scanner = fragment.scanner(schema=schema, columns=columns, filter=condition, batch_size=_ROWS_AT_ONCE)
        yield from scanner.to_batches()


def _slices(files: Sequence[Any], part: Part, wanted: Mapping[str, Node]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read rows of `kernels`, cut where the report changes."""
    is_all = len(wanted) == len(part.runs) and all(node is True for node in wanted.values())
    for batch in _batches(files) if is_all else _scan(files, wanted):
        yield from _by_digest(batch)


def _batches(files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    """Read all rows, their texts as they are stored: packed, since most of them repeat in each row."""
    for file in files:
        footer = pq.ParquetFile(file).metadata
        leaves = map(footer.schema.column, range(footer.num_columns))
        packed = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        yield from pq.ParquetFile(file, metadata=footer, read_dictionary=packed).iter_batches(_ROWS_AT_ONCE)


def _by_digest(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Cut a batch where the report changes."""
    start = 0
    for digest, rows in groupby(texts(batch.column("digest"))):
        count = sum(1 for _ in rows)
        yield str(digest), batch.slice(start, count)
        start += count


def _cut(batches: Iterable[pa.RecordBatch], at_once: int | None) -> Iterator[list[pa.RecordBatch]]:
    """Cut the rows of a report into pieces of at most so many; a report without rows is one empty piece."""
    held: list[pa.RecordBatch] = []
    room = at_once
    for whole in batches:
        batch = whole
        while room is not None and batch.num_rows > room:
            yield [*held, batch.slice(0, room)] if room else held
            batch, held, room = batch.slice(room), [], at_once
        held.append(batch)
        room = None if room is None else room - batch.num_rows
    yield held


class _Chunks:
    """Put pieces together into chunks of `_ROWS_AT_ONCE` kernels; a piece is not cut."""

    def __init__(self, part: Part, spots: Sequence[Any]) -> None:
        self._key = part.key
        self._position = {digest: at for at, digest in enumerate(part.runs)}
        self._spots = _HotspotsAhead(spots, self._position)
        self._pieces: list[Piece] = []
        self._rows: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, piece: Piece, rows: Sequence[pa.RecordBatch]) -> Iterator[Chunk]:
        """Take a piece; first yield the current chunk if it has no room for it."""
        if self._count + piece.kernel_count > _ROWS_AT_ONCE or len(self._pieces) >= _ROWS_AT_ONCE:
            yield from self.rest()
        self._pieces.append(piece)
        self._rows += rows
        self._count += piece.kernel_count

    def rest(self) -> Iterator[Chunk]:
        """Yield the pieces that are left as a chunk."""
        pieces, rows = tuple(self._pieces), tuple(self._rows)
        self._pieces, self._rows, self._count = [], [], 0
        if pieces:
            yield Chunk(self._key, pieces, rows, self._spots.of(rows))


class _HotspotsAhead:
    """Read hot spots no further than kernels have been read; both files hold the reports in the same order."""

    def __init__(self, files: Sequence[Any], position: Mapping[str, int]) -> None:
        self._coming = (
            _Spots.of(position[digest], rows) for batch in _batches(files) for digest, rows in _by_digest(batch)
        )
        self._position = position
        self._held: list[_Spots] = []
        self._ahead = next(self._coming, None)

    def of(self, rows: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...]:
        """Return those of some kernels, and maybe more of their reports'; forget those of reports before the last."""
        if not rows:
            return ()
        spans: dict[int, tuple[int, int]] = {}
        for batch in rows:
            position, (first, last) = self._position[batch.column("digest")[0].as_py()], _ends(batch)
            known = spans.get(position, (first, last))
            spans[position] = min(known[0], first), max(known[1], last)
        newest = max(spans)
        while self._ahead is not None and self._ahead.position <= newest:
            self._held.append(self._ahead)
            self._ahead = next(self._coming, None)
        found = tuple(
            spots.rows for spots in self._held if spots.position in spans and spots.meets(*spans[spots.position])
        )
        self._held = [spots for spots in self._held if spots.position >= newest]
        return found


class _Spots(Struct, frozen=True):
    """Hot spots of one report, at a position in its part, of the kernels from the first to the last."""

    position: int
    first: int
    last: int
    rows: pa.RecordBatch

    @classmethod
    def of(cls, position: int, rows: pa.RecordBatch) -> _Spots:
        return cls(position, *_ends(rows), rows)

    def meets(self, first: int, last: int) -> bool:
        return self.first <= last and first <= self.last


def _ends(rows: pa.RecordBatch) -> tuple[int, int]:
    """Return the smallest and the largest position of a kernel in its report; there is at least one row."""
    ends = pc.min_max(rows.column("kernel_index"))
    return ends["min"].as_py(), ends["max"].as_py()
