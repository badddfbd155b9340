"""Hold rows read in columns equal, to the bit, to those of kernels that were read one by one."""

from __future__ import annotations

import random
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report
from support.plain_kernels import DURATION, PLAIN, plain_kernel

from rooflens.errors import InputError
from rooflens.ingest.columns import reading
from rooflens.ingest.columns.reading import read_rows
from rooflens.ingest.reports.encoded import UnknownContentError
from rooflens.ingest.reports.read import comparable, read_bytes
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.store.rows import ReportRows, report_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from rooflens.ingest.reports.report import Raw


def _report(kernels: Iterable[KernelSpec], per_block: int = 3) -> bytes:
    return encode_report(ReportSpec(list(kernels), kernels_per_block=per_block))


def _tables(data: bytes, raw: Raw, *, in_rows: bool) -> tuple[dict[str, pa.Table], int]:
    """Return the tables of a report, and how many of its kernels came as rows."""
    report = read_bytes(data, "report", ReadOptions(raw=raw, read_rows=read_rows if in_rows else None))
    rows = ReportRows(report.run, report.kernels, None, report.raw, report.instances, report.rows)
    return report_tables(rows), 0 if report.rows is None else report.rows.num_rows


def _rows_that_agree(data: bytes, raw: Raw = "values") -> int:
    """Hold that both ways make the same tables; return how many kernels were read in columns."""
    (single, _), (together, count) = (_tables(data, raw, in_rows=in_rows) for in_rows in (False, True))
    for name in ("kernels", "hotspots"):
        assert together[name].equals(single[name]), [
            column for column in single[name].column_names if not single[name][column].equals(together[name][column])
        ]
    if raw == "values":
        assert comparable(together["metrics"]).equals(comparable(single["metrics"]))
    return count


@pytest.mark.parametrize("raw", ["values", "none"])
def test_plain_kernels_are_all_read_in_columns(raw: Raw) -> None:
    """Doubles, whole numbers of any length, texts, metrics without value and with instances make the same rows."""
    assert _rows_that_agree(_report(map(plain_kernel, range(100))), raw) == 100


ODD: Mapping[str, Mapping[str, Any]] = {
    "NaN instead of a measurement": {"dram__bytes_read.sum": nan},
    "NaN of what is not measured": {"sm__cycles_elapsed.avg.per_second": nan},
    "infinite": {"dram__bytes_read.sum": inf},
    "no duration": {DURATION: nan},
    "another layout": {"lts__t_sectors.sum": 77.0},
    "fewer metrics": {"dram__bytes_write.sum": ...},
    "a text instead of a number": {"launch__grid_dim_x": "many"},
    "a double instead of a count": {"profiler__count": 0.5},
    "a count of nine bytes": {"profiler__count": 1 << 60},
    "no value instead of a double": {"dram__bytes_read.sum": None},
    "no clock": {"sm__cycles_elapsed.avg.per_second": 0.0},
    "no peak": {"dram__bytes.sum.peak_sustained": 0.0},
    "instances instead of a text": {"profiler__unknown_text": Instances({"a": 1.0})},
}
APART: Mapping[str, Mapping[str, Any]] = {
    "failed": {name: nan for name, value in PLAIN.items() if isinstance(value, float)},
    "an impossible clock": {"sm__cycles_elapsed.avg.per_second": 1e300},
    "an impossible count": {"sm__ops_path_tensor_src_fp16_dst_fp32.sum": -1.0},
    "an impossible grid": {"launch__grid_dim_x": 1 << 50},
    "an impossible stall": {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": -2.0},
    "values by instruction": {"inst_executed": Instances({16: 3.0, 32: 4.0}, 7.0)},
    "an opcode table": {"sass__inst_executed_per_opcode_with_modifier_all": Instances({"FADD": 5.0}, 5.0)},
}


@pytest.mark.parametrize("changed", [*ODD.values(), *APART.values()], ids=[*ODD, *APART])
@pytest.mark.parametrize("step", [2, 20], ids=["many", "few"])
def test_odd_kernels_among_plain_ones_make_the_same_rows(changed: Mapping[str, Any], step: int) -> None:
    """Whatever is odd about some kernels, they and those beside them come out as ever, in their order."""
    kernels = [plain_kernel(number, **(changed if number % step == 0 else {})) for number in range(40)]
    assert _rows_that_agree(_report(kernels)) >= 40 - 40 // step


@pytest.mark.parametrize("changed", APART.values(), ids=APART)
def test_what_is_out_of_the_ordinary_is_read_one_by_one(changed: Mapping[str, Any]) -> None:
    """Kernels that failed, hold what cannot be or anything by instance that is read, become records."""
    assert _rows_that_agree(_report(plain_kernel(number, **changed) for number in range(40))) == 0


def test_many_layouts_in_turn_are_each_read_in_columns() -> None:
    """Kernels of four layouts that alternate make the same rows, sorted by name and kernel."""
    others = [{}, {"a__first.sum": 1.0}, {"z__last.sum": 1}, {DURATION: ...}]
    data = _report(plain_kernel(number, **others[number % 4]) for number in range(120))
    assert _rows_that_agree(data) == 120
    metrics = _tables(data, "values", in_rows=True)[0]["metrics"]
    keys = list(zip(metrics["name"].to_pylist(), metrics["kernel_index"].to_pylist(), strict=True))
    assert keys == sorted(keys)


def test_kernels_that_are_all_different_are_read_one_by_one() -> None:
    """Of layouts that nobody shares none is of use."""
    assert _rows_that_agree(_report(plain_kernel(number, **{f"profiler__{number}": 1.0}) for number in range(40))) == 0


def test_a_report_of_some_kernels_is_read_one_by_one() -> None:
    """Columns cost more than a few kernels do."""
    assert _rows_that_agree(_report(map(plain_kernel, range(10)))) == 0


def test_results_are_looked_at_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learnt of some is used for the next, and the last batch may be small."""
    monkeypatch.setattr(reading, "_MOST_AT_ONCE", 20)
    assert _rows_that_agree(_report(map(plain_kernel, range(70)))) == 60


def _outcome(data: bytes, *, in_rows: bool) -> Any:
    """Return the tables of a report, or why it cannot be read."""
    try:
        tables, _ = _tables(data, "values", in_rows=in_rows)
    except (InputError, UnknownContentError) as error:
        return f"{type(error).__name__}: {error}"
    return tables["kernels"].to_pylist(), comparable(tables["metrics"]).drop_columns("value_string").to_pylist()


def test_damage_is_met_as_ever() -> None:
    """A byte that changed anywhere gives the same rows, or the same error, as where each kernel is read alone."""
    data = _report(map(plain_kernel, range(24)))
    chance = random.Random(15)  # noqa: S311 - no secret
    for _ in range(30):
        damaged = bytearray(data)
        damaged[chance.randrange(200, len(data))] ^= 1 << chance.randrange(8)
        assert repr(_outcome(bytes(damaged), in_rows=True)) == repr(_outcome(bytes(damaged), in_rows=False))


def test_damage_is_of_the_same_result_either_way() -> None:
    """Where a long metric cannot be decoded, the refusal names its result, whoever met the names of metrics before."""
    whole = _report(map(plain_kernel, range(20)))
    place = whole.index(b"a text of more bytes")
    damaged = whole[: place - 1] + b"\xff" + whole[place:]
    said = []
    for reader in (read_rows, None):
        with pytest.raises(InputError, match=r"kernel result 0, .* cannot be decoded") as refused:
            read_bytes(damaged, "report", ReadOptions(raw="values", read_rows=reader))
        said.append(str(refused.value))
    assert said[0] == said[1]
