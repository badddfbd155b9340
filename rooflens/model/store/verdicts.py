"""What an analysis adds to the parts of a store: the tables `roofline` and `findings`, stamped with what made them."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.store.parts import writer_of
from rooflens.model.store.schema import TABLES
from rooflens.model.store.tables.findings import finding_table
from rooflens.model.store.tables.roofline import roofline_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflens.model.records import Analysis, AnalyzedReport
    from rooflens.model.store.index import Index
    from rooflens.model.store.place import Place
    from rooflens.model.verdict.thresholds import Thresholds

_AT_ONCE = 4096
"""Kernels whose rows are made together."""

_MAKERS: dict[str, Callable[[Sequence[Analysis], int, str], pa.Table]] = {
    "roofline": roofline_table,
    "findings": finding_table,
}
_STAMP = b"rooflens_verdicts"


def put_verdicts(place: Place, index: Index, reports: Iterable[AnalyzedReport], limits: Thresholds, known: str) -> None:
    """Write positions, verdicts and findings of analyzed reports beside their parts; what stands there so is left.

    Args:
        place: The store, which the caller has locked.
        index: What it holds.
        reports: A part of which not all reports are among them is left as it is.
        limits: Thresholds the verdicts were reached with.
        known: What else decided them, from outside the store, as a short text.

    Raises:
        OSError: The store cannot be written to.
    """
    analyses: dict[str, list[Analysis]] = defaultdict(list)
    given: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        if report.run.digest in index.owner:
            analyses[index.owner[report.run.digest]].extend(report.analyses)
            given[index.owner[report.run.digest]].add(report.run.digest)
    whole = (
        key for key, digests in given.items() if analyses[key] and digests == {*index.digests_of(index.parts[key])}
    )
    stamp = f"{MODEL_VERSION} {limits.digest} {known}".encode()
    for key in whole:
        found = analyses[key]
        for table, make in _MAKERS.items():
            if _stamp_of(place, table, key) != stamp:
                groups = (found[start : start + _AT_ONCE] for start in range(0, len(found), _AT_ONCE))
                rows = (make(group, MODEL_VERSION, limits.digest) for group in groups)
                _write(place, f"{table}/{key}.parquet", stamp, rows)


def merge_verdicts(place: Place, keys: Sequence[str], into: str) -> None:
    """Put the verdicts of parts that are merged together, where all have the same stamp; else a next analysis will.

    Raises:
        OSError: The store cannot be written to.
    """
    for table in _MAKERS:
        stamps = {_stamp_of(place, table, key) for key in keys}
        (stamp, *others) = stamps
        if stamp is not None and not others:
            _write(place, f"{table}/{into}.parquet", stamp, _stored(place, table, keys))


def _stored(place: Place, table: str, keys: Sequence[str]) -> Iterator[pa.Table]:
    for key in keys:
        with place.open(table, f"{key}.parquet") as file:
            for batch in pq.ParquetFile(file).iter_batches(65_536):
                yield pa.Table.from_batches([batch]).cast(TABLES[table])


def _write(place: Place, file: str, stamp: bytes, tables: Iterator[pa.Table]) -> None:
    table, _, name = file.partition("/")
    first = next(tables, TABLES[table].empty_table())
    place.make(table)
    with place.writing(table, name) as sink, writer_of(table, sink, first) as writer:
        for rows in chain([first], tables):
            writer.write_table(rows)
        writer.add_key_value_metadata({_STAMP: stamp})


def _stamp_of(place: Place, table: str, key: str) -> bytes | None:
    """Return what a file of verdicts was stamped with; None where there is none, or a damaged one."""
    try:
        with place.open(table, f"{key}.parquet") as file:
            return (pq.ParquetFile(file).metadata.metadata or {}).get(_STAMP)
    except (OSError, ValueError):
        return None
