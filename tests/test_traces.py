"""Test what a trace says without a report, against scripts that know nothing of rooflens."""

from __future__ import annotations

import gzip
import json
import sqlite3
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
from rooflens.analyzing import read_programs
from rooflens.cli.group import main
from rooflens.errors import UsageError
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.model.roofline.datasheets import the_datasheet
from rooflens.report.data import traces_schema_text

pytestmark = pytest.mark.if_changed("imports", "fixtures", "published")

OUTCOMES = Path(__file__).parents[2] / "shared" / "outcomes" / "timelines"
GPU = "NVIDIA A100-SXM4-40GB"
SCHEMA = files("rooflens.report").joinpath("trace.schema.json").read_text(encoding="utf-8")


def run(*arguments: object) -> Result:
    """Run a command, wherever it ends."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def data_of(*arguments: object) -> dict[str, Any]:
    """Return the JSON of a trace, which holds to its schema."""
    result = run("analyze", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(document, json.loads(SCHEMA))
    return document


def intervals(path: Path) -> tuple[list[tuple[str, int, int, int]], list[tuple[int, int, int]]]:
    """Return name, GPU, start and end of each kernel, and of each copy all but its name."""
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


def gaps_of(kernels: list[tuple[str, int, int, int]], copies: list[tuple[int, int, int]]) -> int:
    """Add up when nothing ran on a GPU, from its first to its last kernel."""
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
    """Of each kernel's name the launches and their time, and the gaps of the whole, are equal to the nanosecond."""
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
    assert sum(row["share"] for row in document["kernels"]) == pytest.approx(1)


@pytest.mark.skipif(not OUTCOMES.is_dir(), reason="the published timelines are not here")
def test_no_floor_of_a_published_trace_is_above_its_measured_time() -> None:
    """Products, norms and elementwise operators have floors, cold or warm; no launch beats its own."""
    document = data_of(OUTCOMES / "hta_sampled_rank-0.json.gz", "--gpu", "a100-sxm4-80gb")
    known = [row for row in document["kernels"] if row["floor_ns"] is not None]
    assert sum(row["count"] for row in known) > 700
    assert not [row for row in known if row["floor_ns"] > row["time_ns"]]
    assert not [row for row in known if row["caches"] == "cold" and row["floor_ns"] != row["floor_cold_ns"]]
    assert {"aten::mm", "aten::addmm", "aten::bmm", "aten::native_layer_norm"} <= {row["operator"] for row in known}
    unknown = {one["operator"]: one["share"] for one in document["unknown_operators"]}
    assert unknown["record_param_comms"] == pytest.approx(0.48, abs=0.01)


MODULES = 12
SLOW = {37: 3.0, 101: 2.5, 166: 4.0}
"""Kernels of the program that were made slow -> how many times as long they run."""


def program(path: Path, **keys: Any) -> Path:
    """Write a program of 200 kernels in 12 modules; each takes 1.2 times what its operator takes at least."""
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
    """Of 200 kernels in 12 modules these three come first, with module and what is above their floors."""
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
    """Without one nothing has a floor, and times rank; one that the trace names is not overruled."""
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
    """Two kernels of one product have together the floor that one kernel would have."""
    args = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    events = [host("cpu_op", "aten::mm", 1, 50, **args), launch(5, 1), launch(10, 2)]
    ran = [kernel("main", 100, 9000, correlation=1), kernel("reduce", 9200, 1000, correlation=2)]
    first, second = data_of(write_trace(tmp_path / "t.json", [*events, *ran], deviceProperties=PROPERTIES))["kernels"]
    whole = 2 * 8192**3 / the_datasheet(GPU).peaks["tensor_fp16"].value * 1e9
    assert first["floor_ns"] == pytest.approx(0.9 * whole)
    assert second["floor_ns"] == pytest.approx(0.1 * whole)


def test_a_launch_that_is_faster_than_its_gpu_allows_has_no_floor(tmp_path: Path) -> None:
    """The GPU or the sizes are wrong: that is said, and no floor stands above a time."""
    args = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::Half"] * 2}
    events = [host("cpu_op", "aten::mm", 1, 50, **args), launch(5, 1), kernel("gemm", 100, 50, correlation=1)]
    document = data_of(write_trace(tmp_path / "t.json", events), "--gpu", "a100-sxm4-40gb")
    assert document["kernels"][0]["floor_ns"] is None
    assert "1 launch took less than the peaks of NVIDIA A100-SXM4-40GB allow" in document["notes"][0]


def test_launches_that_come_too_late_are_a_stretch(tmp_path: Path) -> None:
    """Twenty kernels of 2 us every 12 us: the GPU waits for launches; a long pause belongs to no stretch."""
    launched = [Launched("tiny", 12_000 * i, 12_000 * i + 2000) for i in range(20)]
    launched.append(Launched("last", 9_000_000, 9_500_000))
    document = data_of(write_export(tmp_path / "t.sqlite", launched))
    (stretch,) = document["stretches"]
    assert (stretch["count"], stretch["gap_ns"], stretch["wall_ns"]) == (19, 190_000, 228_000)
    tiny = next(row for row in document["kernels"] if row["name"] == "tiny")
    assert (tiny["bound"], tiny["or_bound"], tiny["launch"]) == ("overhead", [], 10)
    assert "--kernel tiny --launch-skip 10 --launch-count 1" in run(tmp_path / "t.sqlite").stdout
    assert "launch-bound: 1 stretch with 19 launches" in run(tmp_path / "t.sqlite").stdout


def test_kernels_that_wait_for_other_gpus_are_not_profiled(tmp_path: Path) -> None:
    """Their time is named, and the commands go to the others."""
    launched = [Launched("ncclDevKernel_AllReduce", 0, 900_000), Launched("own", 900_000, 1_000_000)]
    shown = run(write_export(tmp_path / "t.sqlite", launched)).stdout
    assert "90 % of it is in kernels that wait for other GPUs" in shown
    assert [line for line in shown.splitlines() if "--kernel" in line] == [
        "1. rooflens profile --kernel own --launch-count 1 -- PROGRAM"
    ]


def test_all_formats_come_of_one_answer(tmp_path: Path) -> None:
    """Page, Markdown, CSV and digest hold the first kernel; several traces come one after the other."""
    trace = program(tmp_path / "t.json.gz", deviceProperties=PROPERTIES)
    name = data_of(trace)["kernels"][0]["name"]
    for style in ("md", "csv", "digest"):
        assert name in run("analyze", trace, "--format", style).stdout
    assert len(run("analyze", trace, "--format", "digest", "--max-tokens", 300).stdout.encode()) <= 900
    page = tmp_path / "page.html"
    assert run("report", trace, "-o", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert all(f"kernel_{number}" in text for number in (*SLOW, 0, 199))
    assert '<p class="note">and 180 more with less to win</p>' in text
    (tmp_path / "u.json.gz").write_bytes(trace.read_bytes())
    both = data_of(trace, tmp_path / "u.json.gz")
    assert [one["source"] for one in both["traces"]] == [str(trace), str(tmp_path / "u.json.gz")]
    assert [len(program.kernels) for program in read_programs([trace])] == [200]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """A name of a trace is no mark-up on a page, and steers no terminal."""
    name = "<script>alert(1)</script>\x1b[31m"
    events = [host("cpu_op", name, 1, 9), launch(5, 1), kernel(name, 20, correlation=1)]
    trace = write_trace(tmp_path / "t.json", events)
    assert "\x1b" not in run(trace).stdout
    assert run("report", trace, "-o", tmp_path / "page.html").exit_code == 0
    assert "<script>alert" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--launches", "--columns=name", "--kernel=x", "--timeline=t.sqlite"])
def test_options_that_need_a_report_say_so(tmp_path: Path, option: str) -> None:
    """What a trace has no place for is refused, not left out."""
    trace = write_export(tmp_path / "t.sqlite", [Launched("own", 0, 10)])
    result = run("analyze", trace, option)
    assert (result.exit_code, "needs a report" in result.stderr) == (2, True)


def test_a_trace_beside_a_report_leads_to_the_option(tmp_path: Path) -> None:
    """One of each is not a guess: the option that holds them together is named."""
    trace = write_export(tmp_path / "t.sqlite", [Launched("own", 0, 10)])
    other = tmp_path / "r.ncu-rep"
    other.write_bytes(b"NVR")
    result = run("analyze", trace, other)
    assert (result.exit_code, "--timeline" in result.stderr) == (2, True)


def test_the_shipped_schema_is_the_catalogues() -> None:
    """The file of the schema is made of the catalogue."""
    assert traces_schema_text() == SCHEMA


def test_python_and_a_model_get_the_same_answer(tmp_path: Path) -> None:
    """What the API ranks first, a client of the server reads first; patterns of kernels go with reports."""
    program(tmp_path / "t.json.gz", deviceProperties=PROPERTIES)
    first = rl.trace(tmp_path / "t.json.gz").next[0]
    answers = Answers(Root(tmp_path))
    rows = [line for line in answers.open_report("t.json.gz").splitlines() if line.startswith("| `kernel_")]
    assert f"`{first.name}`" in rows[0]
    assert answers.open_report("t.json.gz").data["kernels"][0]["name"] == first.name
    with pytest.raises(UsageError, match="is a trace"):
        answers.open_report("t.json.gz", kernel="x")


def test_a_trace_in_perfettos_own_format_is_told_what_to_do(tmp_path: Path) -> None:
    """Its reader is not ours: the call that writes JSON is named."""
    trace = tmp_path / "t.pftrace"
    trace.write_bytes(b"\x0a\x10\x08\x01" * 100)
    result = run(trace)
    assert (result.exit_code, "export_chrome_trace" in result.stderr) == (1, True)


def test_an_export_of_nsys_says_that_it_has_no_sizes(tmp_path: Path) -> None:
    """Its kernels have no operator, so that none has a floor, whatever the GPU."""
    document = data_of(write_export(tmp_path / "t.sqlite", [Launched("own", 0, 10)]))
    assert document["notes"] == [
        "the timeline holds no sizes of operators, so that no kernel has a floor: an nsys export has none"
    ]
