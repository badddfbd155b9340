"""Hand-picked counters: whatever spelling of a quantity `ncu --metrics` was asked for gives the same roofline."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rooflens.cli.group import main

GPU, SMS = "NVIDIA A100-SXM4-40GB", 108
TIME_NS, CLOCK_HZ = 2e6, 1.41e9
CYCLES = TIME_NS * CLOCK_HZ / 1e9
READ, WRITTEN = 0.96e9, 0.32e9
DRAM = READ + WRITTEN
L2, L1 = 2.56e9, 5.12e9
ADD, MUL, FMA = 2e8, 1e8, 5e8
FLOP = ADD + MUL + 2 * FMA
HEADER = [
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"),
    *("Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
]

List = Mapping[str, float]


def _sass(kind: str, unit: str, form: str) -> dict[str, float]:
    scale = {
        "sum": 1.0,
        "sum.per_second": 1e9 / TIME_NS,
        "sum.per_cycle_elapsed": 1 / CYCLES,
        "avg": 1 / (SMS * (4 if unit == "smsp" else 1)),
        "avg.per_cycle_elapsed": 1 / (CYCLES * SMS * (4 if unit == "smsp" else 1)),
    }[form]
    counts = {"add": ADD, "mul": MUL, "fma": FMA}
    base = f"{unit}__sass_thread_inst_executed_op_{kind}"
    return {f"{base}{op}_pred_on.{form}": count * scale for op, count in counts.items()}


TIMES: dict[str, List] = {
    "a time": {"gpu__time_duration.sum": TIME_NS},
    "cycles and their rate": {"sm__cycles_elapsed.avg": CYCLES, "sm__cycles_elapsed.avg.per_second": CLOCK_HZ},
    "cycles of one unit, clock of another": {
        "smsp__cycles_elapsed.max": CYCLES,
        "gpc__cycles_elapsed.avg.per_second": CLOCK_HZ,
    },
    "DRAM's cycles and their rate": {
        "dram__cycles_elapsed.max": 2.43e6,
        "dram__cycles_elapsed.avg.per_second": 1.215e9,
        "sm__cycles_elapsed.max": CYCLES,
    },
}
BYTES: dict[str, List] = {
    "all": {"dram__bytes.sum": DRAM},
    "by direction": {"dram__bytes_read.sum": READ, "dram__bytes_write.sum": WRITTEN},
    "by direction, as newer chips call it": {"dram__bytes_op_read.sum": READ, "dram__bytes_op_write.sum": WRITTEN},
    "a rate": {"dram__bytes.sum.per_second": DRAM / TIME_NS * 1e9},
    "rates by direction": {
        "dram__bytes_read.sum.per_second": READ / TIME_NS * 1e9,
        "dram__bytes_write.sum.per_second": WRITTEN / TIME_NS * 1e9,
    },
    "sectors": {"dram__sectors.sum": DRAM / 32},
    "sectors by direction": {"dram__sectors_read.sum": READ / 32, "dram__sectors_write.sum": WRITTEN / 32},
    "a mean over channels": {
        "dram__bytes.avg": DRAM / 40,
        "dram__cycles_active.sum": 4e7,
        "dram__cycles_active.avg": 1e6,
    },
    "no roll-up": {"dram__bytes": DRAM},
}
WORK: dict[str, List] = {
    "of schedulers": _sass("f", "smsp", "sum"),
    "of SMs": _sass("f", "sm", "sum"),
    "rates": _sass("f", "smsp", "sum.per_second"),
    "rates a cycle": _sass("f", "smsp", "sum.per_cycle_elapsed"),
    "means": _sass("f", "sm", "avg"),
    "means of schedulers": _sass("f", "smsp", "avg"),
    "mean rates a cycle": _sass("f", "sm", "avg.per_cycle_elapsed"),
    "all together, and the multiply-adds": {
        "smsp__sass_thread_inst_executed_ops_fadd_fmul_ffma_pred_on.sum": ADD + MUL + FMA,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": FMA,
    },
    "double precision": _sass("d", "sm", "sum"),
}
CACHES: dict[str, List] = {
    "none": {},
    "bytes": {"lts__t_bytes.sum": L2, "l1tex__t_bytes.sum": L1},
    "sectors": {"lts__t_sectors.sum": L2 / 32, "l1tex__t_sectors.sum": L1 / 32},
    "L2 by the SMs": {"lts__t_sectors_srcunit_tex.sum": L2 / 32, "l1tex__t_bytes.sum": L1},
    "rates": {
        "lts__t_bytes.sum.per_second": L2 / TIME_NS * 1e9,
        "l1tex__t_bytes.sum.per_second": L1 / TIME_NS * 1e9,
    },
}
NEEDS_CYCLES = frozenset({"rates a cycle", "mean rates a cycle"})
"""Work that only cycles make an amount: a list with a time alone does not tell it."""


def lists() -> Iterator[tuple[str, List, bool]]:
    """Vary one quantity at a time, and yield each list with what it varies and whether it has the caches."""
    first = [next(iter(table.items())) for table in (TIMES, BYTES, WORK, CACHES)]
    for place, table in enumerate((TIMES, BYTES, WORK, CACHES)):
        for name, one in table.items():
            chosen = [own for _, own in first]
            chosen[place] = one
            if name in NEEDS_CYCLES:
                chosen[0] = TIMES["cycles and their rate"]
            yield name, dict(chain.from_iterable(part.items() for part in chosen)), place == 3 and bool(one)


def written(folder: Path, names: List) -> str:
    """Write a list as `ncu --csv` prints it, and return its path."""
    text = io.StringIO()
    rows = csv.writer(text, quoting=csv.QUOTE_ALL)
    rows.writerow(HEADER)
    launch = ["0", "1", "app", "127.0.0.1", "k", "1", "7", "(256, 1, 1)", "(4096, 1, 1)", "0", "8.0", "metrics"]
    rows.writerows([*launch, name, "", repr(value)] for name, value in names.items())
    path = folder / "list.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    return str(path)


def answer(folder: Path, names: List) -> Any:
    """Analyze a list for the GPU."""
    result = CliRunner().invoke(main, ["analyze", written(folder, names), "--gpu", GPU, "--format", "json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["kernels"][0]


def test_every_spelling_of_a_quantity_gives_the_same_roofline(tmp_path: Path) -> None:
    """Time, bytes and operations in any roll-up, rate or unit give the same place, a slope and a flat roof."""
    wrong = []
    for name, names, has_caches in lists():
        one = answer(tmp_path, names)
        dram, double = one["levels"]["dram"], "op_dadd_pred_on" in "".join(names)
        got = {
            "time": (one["duration_ns"], TIME_NS),
            "bytes": (one["bytes"]["dram"], DRAM),
            "FLOP": (one["flop_total"], FLOP),
            "intensity": (one["intensity"]["dram"], FLOP / DRAM),
            "slope": (dram["peak_bytes_per_s"], 1.555e12),
            "flat roof": (one["flop_peak_per_s"], 9.7e12 if double else 19.5e12),
            "share": (dram["share"], DRAM / TIME_NS * 1e9 / 1.555e12),
        }
        if has_caches:
            got |= {"L2": (one["bytes"]["l2"], L2), "L1": (one["bytes"]["l1"], L1)}
        off = {what: pair for what, pair in got.items() if pair[0] != pytest.approx(pair[1], rel=0.02)}
        if off or dram["peak_source"] != "datasheet":
            wrong.append(f"{name}: {off or dram['peak_source']}")
    assert wrong == []


def test_a_rate_and_its_per_cent_give_the_slope(tmp_path: Path) -> None:
    """640 GB/s that are 45 % of the peak make a roof of 1.42 TB/s, whatever the datasheet says."""
    wrong = []
    for share in (
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__bytes.sum.pct_of_peak_sustained_elapsed",
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
    ):
        for rate in BYTES.values():
            level = answer(tmp_path, {**TIMES["a time"], **rate, **WORK["of SMs"], share: 45.0})["levels"]["dram"]
            if level["peak_source"] != "rate" or level["peak_bytes_per_s"] != pytest.approx(0.64e12 / 0.45):
                wrong.append((share, [*rate], level))
    assert wrong == []


def test_a_total_names_what_was_not_counted(tmp_path: Path) -> None:
    """With fp64 alone the FLOPs are those of fp64, and the other types are named in numbers and flags."""
    one = answer(tmp_path, {**TIMES["a time"], **BYTES["all"], **WORK["double precision"]})
    assert one["flop_total"] == FLOP
    assert one["flop_uncounted"] == ["fp32", "fp16", "tensor"]
    assert {"fp32_not_measured", "fp16_not_measured", "tensor_work_not_measured"} <= set(one["flags"])
    assert "fp64_not_measured" not in one["flags"]


def test_dram_that_is_59_per_cent_busy_is_no_plain_latency(tmp_path: Path) -> None:
    """A list without L1 and the issue slots leaves the class open to them, and names them; a busy DRAM is memory."""
    share = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
    known = {**TIMES["a time"], **BYTES["a rate"], **WORK["of SMs"]}
    waiting = answer(tmp_path, {**known, share: 59.0})["verdict"]
    assert (waiting["bound"], waiting["or_bound"]) == ("latency", ["memory", "compute"])
    assert waiting["unmeasured"] == ["l2", "l1", "other pipes"]
    assert "use of L2, L1 and other pipes is not measured" in waiting["sentence"]
    busy = answer(tmp_path, {**known, share: 61.0})["verdict"]
    assert (busy["bound"], busy["resource"], busy["or_bound"]) == ("memory", "dram", [])


def test_a_pipe_s_per_cent_alone_is_a_throughput(tmp_path: Path) -> None:
    """The FMA pipe at 95 % of its active cycles is compute, of these cycles, with no time at all."""
    pipe = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_{}"
    of_run = answer(tmp_path, {pipe.format("elapsed"): 95.0, "sm__inst_executed.sum": 1e8})
    assert (of_run["verdict"]["bound"], of_run["verdict"]["resource"]) == ("compute", "fma")
    of_active = answer(tmp_path, {pipe.format("active"): 95.0, "sm__inst_executed.sum": 1e8})
    assert (of_active["verdict"]["bound"], of_active["verdict"]["resource"]) == ("compute", "fma")
    assert "share_of_active_cycles" in of_active["flags"]
    assert "share_of_active_cycles" not in of_run["flags"]


def test_without_a_time_the_roof_at_the_intensity_is_still_said(tmp_path: Path) -> None:
    """FLOPs and bytes alone place a kernel along the axis: 1.02 FLOP/B x 1.555 TB/s is its roof on every face."""
    path = written(tmp_path, {**BYTES["all"], **WORK["of SMs"]})
    roof = "1.02 FLOP/B at HBM2 allows at most 1.58 TFLOP/s"

    def run(*line: str) -> str:
        done = CliRunner().invoke(main, [*line, path, "--gpu", GPU], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.stderr
        return done.stdout.replace("\u00a0", " ")

    table = run("analyze")
    assert f"k: {roof}; no time in the report" in table
    assert "- of 1.58 T" in table
    assert "k: no time. Collect" in table
    assert f"{roof}; how near it comes is not known, as the report lacks `gpu__time_duration.sum`" in run("explain")
    run("report", "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "k: at most 1.58 TFLOP/s" in page.replace("\u00a0", " ")
    assert "each kernel lies somewhere on the line below its mark" in page
    assert "A place on a roofline needs FLOPs, bytes and a time" not in page
