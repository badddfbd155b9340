"""The store: a folder of Parquet, `<table>/<digest>.parquet`, committed by the file in `runs`.

Each file is written beside, synced and renamed, the one in `runs` last. Readers start from `runs`, so that a killed
ingest leaves nothing visible; the next one sweeps what it left. Pandas, Polars and DuckDB read the folders as they are.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rooflens.errors import InputError
from rooflens.files import PARTIAL, replacing
from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.store.findings import finding_table, hotspots_from_rows
from rooflens.model.store.schema import SCHEMA_VERSION, TABLES, kernel_from_row, roofline_table, run_from_row
from rooflens.model.store.unprofiled import unprofiled_from_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from rooflens.model.records import AnalyzedReport, Kernel, Run
    from rooflens.model.unprofiled import Unprofiled
    from rooflens.model.verdict.thresholds import Thresholds

_LOCK = ".lock"


class Store:
    """A store folder, opened for reading, or for writing within `writing`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def existing(cls, folder: Path) -> Store:
        """Open a store that must be there.

        Raises:
            InputError: The folder is no store.
        """
        if not (folder / "runs").is_dir():
            raise InputError(f"`{folder}` is no store", "make one with `rooflens ingest REPORT --store FOLDER`")
        return cls(folder)

    @contextlib.contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the store's lock, make its folders, and sweep what a killed ingest left.

        Args:
            wait: Wait for another writer to finish.

        Raises:
            InputError: The store cannot be written, or another process is writing it and `wait` is False.
        """
        try:
            for table in TABLES:
                (self.folder / table).mkdir(parents=True, exist_ok=True)
            with _locked(self.folder / _LOCK, wait=wait):
                self._sweep()
                yield
        except BlockingIOError as error:
            raise InputError(f"the store `{self.folder}` is being written by another process", "try again") from error
        except OSError as error:
            message = f"cannot write to the store `{self.folder}`: {error.strerror}"
            raise InputError(message, "give a folder that can be written with --store") from error

    def digests(self) -> frozenset[str]:
        """Return the digests of the committed reports."""
        return frozenset(file.stem for file in (self.folder / "runs").glob("*.parquet"))

    def is_current(self, digest: str) -> bool:
        """Return whether a report is stored whole, in this version's schema."""
        try:
            for table in ("kernels", "metrics", "hotspots"):
                pq.read_metadata(self._file(table, digest))
            return bool(_read(self._file("runs", digest))["schema_version"][0].as_py() == SCHEMA_VERSION)
        except (pa.ArrowInvalid, OSError, InputError):
            return False

    def put(self, digest: str, tables: Mapping[str, pa.Table]) -> None:
        """Store the tables of one report; `runs`, where it is among them, is written last and commits."""
        for name in sorted(tables, key=lambda table: table == "runs"):
            _write(tables[name], self._file(name, digest))

    def unprofiled(self, digest: str) -> Unprofiled | None:
        """Return the un-profiled run kept with a report; None where there was none.

        Raises:
            InputError: Its file is damaged.
        """
        file = self._file("unprofiled", digest)
        rows = _read(file).to_pylist() if file.exists() else []
        return unprofiled_from_row(rows[0]) if rows else None

    def put_rooflines(self, reports: Iterable[AnalyzedReport], limits: Thresholds) -> None:
        """Store the positions, verdicts and findings of analyzed reports, stamped with the model and the thresholds."""
        with self.writing(wait=False):
            for report in reports:
                if report.analyses:
                    makers = {"roofline": roofline_table, "findings": finding_table}
                    tables = {
                        name: make(report.analyses, MODEL_VERSION, limits.digest) for name, make in makers.items()
                    }
                    self.put(report.run.digest, tables)

    def load(self) -> tuple[list[tuple[Run, tuple[Kernel, ...]]], list[tuple[Path, InputError]]]:
        """Read every committed report in the order of their sources, and the errors of those that cannot be read.

        Raises:
            InputError: The store holds no report.
        """
        reports, failures = [], []
        for digest in sorted(self.digests()):
            try:
                reports.append(self._load_one(digest))
            except InputError as error:
                failures.append((self._file("runs", digest), error))
        if not reports and not failures:
            raise InputError(
                f"the store `{self.folder}` is empty", "fill it with `rooflens ingest REPORT --store FOLDER`"
            )
        return sorted(reports, key=lambda report: report[0].source), failures

    def _load_one(self, digest: str) -> tuple[Run, tuple[Kernel, ...]]:
        row = _read(self._file("runs", digest)).to_pylist()[0]
        if row["schema_version"] != SCHEMA_VERSION:
            message = f"`{self.folder}` holds schema version {row['schema_version']}, this is {SCHEMA_VERSION}"
            raise InputError(message, f"ingest again: `rooflens ingest {row['source']} --store {self.folder}`")
        run = run_from_row(row)
        kernels = _read(self._file("kernels", digest)).to_pylist()
        hotspots = hotspots_from_rows(_read(self._file("hotspots", digest)).to_pylist())
        return run, tuple(kernel_from_row(row, run.source, hotspots.get(row["kernel_index"], ())) for row in kernels)

    def _file(self, table: str, digest: str) -> Path:
        return self.folder / table / f"{digest}.parquet"

    def _sweep(self) -> None:
        committed = self.digests()
        for table in TABLES:
            for file in (self.folder / table).iterdir():
                orphan = file.suffix == ".parquet" and file.stem not in committed
                if orphan or file.name.endswith(PARTIAL):
                    file.unlink()


def _read(file: Path) -> pa.Table:
    try:
        return pq.read_table(file, partitioning=None)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"damaged store file `{file}`: {error}", "ingest its report again: it takes the place of the file"
        ) from error


def _write(table: pa.Table, file: Path) -> None:
    with replacing(file, durable=True) as partial:
        pq.write_table(table, partial, compression="zstd")


@contextlib.contextmanager
def _locked(file: Path, *, wait: bool) -> Iterator[None]:
    """Hold an exclusive lock that ends with the process; a second writer waits, or gets a BlockingIOError."""
    with file.open("a") as stream:
        try:
            import fcntl  # noqa: PLC0415 - POSIX only
        except ImportError:
            yield
            return
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
