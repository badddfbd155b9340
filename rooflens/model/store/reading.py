"""Read the reports of a part one after the other, in bounded memory."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from rooflens.errors import InputError
from rooflens.model.store.columns import texts
from rooflens.model.store.findings import hotspots_from_batch
from rooflens.model.store.index import MissingFileError, damaged, open_checked, read_index
from rooflens.model.store.rows import kernels_from_batch
from rooflens.model.store.unprofiled import unprofiled_from_row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    import pyarrow as pa

    from rooflens.model.records import Hotspot, Kernel, Run
    from rooflens.model.store.index import Index, Part
    from rooflens.model.store.place import Place
    from rooflens.model.unprofiled import Unprofiled

_ROWS_AT_ONCE = 2048
"""Kernels that are decoded together: some 20 MB."""


@dataclass(frozen=True, slots=True)
class StoredReport:
    """One report as it comes out of a store.

    Attributes:
        unprofiled: Its run without the profiler; None where none was kept.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    unprofiled: Unprofiled | None = None


Failure = tuple[str, InputError]
"""A file as messages show it, and what is wrong with it."""


def read_reports(place: Place) -> Iterator[StoredReport | Failure]:
    """Read every report of a store, part by part; a damaged part gives its file and what is wrong, and costs no other.

    A part that a writer replaces meanwhile is read where its reports stand now: each comes once.
    """
    seen: set[str] = set()
    while not (yield from _read_parts(place, read_index(place), seen)):
        pass


def _read_parts(place: Place, index: Index, seen: set[str]) -> Generator[StoredReport | Failure, None, bool]:
    """Read what was not seen; return whether all parts were still there."""
    for key, why in index.unreadable.items():
        if key not in seen:
            seen.add(key)
            yield place.text_of("runs", f"{key}.parquet"), damaged(place, f"runs/{key}.parquet", why)
    for part in index.parts.values():
        digests = [digest for digest in index.digests_of(part) if digest not in seen]
        if not digests or part.key in seen:
            continue
        try:
            for report in _read_part(place, part, digests):
                seen.add(report.run.digest)
                yield report
        except InputError as error:
            if isinstance(error, MissingFileError) and not place.exists("runs", f"{part.key}.parquet"):
                return False
            seen.add(part.key)
            yield place.text_of("runs", f"{part.key}.parquet"), error
    return True


def _read_part(place: Place, part: Part, digests: Sequence[str]) -> Iterator[StoredReport]:
    """Read reports of a part in its order.

    Args:
        place: The store.
        part: The part.
        digests: The reports wanted, in the part's order.

    Raises:
        InputError: A file is damaged; a missing one is found out before the first report.
    """
    with ExitStack() as stack:
        files = {table: open_checked(place, part, table) for table in ("kernels", "hotspots", "unprofiled")}
        for file in files.values():
            stack.enter_context(file or nullcontext())
        try:
            without = _unprofiled(files["unprofiled"])
            kernels = groupby(_kernels(files, part, digests), key=lambda kernel: kernel.digest)
            ahead = next(kernels, None)
            for digest in digests:
                found: tuple[Kernel, ...] = ()
                if ahead is not None and ahead[0] == digest:
                    found = tuple(ahead[1])
                    ahead = next(kernels, None)
                yield StoredReport(part.runs[digest], found, without.get(digest))
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


def _kernels(files: Mapping[str, Any], part: Part, digests: Sequence[str]) -> Iterator[Kernel]:
    """Read kernels with their hot spots; both files hold the reports in the same order."""
    if files["kernels"] is None:
        return
    wanted, position = frozenset(digests), {digest: at for at, digest in enumerate(part.runs)}
    sources = {digest: run.source for digest, run in part.runs.items()}
    spots = _HotspotsAhead(files["hotspots"], position)
    for batch in pq.ParquetFile(files["kernels"]).iter_batches(_ROWS_AT_ONCE):
        if batch.num_rows:
            last = position[batch.column("digest")[-1].as_py()]
            found = kernels_from_batch(batch, sources, spots.until(last))
            yield from (kernel for kernel in found if kernel.digest in wanted)


class _HotspotsAhead:
    """Read hot spots no further than kernels have been read."""

    def __init__(self, file: Any, position: Mapping[str, int]) -> None:
        batches = pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE) if file is not None else ()
        pieces = chain.from_iterable(_by_digest(batch) for batch in batches)
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
