"""The tables of a store as views of DuckDB, with what the report of a kernel is from."""

from __future__ import annotations

from collections.abc import Iterable

_HEAD = """\
-- The tables of a rooflens store as views of DuckDB. In the folder of the store: `duckdb -init views.sql`;
-- from elsewhere, or for an address: `set variable store = 'PLACE';` before `.read PLACE/views.sql`.
"""

_OF_RUN = ("source", "host", "ncu_version", "created_unix_s", "ingested_unix_s")
"""Columns of `runs` that each row of kernels and verdicts gets."""

_JOINED = {"kernels": "t.*", "verdicts": "t.* exclude (analysis)"}
"""Tables that are joined with `runs`, and what is shown of their columns."""


def views_of(tables: Iterable[str]) -> str:
    """Write the views of some tables."""
    return _HEAD + "".join(f"create or replace view {table} as {_view(table)};\n" for table in sorted(tables))


def _view(table: str) -> str:
    files, runs = _parquet_files(table), f"{_parquet_files('runs')} r"
    if table in {"runs", "failures"}:
        return f"select * from {files}"  # noqa: S608 - made of our own names, as below
    if table not in _JOINED:
        return f"select t.* from {files} t semi join {runs} using (digest)"  # noqa: S608
    of_run = ", ".join(f"r.{name}" for name in _OF_RUN)
    return f"select {_JOINED[table]}, {of_run} from {files} t join {runs} using (digest)"  # noqa: S608


def _parquet_files(table: str) -> str:
    return f"read_parquet(coalesce(getvariable('store'), '.') || '/{table}/*.parquet', union_by_name = true)"
