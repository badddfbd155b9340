"""What a trace says without a report, tested against scripts independent of rooflens."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import closing
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from support.timelines import Launched, write_export
from support.traces import Event, host, kernel, launch, write_trace

import rooflens as rl
from rooflens.cli.group import main
from rooflens.errors import NoMatchError
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.model.roofline.datasheets import the_datasheet
from rooflens.programs import read_programs
from rooflens.report.data import traces_schema_text

ROOT = Path(__file__).parents[1]
OUTCOMES = ROOT.parent / "shared" / "outcomes" / "timelines"
GPU = "NVIDIA A100-SXM4-40GB"
SCHEMA = files("rooflens.report").joinpath("trace.schema.json").read_text(encoding="utf-8")


def run(*arguments: object) -> Result:
    """Run a command, whatever its exit code."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def data_of(*arguments: object) -> dict[str, Any]:
    """Return a trace's JSON, checked against its schema."""
    result = run("analyze", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(document, json.loads(SCHEMA))
    return document


def intervals(path: Path) -> tuple[list[tuple[str, int, int, int]], list[tuple[int, int, int]]]:
    """Return name, GPU, start and end of each kernel, and of each copy everything but its name."""
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
            names = dict(database.execute("SELECT id, value FROM StringIds"))
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            kernels = "SELECT demangledName, deviceId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL"
            ran = [(names[name], *rest) for name, *rest in database.execute(kernels)]
            copied: list[tuple[int, int, int]] = []
            for table in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"):
                if table in tables:
                    copied += database.execute(f"SELECT deviceId, start, end FROM {table}").fetchall()  # noqa: S608 - ours
        return ran, copied
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = json.loads(text.decode(errors="replace"), parse_float=Decimal)["traceEvents"]
    spans = [
        (
            one["cat"],
            one["name"],
            one["args"]["device"],
            round(one["ts"] * 1000),
            round((one["ts"] + one["dur"]) * 1000),
        )
        for one in events
        if one.get("ph") == "X" and one["cat"] in {"kernel", "gpu_memcpy", "gpu_memset"}
    ]
    kernels_of = [span[1:] for span in spans if span[0] == "kernel"]
    return kernels_of, [span[2:] for span in spans if span[0] != "kernel"]


def covered_ns(spans: list[tuple[int, int, int]]) -> int:
    """Return the union of some spans: GPU, start and end of each part."""
    total, reached = 0, dict.fromkeys({device for device, *_ in spans}, -(10**30))
    for device, start, end in sorted(spans):
        total += max(0, end - max(start, reached[device]))
        reached[device] = max(reached[device], end)
    return total


def gaps_of(kernels: list[tuple[str, int, int, int]], copies: list[tuple[int, int, int]]) -> int:
    """Add up the idle time of a GPU, from its first to its last kernel."""
    total = 0
    for device in {one[1] for one in kernels}:
        own = [one[2:] for one in kernels if one[1] == device]
        first, last = min(start for start, _ in own), max(end for _, end in own)
        every = sorted([*own, *((start, end) for one, start, end in copies if one == device)])
        reached = first
        for start, end in every:
            total += max(0, min(start, last) - reached)
            reached = max(reached, min(end, last))
    return total


@pytest.mark.skipif(not OUTCOMES.is_dir(), reason="the published timelines are not here")
@pytest.mark.parametrize("name", ["hta_sampled_rank-0.json.gz", "hta_triton_example.json.gz", "algo64.sqlite"])
def test_totals_counts_and_gaps_are_those_of_a_ten_line_script(name: str) -> None:
    """Launches and time of each kernel name, and the total gaps, agree to the nanosecond."""
    kernels, copies = intervals(OUTCOMES / name)
    counts, times = Counter(one[0] for one in kernels), Counter[str]()
    for kernel_name, _, start, end in kernels:
        times[kernel_name] += end - start
    document = data_of(OUTCOMES / name)
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in document["kernels"]:
        found[row["name"]][0] += row["count"]
        found[row["name"]][1] += row["time_ns"]
    assert {key: tuple(value) for key, value in found.items()} == {key: (counts[key], times[key]) for key in counts}
    assert document["gaps_ns"] == gaps_of(kernels, copies)
    waits = [one for one in kernels if "nccl" in one[0]]
    found_waits = document["communication"] or {"count": 0, "time_ns": 0, "exposed_ns": 0}
    assert found_waits["count"] == len(waits)
    assert found_waits["time_ns"] == sum(end - start for *_, start, end in waits)
    others = [one[1:] for one in kernels if "nccl" not in one[0]]
    assert found_waits["exposed_ns"] == covered_ns([one[1:] for one in kernels]) - covered_ns(others)
    compute_ns = sum(document["parts"][part] for part in ("faster_ns", "floor_ns", "open_ns"))
    assert sum(row["share"] or 0.0 for row in document["kernels"]) == pytest.approx(compute_ns / document["wall_ns"])
    assert {row["by"] for row in document["kernels"] if row["share"] is None} <= {"communication"}


@pytest.mark.skipif(not OUTCOMES.is_dir(), reason="the published timelines are not here")
def test_no_floor_of_a_published_trace_is_above_its_measured_time() -> None:
    """Products, norms and elementwise operators have floors, cold or warm; no launch is faster than its floor."""
    document = data_of(OUTCOMES / "hta_sampled_rank-0.json.gz", "--gpu", "a100-sxm4-80gb")
    known = [row for row in document["kernels"] if row["floor_ns"] is not None]
    assert sum(row["count"] for row in known) > 700
    assert not [row for row in known if row["floor_ns"] > row["time_ns"]]
    assert not [row for row in known if row["caches"] == "cold" and row["floor_ns"] != row["floor_cold_ns"]]
    assert not [row for row in known if row["caches"] != "cold" and row["time_ns"] >= row["floor_cold_ns"]]
    assert {"aten::mm", "aten::addmm", "aten::bmm", "aten::native_layer_norm"} <= {row["operator"] for row in known}
    assert document["communication"]["share"] == document["communication"]["exposed_ns"] / document["wall_ns"]
    assert "record_param_comms" not in {one["operator"] for one in document["unknown_operators"]}


@pytest.mark.skipif(not OUTCOMES.is_dir(), reason="the published timelines are not here")
def test_no_floor_of_any_timeline_is_above_its_time() -> None:
    """Whatever the GPU, no row's floor is longer than it took, and nothing that could be fused saves more than it."""
    paths = [path for path in sorted(OUTCOMES.glob("*.json.gz")) if "benchmark_result" not in path.name]
    assert len(paths) > 3
    offenders = []
    for path in paths:
        (program,) = read_programs([path], gpu="h100-sxm")
        offenders += [(path.name, one.name) for one in program.every if (one.floor_ns or 0.0) > one.time_ns]
        offenders += [(path.name, one.first) for one in program.fusions if one.saved_ns > one.time_ns]
    assert offenders == []


MODULES = 12
SLOW = {37: 3.0, 101: 2.5, 166: 4.0}
"""Kernels that were made slow -> their slowdown."""


def program(path: Path, **keys: Any) -> Path:
    """Write a program of 200 kernels in 12 modules; each takes 1.2 times its operator's floor."""
    sheet = the_datasheet(GPU)
    events: list[Event] = []
    at, ran = 10.0, 1000.0
    for number in range(200):
        m = 2048 + 64 * number
        is_product = number % 2 == 0
        if is_product:
            dims, types, operator = [[m, 4096], [4096, 4096]], ["c10::Half"] * 2, "aten::mm"
            moved = 2 * (m * 4096 * 2 + 4096 * 4096)
            least_s = max(2 * m * 4096**2 / sheet.peaks["tensor_fp16"].value, moved / sheet.dram_bandwidth.value)
        else:
            dims, types, operator = [[m, 8192], [m, 8192]], ["float"] * 2, "aten::mul"
            least_s = 3 * 4 * m * 8192 / sheet.dram_bandwidth.value
        took_us = least_s * 1e6 * 1.2 * SLOW.get(number, 1.0)
        module = f"nn.Module: Block_{number % MODULES}"
        args = {"Input Dims": dims, "Input type": types}
        events += [
            host("python_function", module, at, 8),
            host("cpu_op", operator, at + 1, 6, **args),
            launch(at + 2, number + 1),
            kernel(f"kernel_{number}", ran, took_us, correlation=number + 1),
        ]
        at, ran = at + 10, ran + took_us + 2
    return write_trace(path, events, **keys)


PROPERTIES = [{"id": 0, "name": GPU}]


def test_the_ranking_finds_the_three_kernels_that_were_made_slow(tmp_path: Path) -> None:
    """Of 200 kernels in 12 modules the three slowed ones come first, with module and time above their floors."""
    trace = program(tmp_path / "t.json.gz", deviceProperties=PROPERTIES)
    document = data_of(trace)
    assert (len(document["kernels"]), document["gpu"]) == (200, GPU)
    first = document["kernels"][:3]
    assert {row["name"] for row in first} == {f"kernel_{number}" for number in SLOW}
    for row in first:
        number = int(row["name"].removeprefix("kernel_"))
        assert row["module"] == f"Block_{number % MODULES}"
        assert row["time_ns"] / row["floor_cold_ns"] == pytest.approx(1.2 * SLOW[number], rel=0.01)
        assert row["gain_ns"] == pytest.approx(row["time_ns"] - row["floor_cold_ns"], abs=2)
    shown = run(trace).stdout
    commands = [line for line in shown.splitlines() if "rooflens profile" in line]
    assert len(commands) == 3
    assert all(f"--kernel {row['name']} --launch-count 1 -- PROGRAM" in shown for row in first)


def test_a_trace_without_a_gpu_says_so_and_takes_it_from_an_option(tmp_path: Path) -> None:
    """Without a GPU there are no floors, and kernels rank by time; a GPU named in the trace is not overridden."""
    nameless, named = program(tmp_path / "a.json"), program(tmp_path / "b.json", deviceProperties=PROPERTIES)
    without = data_of(nameless)
    assert not [row for row in without["kernels"] if row["floor_ns"] is not None or row["gain_ns"] is not None]
    assert without["notes"] == [
        "the timeline does not name one GPU, so that no kernel has a floor: `--gpu NAME` gives it"
    ]
    times = [row["time_ns"] for row in without["kernels"]]
    assert times == sorted(times, reverse=True)
    assert data_of(nameless, "--gpu", "a100-sxm4-40gb")["kernels"] == data_of(named)["kernels"]
    assert "is not used" in data_of(named, "--gpu", "h100-sxm")["notes"][0]


def test_kernels_of_one_call_share_its_floor_by_their_times(tmp_path: Path) -> None:
    """Two kernels of a product together have the floor of a single kernel."""
    args = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    events = [host("cpu_op", "aten::mm", 1, 50, **args), launch(5, 1), launch(10, 2)]
    ran = [kernel("main", 100, 9000, correlation=1), kernel("reduce", 9200, 1000, correlation=2)]
    first, second = data_of(write_trace(tmp_path / "t.json", [*events, *ran], deviceProperties=PROPERTIES))["kernels"]
    whole = 2 * 8192**3 / the_datasheet(GPU).peaks["tensor_fp16"].value * 1e9
    assert first["floor_ns"] == pytest.approx(0.9 * whole)
    assert second["floor_ns"] == pytest.approx(0.1 * whole)


def test_a_launch_that_is_faster_than_its_gpu_allows_has_no_floor(tmp_path: Path) -> None:
    """A launch faster than its floor means a wrong GPU or sizes: a note says so, and the floor is dropped."""
    args = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    events = [host("cpu_op", "aten::mm", 1, 50, **args), launch(5, 1), kernel("gemm", 100, 50, correlation=1)]
    document = data_of(write_trace(tmp_path / "t.json", events), "--gpu", "a100-sxm4-40gb")
    assert document["kernels"][0]["floor_ns"] is None
    assert "1 launch took less than the peaks of NVIDIA A100-SXM4-40GB allow" in document["notes"][0]


def test_operands_that_nobody_writes_cost_the_floor_of_their_own_kernel(tmp_path: Path) -> None:
    """A softmax with a list in place of a Boolean has no floor, which a note counts; the product beside it has one."""
    products = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    odd = {
        "Input Dims": [[64, 64], [], []],
        "Input type": ["float", "Scalar", "Scalar"],
        "Concrete Inputs": ["", "1", "[]"],
    }
    events = [host("cpu_op", "aten::mm", 1, 50, **products), launch(5, 1), kernel("gemm", 100, 9000, correlation=1)]
    events += [host("cpu_op", "aten::_softmax", 60, 9, **odd), launch(62, 2), kernel("soft", 9900, 50, correlation=2)]
    document = data_of(write_trace(tmp_path / "t.json", events, deviceProperties=PROPERTIES))
    assert {row["name"]: row["floor_ns"] is None for row in document["kernels"]} == {"gemm": False, "soft": True}
    (note,) = document["notes"]
    assert note.startswith("1 launch of operators with operands that PyTorch does not write, and without a floor: ")


def test_launches_that_come_too_late_are_a_stretch(tmp_path: Path) -> None:
    """Twenty kernels of 2 us every 12 us are a launch-bound stretch; a long pause is not part of it."""
    launched = [Launched("tiny", 12_000 * i, 12_000 * i + 2000) for i in range(20)]
    launched.append(Launched("last", 9_000_000, 9_500_000))
    document = data_of(write_export(tmp_path / "t.sqlite", launched))
    (stretch,) = document["stretches"]
    assert (stretch["count"], stretch["gap_ns"], stretch["wall_ns"]) == (19, 190_000, 228_000)
    tiny = next(row for row in document["kernels"] if row["name"] == "tiny")
    assert (tiny["bound"], tiny["or_bound"], tiny["launch"]) == ("overhead", [], 10)
    shown = run(tmp_path / "t.sqlite").stdout
    assert "Launch-bound: 1 stretch with 19 launches" in shown
    # The GPU is idle for 94 % of the time: a kernel of 0.4 % is not what to look at next.
    assert "--kernel last --launch-count 1" in shown
    assert "--kernel tiny" not in shown


def test_kernels_that_wait_for_other_gpus_are_not_profiled(tmp_path: Path) -> None:
    """Kernels that wait for other GPUs count as communication, and are not suggested for profiling."""
    launched = [Launched("ncclDevKernel_AllReduce", 0, 900_000), Launched("block_all_reduce_sum", 800_000, 1_000_000)]
    trace = write_export(tmp_path / "t.sqlite", launched)
    shown = run(trace).stdout
    assert shown.startswith("Exposed communication 80 % of 1.00 ms, most in all-reduce.\n")
    assert [line for line in shown.splitlines() if "--kernel" in line] == [
        "   20 %, no known floor: rooflens profile --kernel block_all_reduce_sum --launch-count 1 -- PROGRAM"
    ]
    assert [row["by"] for row in data_of(trace)["kernels"]] == ["time", "communication"]


def test_what_is_not_known_stands_below_what_can_be_won_and_says_so(tmp_path: Path) -> None:
    """A slow kernel without a floor does not rank first: it heads a separate list."""
    args = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    events = [
        *(host("cpu_op", "aten::mm", 1, 8, **args), launch(5, 1), kernel("gemm", 100, 9000, correlation=1)),
        *(host("cpu_op", "own::op", 11, 8), launch(15, 2), kernel("unknown", 9100, 900_000, correlation=2)),
    ]
    trace = write_trace(tmp_path / "t.json", events, deviceProperties=PROPERTIES)
    assert [(row["name"], row["by"]) for row in data_of(trace)["kernels"]] == [("gemm", "limit"), ("unknown", "time")]
    lines = run(trace).stdout.splitlines()
    places = [
        next(place for place, line in enumerate(lines) if line.startswith(begin))
        for begin in ("To win, most first", "gemm ", "No known floor, by time", "unknown ")
    ]
    assert places == sorted(places)
    assert "   99 %, no known floor: rooflens profile --kernel unknown --launch-count 1 -- PROGRAM" in lines


BESIDE = ("examples/step.synthetic.json", "fixtures/synthetic/attention.synthetic.ncu-rep")


def test_a_report_beside_a_trace_refines_its_rows() -> None:
    """Kernels in the report get class, gain and first move in the same list; the others stay open."""
    alone, beside = data_of(BESIDE[0]), data_of(*BESIDE)
    report = json.loads(run("analyze", BESIDE[1], "--format", "json").stdout)
    verdicts = {one["name"]: one["verdict"] for one in report["kernels"]}
    before = {row["name"]: row for row in alone["kernels"]}
    assert {row["name"] for row in beside["kernels"]} == {*before}
    for row in beside["kernels"]:
        verdict = verdicts.get(row["name"].partition("(")[0])
        assert (row["measured"] is None) == (verdict is None)
        if verdict is None:
            assert row == before[row["name"]]
            continue
        assert (row["bound"], row["measured"]["limit"]) == (verdict["bound"], verdict["limit"])
        won = row["time_ns"] * (1 - 1 / ((verdict["gain"] or verdict["limit"])["factor"]))
        assert row["gain_ns"] == pytest.approx(min(won, row["time_ns"] - row["floor_ns"]))
    assert any(row["measured"] for row in beside["kernels"])
    shown = run(*reversed(BESIDE)).stdout
    profiled = [line for line in shown.splitlines() if ": rooflens profile " in line]
    assert ": rooflens explain fixtures/synthetic/attention.synthetic.ncu-rep --kernel flash" in shown
    assert ["multi_tensor_apply_kernel" in line for line in profiled] == [True]


def test_a_timeline_beside_a_report_lists_what_was_not_profiled() -> None:
    """Kernels of the timeline that the report lacks are listed below, with share and without class."""
    shown = run("analyze", BESIDE[1], "--timeline", BESIDE[0]).stdout
    held, _, open_rows = shown.partition("Not profiled: 2 kernels, 13 % of the program's kernel time\n")
    assert "flash_attention_forward" in held
    rows = [line.split() for line in open_rows.splitlines()[1:3]]
    assert rows == [
        ["multi_tensor_apply_kernel", "10", "%", "unknown"],
        ["triton_poi_fused_gelu_1", "2.9", "%", "unknown"],
    ]


def test_a_report_of_another_program_refines_nothing_and_that_is_said(tmp_path: Path) -> None:
    """A report of another program leaves the rows unchanged, and a note says so."""
    trace = write_export(tmp_path / "t.sqlite", [Launched("own", 0, 10_000)])
    assert data_of(trace, BESIDE[1])["kernels"] == data_of(trace)["kernels"]
    assert "none of the reports' 4 kernels is in it" in run(trace, BESIDE[1]).stdout


def test_kernels_without_a_floor_are_one_row_whatever_their_sizes(tmp_path: Path) -> None:
    """Texts and pages add up the sizes of an operator of which no floor is known; JSON has each."""
    events = []
    for number in (1, 2):
        args = {"Input Dims": [[number, 8]], "Input type": ["float"]}
        events += [host("cpu_op", "own::op", 20.0 * number, 8, **args), launch(20.0 * number + 2, number)]
        events.append(kernel("odd", 1000.0 * number, 400, correlation=number))
    trace = write_trace(tmp_path / "t.json", events, deviceProperties=PROPERTIES)
    assert [row["shape"] for row in data_of(trace)["kernels"]] == ["[1, 8]", "[2, 8]"]
    rows = [line.split() for line in run(trace).stdout.splitlines() if line.startswith("odd ")]
    assert [(row[1], " ".join(row[3:6]), "2 shapes" in " ".join(row)) for row in rows] == [("800", "57 % 2", True)]


def test_each_step_is_drawn_where_the_model_found_it(tmp_path: Path) -> None:
    """A range of another thread within a step neither hides it nor ends it; a copy may come before all launches."""
    events = [{**kernel("Memcpy HtoD (Pinned -> Device)", 10, 50, stream=9), "cat": "gpu_memcpy"}]
    for step in range(3):
        at = 100.0 * (step + 1)
        events += [host("user_annotation", f"ProfilerStep#{step + 7}", at, 95), launch(at + 5, 2 * step + 1)]
        events += [kernel("gemm", at + 10, 20, correlation=2 * step + 1)]
        events += [{**host("user_annotation", "nccl:all_reduce", at + 40, 50), "tid": 2}]
        events += [
            {**launch(at + 45, 2 * step + 2), "tid": 2},
            kernel("ncclDevKernel", at + 50, 60, correlation=2 * step + 2),
        ]
    trace = write_trace(tmp_path / "t.json", events)
    assert run("report", trace, "-o", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    drawn = json.loads(page.partition('id="lanes-data">')[2].partition("</script>")[0])
    named = [(level, drawn["texts"][text], begin, end) for level, text, begin, end in drawn["parts"][0]["spans"]]
    assert [one for one in named if one[0] < 0] == [
        (-1, f"ProfilerStep#{step + 7}", (100 * (step + 1)) * 1000, (100 * (step + 2)) * 1000) for step in range(3)
    ]
    assert {name for level, name, *_ in named if level >= 0} == {"nccl:all_reduce"}


def test_kernels_and_ranges_are_chosen_as_in_reports(tmp_path: Path) -> None:
    """Patterns select rows, while totals and shares stay the program's; no match is an error."""
    events = [
        *(host("user_annotation", "forward", 0, 50), launch(5, 1), kernel("alike<1>", 100, 10, correlation=1)),
        *(
            launch(60, 2),
            kernel("alike<1>", 200, 30, correlation=2),
            launch(70, 3),
            kernel("b", 300, 60, correlation=3),
        ),
    ]
    trace = write_trace(tmp_path / "t.json", events)
    whole = data_of(trace)
    (chosen,) = data_of(trace, "--kernel", "alike*")["kernels"]
    assert (chosen["count"], chosen["time_ns"], chosen["share"]) == (
        2,
        40_000,
        pytest.approx(40 / whole["wall_ns"] * 1000),
    )
    in_range = data_of(trace, "--nvtx", "forward")
    assert [(row["name"], row["time_ns"], row["launch"]) for row in in_range["kernels"]] == [("alike<1>", 10_000, 0)]
    assert (in_range["time_ns"], in_range["launches"]) == (whole["time_ns"], 3)
    assert "Shown: 1 of 2 rows, 23 % of wall." in run(trace, "--kernel", "b").stdout
    missed = run(trace, "--kernel", "alyke")
    assert (missed.exit_code, "did you mean `alike" in missed.stderr) == (1, True)
    assert [one.name for one in rl.trace(trace, kernel="b").kernels] == ["b"]


def test_columns_of_a_trace_are_its_keys_and_the_heads_of_its_table(tmp_path: Path) -> None:
    """Keys and table heads both name a column; for an unknown name similar ones are suggested."""
    trace = program(tmp_path / "t.json", deviceProperties=PROPERTIES)
    shown = run("analyze", trace, "--columns", "gain_ns,To win,moved_bytes,from", "--top", "2").stdout
    table = shown.partition("To win, most first\n")[2].splitlines()
    assert table[0].split() == ["kernel", "gain", "to", "win", "moved", "bytes", "from"]
    assert (table[1].startswith("kernel_166"), table[3]) == (True, "and 198 more with less to win")
    missed = run("analyze", trace, "--columns", "gains")
    assert (missed.exit_code, "gain_ns" in missed.stderr) == (2, True)


def test_traces_come_from_folders_and_pipes(tmp_path: Path) -> None:
    """A folder without reports stands for its traces, an export for its .nsys-rep, and a pipe may hold a trace."""
    folder = tmp_path / "run"
    folder.mkdir()
    trace = program(folder / "t10.json.gz", deviceProperties=PROPERTIES)
    program(folder / "t9.json", deviceProperties=PROPERTIES)
    write_export(folder / "u.sqlite", [Launched("own", 0, 10)])
    (folder / "u.nsys-rep").write_bytes(b"not exported again")
    (folder / "config.json").write_text('{"a": [1]}', encoding="utf-8")
    names = [Path(one["source"]).name for one in data_of(folder)["traces"]]
    assert names == ["t9.json", "t10.json.gz", "u.sqlite"]
    for word in ("analyze", None):
        piped = CliRunner().invoke(main, [*([word] if word else []), "-"], input=trace.read_bytes())
        assert (piped.exit_code, "kernel_166" in piped.stdout) == (0, True)
    answers = Answers(Root(tmp_path))
    assert {*answers.list_reports().data["paths"]} == {"run/t9.json", "run/t10.json.gz", "run/u.sqlite"}
    assert "3 traces" in answers.open_report("run").text


def test_traces_of_several_ranks_are_one_list_that_names_the_one_they_wait_for(tmp_path: Path) -> None:
    """Equal kernels of several ranks are one row; the rank that communicates least is the slowest."""
    for rank, waits_us in enumerate((400, 410, 20)):
        own_us = 1000 - waits_us
        events = [
            *(launch(1, 1), kernel("own", 100, own_us, correlation=1)),
            *(launch(2, 2), kernel("ncclDevKernel_AllReduce_Sum", 100 + own_us, waits_us, correlation=2)),
        ]
        info = {"backend": "nccl", "rank": rank, "world_size": 3}
        write_trace(tmp_path / f"rank{rank}.json", events, distributedInfo=info)
    shown = run(tmp_path).stdout
    assert "3 traces, 1 compute kernel in 3 launches, 2.17 ms; 1 communication kernel in 3 launches, 830 µs." in shown
    assert "All wait for rank 2, rank2.json: it comes 385 µs late in all, over 1 collective." in shown
    assert "own takes 980 µs there, 595 µs elsewhere" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("own ")]
    assert row.split()[1:3] == ["2.17", "ms"]
    assert [one["rank"] for one in data_of(tmp_path)["traces"]] == [0, 1, 2]


def test_all_formats_come_of_one_answer(tmp_path: Path) -> None:
    """Page, Markdown, CSV and digest show the first kernel; several traces follow each other."""
    trace = program(tmp_path / "t.json.gz", deviceProperties=PROPERTIES)
    name = data_of(trace)["kernels"][0]["name"]
    for style in ("md", "csv", "digest"):
        assert name in run("analyze", trace, "--format", style).stdout
    assert len(run("analyze", trace, "--format", "digest", "--max-tokens", 300).stdout.encode()) <= 900
    page = tmp_path / "page.html"
    assert run("report", trace, "-o", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert all(f"kernel_{number}" in text for number in (*SLOW, 0, 199))
    assert "188\u00a0more rows" in text or "188 more rows" in text
    (tmp_path / "u.json.gz").write_bytes(trace.read_bytes())
    both = data_of(trace, tmp_path / "u.json.gz")
    assert [one["source"] for one in both["traces"]] == [str(trace), str(tmp_path / "u.json.gz")]
    assert [len(program.kernels) for program in read_programs([trace])] == [200]


def test_the_page_of_a_trace_has_headline_timeline_and_one_list(tmp_path: Path) -> None:
    """The page's heading is the answer; each launch is in the timeline; rows without a gain come last."""
    args = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    events = [
        *(host("python_function", "nn.Module: Block_0", 0, 9), host("cpu_op", "aten::mm", 1, 8, **args)),
        *(launch(5, 1), kernel("gemm", 100, 9000, correlation=1)),
        *(host("python_function", "nn.Module: Head_0", 10, 9), host("cpu_op", "own::op", 11, 8)),
        *(launch(15, 2), kernel("other", 10_100, 2000, correlation=2)),
    ]
    trace = write_trace(tmp_path / "t.json", events, deviceProperties=PROPERTIES)
    assert run("report", trace, "-o", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    won_ms = 9 - 2 * 8192**3 / the_datasheet(GPU).peaks["tensor_fp16"].value * 1e3
    assert (
        f"<h1>Compute kernels take 92 % of 12.0 ms: at most {100 * won_ms / 12:.0f} % to save, unknown for 17 %.<"
        in page
    )
    drawn = json.loads(page.partition('id="lanes-data">')[2].partition("</script>")[0])
    (part,) = drawn["parts"]
    (lane,) = part["lanes"]
    assert [drawn["subjects"][place][0] for place in lane["subjects"]] == ["gemm", "other"]
    assert (lane["starts"], lane["lengths"], drawn["wall"]) == ([0, 10_000_000], [9_000_000, 2_000_000], 12_000_000)
    assert [drawn["texts"][text] for _, text, _, _ in part["spans"]] == ["Block_0", "Head_0"]
    marks = re.findall(r'<tr data-mark="(\d+)"', page)
    assert marks == [drawn["subjects"][place][3] for place in lane["subjects"]]
    hatched = re.search(r'<u style="width:([\d.]+)%"></u></span></div>', page)
    assert hatched is not None
    assert float(hatched[1]) == pytest.approx(100 * won_ms / 9, abs=0.1)
    rows = re.findall(r"<li( class=\"begins\")?>.*?class=\"name\">(\w+)<", page)
    assert rows == [("", "gemm"), (' class="begins"', "other")]


def test_places_that_differ_by_number_alone_are_one(tmp_path: Path) -> None:
    """A kernel that runs in 48 layers or 50 steps is attributed to all of them, not to the longest."""
    events: list[Event] = []
    for number in range(4):
        at = 100 * number
        events += [
            *(
                host("user_annotation", f"step_{number}", at, 90),
                host("python_function", f"nn.Module: Layer_{number}", at, 80),
            ),
            *(launch(at + 5, number + 1), kernel("own", at + 20, 50 + number, correlation=number + 1)),
        ]
    (row,) = data_of(write_trace(tmp_path / "t.json", events))["kernels"]
    assert (row["module"], row["nvtx_range"]) == ("Layer_*", "step_*")


def test_pauses_between_steps_make_no_kernel_overhead(tmp_path: Path) -> None:
    """A pause of 5 ms before every hundredth launch is the host's, and the launches themselves are back to back."""
    starts = [20_000 * i + 5_000_000 * (i // 100) for i in range(500)]
    launched = [Launched("own", start, start + 19_000) for start in starts]
    (row,) = data_of(write_export(tmp_path / "t.sqlite", launched))["kernels"]
    assert row["gap_ns"] > row["time_ns"]
    assert row["bound"] == "unknown"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """A trace's names can neither inject markup into a page nor steer a terminal."""
    name = "<script>alert(1)</script>\x1b[31m" + "n" * 100_000
    events = [host("cpu_op", name, 1, 9), launch(5, 1), kernel(name, 20, correlation=1)]
    trace = write_trace(tmp_path / "t.json", events)
    shown = run(trace).stdout
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) < 2000
    assert run("report", trace, "-o", tmp_path / "page.html").exit_code == 0
    assert "<script>alert" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--launches", "--store=runs", "--timeline=t.sqlite", "--without-nvidia"])
def test_options_that_a_trace_has_no_place_for_say_so(tmp_path: Path, option: str) -> None:
    """Options that traces cannot use are refused, not ignored."""
    trace = write_export(tmp_path / "t.sqlite", [Launched("own", 0, 10)])
    result = run("analyze", trace, option)
    assert (result.exit_code, "is a timeline" in result.stderr) == (2, True)


def story(*arguments: object) -> str:
    """Run the example like a user, from a clone's root."""
    command = [sys.executable, "examples/trace_to_line.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout  # noqa: S603 - ours


def test_the_story_leads_from_a_trace_to_a_line_of_code(tmp_path: Path) -> None:
    """The trace says where a kernel is launched and what to profile; its report adds the line in the kernel."""
    first, *_ = story(BESIDE[0]).split("\nattention")
    assert first.splitlines()[1:] == [
        "  launched by aten::_scaled_dot_product_flash_attention in Attention_1 at model.py:42",
        "  not profiled yet",
    ]
    events = [
        host("python_function", "train.py(31): step", 1, 20),
        *(host("cpu_op", "own::adamw", 2, 9), launch(5, 1)),
        kernel("adamw_kernel2", 100, 900, correlation=1, grid=[2048, 1, 1], block=[512, 1, 1]),
    ]
    told = story(write_trace(tmp_path / "t.json", events), "fixtures/published/llm.c__adamw_coalsecing_shared.ncu-rep")
    assert "  launched by own::adamw in None at train.py:31" in told
    assert "  line: " in told
    assert "adamw.cu:95" in told


def test_a_trace_alone_starts_without_what_reports_need() -> None:
    """Reading a trace imports no verdicts, findings or libraries of tables, which halved its start-up time."""
    code = (
        "import sys; from click.testing import CliRunner; from rooflens.cli.group import main; "
        f"assert not CliRunner().invoke(main, [{str(ROOT / BESIDE[0])!r}]).exit_code; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    loaded = done.stdout.split()
    assert "rooflens.programs" in loaded
    barred = ("rooflens.analyzing", "rooflens.model.findings", "rooflens.model.verdict.", "pyarrow", "jinja2", "altair")
    assert not [name for name in loaded if name.startswith(barred)]


def test_the_shipped_schema_is_the_catalogues() -> None:
    """The schema file is generated from the catalogue."""
    assert traces_schema_text() == SCHEMA


def test_python_and_a_model_get_the_same_answer(tmp_path: Path) -> None:
    """API and server rank a trace alike; patterns of kernels work with reports."""
    program(tmp_path / "t.json.gz", deviceProperties=PROPERTIES)
    first = rl.trace(tmp_path / "t.json.gz").next[0]
    answers = Answers(Root(tmp_path))
    rows = [line for line in answers.open_report("t.json.gz").text.splitlines() if line.startswith("| `kernel_")]
    assert f"`{first.name}`" in rows[0]
    assert answers.open_report("t.json.gz").data["kernels"][0]["name"] == first.name
    assert "Shown: 1 of 200 rows" in answers.open_report("t.json.gz", kernel="kernel_101").text
    with pytest.raises(NoMatchError, match="no kernel matches `x`"):
        answers.open_report("t.json.gz", kernel="x")


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_commands_that_need_a_report_say_who_reads_a_trace(tmp_path: Path, name: str) -> None:
    """`explain` and `hotspots` answer a trace with the commands that read it."""
    trace = write_trace(tmp_path / name, [launch(5, 1), kernel("own", 20, correlation=1)])
    for command in ("explain", "hotspots"):
        result = run(command, trace)
        assert (result.exit_code, "`rooflens FILE` reads it, and --timeline beside a report" in result.stderr) == (
            1,
            True,
        )


def test_a_trace_in_perfettos_own_format_is_told_what_to_do(tmp_path: Path) -> None:
    """For a trace in Perfetto's own format the error names the call that writes JSON."""
    trace = tmp_path / "t.pftrace"
    trace.write_bytes(b"\x0a\x10\x08\x01" * 100)
    result = run(trace)
    assert (result.exit_code, "export_chrome_trace" in result.stderr) == (1, True)


def test_an_export_of_nsys_says_that_it_has_no_sizes(tmp_path: Path) -> None:
    """For an nsys export a note says that its kernels have no operators, and thus no floors, on any GPU."""
    document = data_of(write_export(tmp_path / "t.sqlite", [Launched("own", 0, 10)]))
    assert document["notes"] == [
        "the timeline has no operator sizes, so no kernel has a floor: an nsys export has none"
    ]
