from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest
from support.kernels import make_kernel
from support.stored import DIGESTS, commit, make_report

from rooflens.errors import UsageError
from rooflens.model.store.reading import Choice, StoredReport
from rooflens.model.store.rows import ReportRows, report_tables
from rooflens.model.store.store import Store
from rooflens.model.store.where import COLUMNS, parse_where
from rooflens.model.unprofiled import Unprofiled

if TYPE_CHECKING:
    from pathlib import Path

CONDITIONS = (
    "gpu = 'NVIDIA H100' and function_name like 'flash%'",
    "gpu = 'NVIDIA H100' or duration_ns > 2500",
    "not (gpu = 'NVIDIA H100' or duration_ns > 2500)",
    "nvtx_range is null",
    "nvtx_range is not null and not nvtx_range like '%/fwd'",
    "host in ('a', 'b') and kernel_index in (0, 2)",
    "kernel_index not in (0, 2)",
    "nvtx_range not in ('train/fwd')",
    "host = 'a' or (host is null and gpu <> 'NVIDIA H100')",
    "host <> 'a'",
    "not host = 'a' or kernel_index = 1",
    "2000 <= duration_ns and duration_ns < 3e3",
    "synthetic = false and name = 'it''s<_>'",
    "dram_bytes > 0",
    "not dram_bytes > 0",
    "function_name like 'fl_sh' or function_name like ''",
    "digest like '00%3'",
    "NOT synthetic = TRUE AND (((kernel_index != 1)))",
    "source = '1.ncu-rep' and process_name is null",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of two parts with two reports each, which differ in what conditions ask for."""
    folder = tmp_path_factory.mktemp("where") / "store"
    names = ("flash_fwd", "flash", "it's<_>")
    for digests, gpu in ((DIGESTS[:2], "NVIDIA H100"), (DIGESTS[2:4], "NVIDIA A100")):
        reports = []
        for digest, host in zip(digests, ("a", None), strict=True):
            run, _ = make_report(digest, 3, host=host)
            kernels = [
                make_kernel(
                    {"duration_ns": 1e3 * (index + 1), "dram_bytes": None if index else 8.0},
                    digest=digest,
                    source=run.source,
                    index=index,
                    name=name,
                    function_name=name,
                    gpu=gpu,
                    nvtx_range=(None, "train/fwd", "train/bwd")[index],
                )
                for index, name in enumerate(names)
            ]
            reports.append(report_tables(ReportRows(run, kernels)))
        commit(folder, *reports)
    return folder


def chosen(store: Path, condition: str) -> set[tuple[str, int]]:
    """Return what a condition chooses."""
    reports = Store.existing(store).reports(Choice(parse_where(condition)))
    return {
        (report.run.digest, kernel.index)
        for report in reports
        for kernel in (report.kernels if isinstance(report, StoredReport) else ())
    }


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_chooses_what_sql_does(store: Path, condition: str) -> None:
    """DuckDB over both tables gives the same kernels, missing values and all."""
    query = (
        f"select digest, kernel_index from '{store}/kernels/*.parquet' join"  # noqa: S608 - a test's folder
        f" (select * exclude (synthetic) from '{store}/runs/*.parquet') using (digest) where {condition}"
    )
    assert chosen(store, condition) == set(duckdb.sql(query).fetchall())


@pytest.mark.parametrize(
    "condition",
    [
        " or ".join(f"kernel_index = {index}" for index in range(2, 1200)),
        " and ".join(f"kernel_index <> {index}" for index in (0, 1, *range(3, 1200))),
        f"kernel_index in ({', '.join(map(str, range(2, 1200)))})",
    ],
    ids=["or", "and", "in"],
)
def test_a_condition_may_be_long(store: Path, condition: str) -> None:
    """More terms than Python nests calls, as a script writes them, choose what they say."""
    assert chosen(store, condition) == {(digest, 2) for digest in DIGESTS[:4]}


def test_parts_without_a_match_are_not_opened(tmp_path: Path) -> None:
    """A condition that the columns of `runs` decide is answered though the files of other parts are gone."""
    key = commit(tmp_path, report_tables(ReportRows(*make_report(DIGESTS[0], 1, host="a"))))
    commit(tmp_path, report_tables(ReportRows(*make_report(DIGESTS[1], 1, host="b"))))
    (tmp_path / "kernels" / f"{key}.parquet").unlink()
    assert chosen(tmp_path, "host = 'b' and duration_ns > 0") == {(DIGESTS[1], 0)}


def test_a_report_that_is_needed_whole_says_what_was_chosen(tmp_path: Path) -> None:
    """Where facts of the whole program decide verdicts, all kernels come, with the positions of those asked for."""
    run, kernels = make_report(DIGESTS[0], 3)
    commit(tmp_path, report_tables(ReportRows(run, kernels, Unprofiled(1, 1, 3, "nsys"))))
    (report,) = Store.existing(tmp_path).reports(Choice(parse_where("duration_ns > 1500")))
    assert isinstance(report, StoredReport)
    assert (report.kernels, report.chosen) == (kernels, frozenset({1, 2}))
    assert list(Store.existing(tmp_path).reports(Choice(parse_where("duration_ns > 9e9")))) == []


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("", "it is empty"),
        ("gpu", "a comparison is missing before `its end`"),
        ("gpu = ", "`its end` is not a value"),
        ("gpu = NVIDIA", "`NVIDIA` is not a value"),
        ("chip = 'x'", "there is no column `chip`"),
        ("gpu = 1", "`gpu` is a text, `1` is a number"),
        ("duration_ns like '1%'", "`duration_ns` is a number, `like` is for text"),
        ("rules is null", "there is no column `rules`"),
        ("(gpu = 'a'", r"`\)` is missing before `its end`"),
        ("gpu = 'a' gpu = 'b'", "`gpu` was not expected here"),
        ("gpu = 'a; drop", "`'a; drop` cannot be read"),
        ("gpu not = 'a'", "`in` or `like` is missing before `=`"),
        ("(" * 99 + "gpu = 'a'" + ")" * 99, "nested too deeply"),
        ("not " * 99 + "gpu = 'a'", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_an_error(condition: str, said: str) -> None:
    """The message says what stands where, and the hint has the columns or an example."""
    with pytest.raises(UsageError, match=said) as caught:
        parse_where(condition)
    assert caught.value.hint


def test_the_hint_lists_the_columns() -> None:
    """An unknown column is answered with all that are known, of both tables."""
    with pytest.raises(UsageError) as caught:
        parse_where("x = 1")
    assert caught.value.hint == f"known are: {', '.join(COLUMNS)}"
    assert {"duration_ns", "function_name", "host", "reader", "digest"} <= {*COLUMNS}
