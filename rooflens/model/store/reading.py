"""Read the reports of a part one after the other, in bounded memory."""

from __future__ import annotations

import operator
from contextlib import ExitStack
from functools import reduce
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from msgspec import Struct

from rooflens.errors import InputError
from rooflens.model.keys import Keys
from rooflens.model.store.index import MissingFileError, damaged, open_all_checked, open_checked, read_index
from rooflens.model.store.rows import LAUNCH_COLUMNS, kernels_from_batch, launches_from_batch
from rooflens.model.store.tables.columns import texts
from rooflens.model.store.tables.findings import hotspots_from_batch
from rooflens.model.store.tables.unprofiled import unprofiled_from_row
from rooflens.model.store.where import for_run, to_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    import pyarrow as pa

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
        keys: What all launches of the report are called from run to run, by position, where some of them are not here;
            None where all are, or will come.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    unprofiled: Unprofiled | None = None
    chosen: frozenset[int] | None = None
    keys: Mapping[int, str] | None = None


Failure = tuple[str, InputError]
"""A file as messages show it, and what is wrong with it."""


class Choice(Struct, frozen=True):
    """Which kernels of a store are wanted.

    Attributes:
        where: A condition; True for all.
        is_whole: Tells reports of which all kernels are needed, whichever were asked for; those with a run without the
            profiler always are.
        at_once: Kernels of a report that come together at most, where not all of them are needed: a larger report comes
            in pieces, one after the other; None for whole reports.
    """

    where: Node = True
    is_whole: Callable[[Run], bool] = lambda _: False
    at_once: int | None = None


def read_reports(
    place: Place, index: Index, choice: Choice, known: Collection[str] = ()
) -> Iterator[StoredReport | Failure]:
    """Read reports of a store, part by part; a damaged part gives its file and what is wrong, and costs no other.

    A part that a writer replaces meanwhile is read where its reports stand now: each comes once. A report of which no
    kernel was asked for does not come, nor does one of the parts in `known`.
    """
    seen: set[str] = {*known, *(digest for key in known for digest in index.digests_of(index.parts[key]))}
    while not (yield from _read_parts(place, index, choice, seen)):
        index = read_index(place)


def _read_parts(
    place: Place, index: Index, choice: Choice, seen: set[str]
) -> Generator[StoredReport | Failure, None, bool]:
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
            for report in _read_part(place, part, wanted, choice):
                seen.add(report.run.digest)
                yield report
        except InputError as error:
            if isinstance(error, MissingFileError) and not place.exists("runs", f"{part.key}.parquet"):
                return False
            seen.add(part.key)
            error.report_count = len(wanted.keys() - seen)
            yield place.text_of("runs", f"{part.key}.parquet"), error
    return True


def _read_part(place: Place, part: Part, wanted: Mapping[str, Node], choice: Choice) -> Iterator[StoredReport]:
    """Read reports of a part in its order.

    Args:
        place: The store.
        part: The part.
        wanted: The reports wanted, in the part's order, each with the condition on its kernels.
        choice: Tells reports of which all kernels are needed, and how many of the others come together.

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
            keys = _keys(files["kernels"], [digest for digest in partly if digest not in whole])
            conditions = {digest: True if digest in whole else node for digest, node in wanted.items()}
            kernels = groupby(_kernels(files, part, conditions), key=lambda kernel: kernel.digest)
            ahead = next(kernels, None)
            for digest, node in wanted.items():
                rows: Iterator[Kernel] = iter(())
                if ahead is not None and ahead[0] == digest:
                    rows = ahead[1]
                at_once = None if digest in needed else choice.at_once
                only = frozenset(chosen[digest]) if digest in whole else None
                found = tuple(islice(rows, at_once))
                if node is True or (found if only is None else only):
                    yield StoredReport(part.runs[digest], found, without.get(digest), only, keys.get(digest))
                while more := tuple(islice(rows, at_once)):
                    yield StoredReport(part.runs[digest], more, keys=keys.get(digest))
                if ahead is not None and ahead[0] == digest:
                    ahead = next(kernels, None)
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
        yield from fragment.scanner(columns=columns, filter=condition, batch_size=_ROWS_AT_ONCE).to_batches()


def _kernels(files: Mapping[str, Sequence[Any]], part: Part, wanted: Mapping[str, Node]) -> Iterator[Kernel]:
    """Read kernels with their hot spots; both files hold the reports in the same order."""
    is_all = len(wanted) == len(part.runs) and all(node is True for node in wanted.values())
    position = {digest: at for at, digest in enumerate(part.runs)}
    sources = {digest: run.source for digest, run in part.runs.items()}
    spots = _HotspotsAhead(files["hotspots"], position)
    for batch in _batches(files["kernels"]) if is_all else _scan(files["kernels"], wanted):
        if batch.num_rows:
            last = position[batch.column("digest")[-1].as_py()]
            yield from kernels_from_batch(batch, sources, spots.until(last))


def _batches(files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE)


class _HotspotsAhead:
    """Read hot spots no further than kernels have been read."""

    def __init__(self, files: Sequence[Any], position: Mapping[str, int]) -> None:
        pieces = chain.from_iterable(_by_digest(batch) for batch in _batches(files))
        self._groups = groupby(pieces, key=lambda piece: piece[0])
        self._position = position
        self._held: dict[str, dict[int, tuple[Hotspot, ...]]] = {}
        self._ahead = next(self._groups, None)

    def until(self, last: int) -> Mapping[str, Mapping[int, tuple[Hotspot, ...]]]:
        """Return the hot spots of the reports up to a position in the part; forget those before the last call's."""
        while self._ahead is not None and self._position[self._ahead[0]] <= last:
            digest, pieces = self._ahead
            spots: dict[int, tuple[Hotspot, ...]] = {}
            for _, batch in pieces:
                for index, more in hotspots_from_batch(batch).items():
                    spots[index] = spots.get(index, ()) + more
            self._held[digest] = spots
            self._ahead = next(self._groups, None)
        held, self._held = self._held, {d: s for d, s in self._held.items() if self._position[d] >= last}
        return held


def _by_digest(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Cut a batch where the report changes."""
    start = 0
    for digest, rows in groupby(texts(batch.column("digest"))):
        count = sum(1 for _ in rows)
        yield str(digest), batch.slice(start, count)
        start += count
