from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest.old_stores.migrate import migrate
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.store.reading import StoredReport
from rooflens.model.store.rows import kernel_table, run_table
from rooflens.model.store.store import Store
from rooflens.model.store.tables.findings import hotspot_table
from rooflens.model.store.tables.unprofiled import unprofiled_table

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.reports.report import Report

LATER = {
    2: {"code_totals", "series", "series_interval_ns", "sm_registers", "local_load_sectors"},
    3: {"sm_registers"},
    4: set[str](),
}
"""Some of the columns of `kernels` that a schema version had not."""


@pytest.fixture(scope="module")
def report(fixtures: Path) -> Report:
    """Read a stored report with its raw values."""
    file = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    return read_report(file, str(file), ReadOptions(raw="all"))


def write_old(folder: Path, report: Report, version: int) -> None:
    """Write a store as an older version did: a file a table and report, and raw values with their instances."""
    runs = run_table([report.run], 1).drop_columns(["reader"])
    kernels = kernel_table(report.kernels)
    tables = {
        "kernels": kernels.drop_columns([name for name in kernels.column_names if name in LATER[version]]),
        "metrics": pa.concat_tables([report.raw, report.instances], promote_options="default"),
        "runs": runs.set_column(runs.column_names.index("schema_version"), "schema_version", pa.array([version])),
    }
    if version > 2:
        tables |= {"hotspots": hotspot_table(report.kernels), "unprofiled": unprofiled_table({})}
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(table, folder / name / f"{report.run.digest}.parquet")


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_old_store_gives_the_kernels_of_its_reports(tmp_path: Path, report: Report, version: int) -> None:
    """What was resolved since is worked out of the raw values, and the old store is kept as it was."""
    folder = tmp_path / "store"
    write_old(folder, report, version)
    before = {file.name: file.read_bytes() for file in folder.rglob("*.parquet") if file.parent.name == "kernels"}
    done = migrate(folder)
    assert (done.version, done.report_count, done.failures, done.without_hotspots) == (version, 1, (), version == 2)
    (stored,) = Store.existing(folder).reports()
    assert stored == StoredReport(replace(report.run, reader="ncu-report"), report.kernels)
    kept = tmp_path / f"store.schema-{version}"
    assert {file.name: file.read_bytes() for file in (kept / "kernels").iterdir()} == before
    with pytest.raises(InputError, match="this version already"):
        migrate(folder)


def test_a_damaged_report_of_an_old_store_costs_itself(tmp_path: Path, report: Report) -> None:
    """It is named with the way out, and what is whole is taken over."""
    folder = tmp_path / "store"
    write_old(folder, report, 4)
    run = folder / "runs" / f"{'0' * 64}.parquet"
    run.write_bytes(b"damaged")
    done = migrate(folder)
    ((file, error),) = done.failures
    assert (file, done.report_count) == (str(run), 1)
    assert "ingest" in error.hint


def test_an_old_store_is_refused_with_the_command_that_migrates_it(tmp_path: Path, report: Report) -> None:
    """Readers and writers say which version it is; the command makes it readable, and says where the old one went."""
    folder = tmp_path / "store"
    write_old(folder, report, 3)
    for arguments in (["analyze", "--store", str(folder)], ["ingest", report.run.source, "--store", str(folder)]):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 1
        assert f"error: `{folder}` holds schema version 3, this is 5" in done.stderr
        assert f"`rooflens store migrate {folder}`" in done.stderr
    done = CliRunner().invoke(main, ["store", "migrate", str(folder)])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (0, f"wrote {folder}")
    assert f"the old store is now {folder}.schema-3" in done.stderr
    assert CliRunner().invoke(main, ["store", "compact", str(folder)]).exit_code == 0
    assert CliRunner().invoke(main, ["analyze", "--store", str(folder)]).exit_code == 0


def test_what_is_no_store_is_not_migrated(tmp_path: Path) -> None:
    """A folder without a store is named as one."""
    with pytest.raises(InputError, match="is not a store"):
        migrate(tmp_path)
