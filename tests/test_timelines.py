"""What a timeline changes: ranks, times, remarks and errors, in every output that accepts one."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from support.ncu_rep_writer import KernelSpec, MetricValue, ReportSpec, write_report
from support.timelines import Launched, write_export

import rooflens as rl
from rooflens.analyzing import Basis, analyze_inputs, read_timeline
from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.unprofiled import read_unprofiled, write_unprofiled
from rooflens.model.keys import bare_name

GPU = "NVIDIA A100-SXM4-40GB"


def run(*arguments: object) -> Result:
    """Run a command, whatever its exit code."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def kernel(name: str, time_ns: float, blocks: int = 8) -> KernelSpec:
    """Write a kernel with a name as ncu writes it."""
    metrics: dict[str, MetricValue] = {
        "gpu__time_duration.sum": time_ns,
        "launch__grid_size": blocks,
        "launch__block_size": 128,
        "device__attribute_display_name": GPU,
    }
    return KernelSpec(name, metrics, grid=(blocks, 1, 1), block=(128, 1, 1))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Write a report in which `rare` takes longest, with a kernel that the program never launches."""
    kernels = [
        kernel("void ns::often<(int)4>(float *)", 2000.0),
        kernel("void rare(float *)", 90_000.0, blocks=1024),
        kernel("never()", 5000.0),
    ]
    return write_report(tmp_path / "made.ncu-rep", ReportSpec(kernels))


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Write a timeline: `often` runs 100 times of 1 us, `rare` once for 50 us, `other` once for 50 us."""
    launches = [Launched("void ns::often<4>(float*)", start, start + 1000) for start in range(0, 200_000, 2000)]
    launches += [Launched("rare(float*)", 200_000, 250_000), Launched("other<1>(int)", 250_000, 300_000, stream=8)]
    ranges = [("train", 0, 190_000, 1, 59)]
    return write_export(tmp_path / "trace.sqlite", launches, ranges=ranges)


def by_name(kernels: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the kernels of a JSON document by name."""
    return {one["name"]: one for one in kernels}


def test_kernels_count_by_what_they_cost_in_the_program(report: Path, export: Path) -> None:
    """Launches, times, shares and origin come from the timeline; a kernel that it never launched counts nothing."""
    without = json.loads(run("analyze", report, "--format", "json").stdout)
    document = json.loads(run("analyze", report, "--timeline", export, "--format", "json").stdout)
    found = by_name(document["kernels"])
    assert [one["in_program"] for one in without["kernels"]] == [None] * 3
    often = {"time_ns": 1000, "low_ns": 1000, "high_ns": 1000, "total_ns": 100_000, "share": 0.5, "gap_ns": 1000}
    origin = {"nvtx_range": "train", "module": None, "operator": None, "code": None, "streams": [7]}
    assert found["ns::often<(int)4>"]["in_program"] == often | origin
    assert [(one["launches"], one["gpu_time_ns"]) for one in document["kernels"]] == [(100, 1e5), (1, 5e4), (0, 0)]
    (program,) = document["programs"]
    assert (program["measured_by"], program["wall_ns"], program["gap_ns"]) == ("nsys", 300_000, 100_000)
    table = run("analyze", report, "--timeline", export, "--columns", "time_share,in_program_time_ns,duration_ns")
    assert [line.split() for line in table.stdout.splitlines()[2:5]] == [
        ["often", "x100", "67", "%", "1.00", "\u00b5s", "2.00", "\u00b5s"],
        ["rare", "33", "%", "50.0", "\u00b5s", "90.0", "\u00b5s"],
        ["never", "0", "%", "-", "5.00", "\u00b5s"],
    ]


def test_what_does_not_match_is_said(report: Path, export: Path) -> None:
    """Kernels without a report are named with their share and an option that profiles them; the rest is counted."""
    said = run("analyze", report, "--timeline", export).stderr
    assert (
        f"warning: {export}: 1 kernel with 25 % of the program's kernel time is in no report: other<1> (25 %); "
        "`--kernel other` profiles them" in said
    )
    assert f"note: {export}: it has no launch of 1 profile of the 3" in said


def test_a_timeline_of_another_program_is_an_error(report: Path, tmp_path: Path) -> None:
    """If no kernel matches, both sides' kernels are named."""
    export = write_export(tmp_path / "x.sqlite", [Launched("softmax<float>(float*)", 0, 10)])
    done = run("analyze", report, "--timeline", export)
    assert done.exit_code == 1
    assert "error: no kernel of the timeline" in done.stderr
    assert "it has `softmax<float>`; they have `ns::often<4>`, `rare`, `never`" in done.stderr
    assert "hint: " in done.stderr
    with pytest.raises(InputError, match="no kernel of the timeline"):
        rl.open(report, timeline=export)


def test_another_gpu_is_said(report: Path, tmp_path: Path) -> None:
    """A timeline from another GPU gives a warning about its times."""
    export = write_export(tmp_path / "x.sqlite", [Launched("rare(float*)", 0, 10)], gpus=("NVIDIA H200",))
    assert f"it was recorded on NVIDIA H200, the report on {GPU}" in run("analyze", report, "--timeline", export).stderr


def test_every_face_takes_a_timeline(report: Path, export: Path, tmp_path: Path) -> None:
    """`explain`, the page, `compare`, the API and CSV agree."""
    explained = run("explain", report, "--timeline", export, "--kernel", "often").stdout
    assert "Without the profiler: 100 launches, 50 % of the program's kernel time, median 1.00 \u00b5s" in explained
    assert "Under ncu 2.00 \u00b5s, 2.0x that" in explained
    assert "Launched in range train" in explained
    page = tmp_path / "page.html"
    assert run("report", report, "--timeline", export, "-o", page).exit_code == 0
    written = page.read_text(encoding="utf-8")
    assert "without the profiler: 100 launches" in written.lower()
    assert "the report&#39;s kernels take 75 %" in written.replace("\u202f", " ").replace("\xa0", " ")
    opened = rl.open(report, timeline=export)
    assert [one.gpu_time_ns for one in opened] == [1e5, 5e4, 0]
    frame = opened.to_pandas()
    assert frame["in_program_share"].tolist()[:2] == [0.5, 0.25]
    assert "in_program_nvtx_range" in run("analyze", report, "--timeline", export, "--format", "csv").stdout
    compared = run("compare", report, report, "--timeline", export, "--timeline", export)
    assert compared.exit_code == 0
    assert "100 \u00b5s" in compared.stdout
    assert run("compare", report, report, "--timeline", export).exit_code == 2


def test_a_store_keeps_what_a_timeline_showed(report: Path, export: Path, tmp_path: Path) -> None:
    """A timeline's figures are stored beside the report like an un-profiled run, and read back from file and store."""
    program = read_timeline(export).program
    write_unprofiled(report, program)
    assert read_unprofiled(report) == program
    assert run("ingest", report, "--store", tmp_path / "store").exit_code == 0
    (file,) = (tmp_path / "store" / "unprofiled").iterdir()
    assert pq.read_table(file).to_pylist()[0]["launch_counts"][0]["nvtx_range"] == "train"
    kept = by_name(json.loads(run("analyze", "--store", tmp_path / "store", "--format", "json").stdout)["kernels"])
    assert kept["ns::often<(int)4>"]["in_program"]["total_ns"] == 100_000
    assert (kept["never"]["launches"], kept["never"]["gpu_time_ns"]) == (1, 5000)


def test_profile_reads_a_timeline_instead_of_tracing(export: Path, gpu_box: Path, tmp_path: Path) -> None:
    """With a timeline the program runs only under ncu, and the timeline's figures are kept beside the report."""
    program = (sys.executable, "-ISc", "open('runs', 'a').write('x')")
    assert run("collect", "--timeline", export, "-o", "x.ncu-rep", "--", *program).exit_code == 0
    assert Path("runs").read_text() == "x"
    assert read_unprofiled(gpu_box / "x.ncu-rep") == read_timeline(export).program
    assert run("collect", "--timeline", tmp_path / "gone", "-o", "y.ncu-rep", "--", *program).exit_code == 1
    assert Path("runs").read_text() == "x"


def test_names_from_a_timeline_are_hostile(report: Path, tmp_path: Path) -> None:
    """Names and ranges can neither steer a terminal nor inject HTML."""
    launches = [Launched("rare(float*)", 10, 20), Launched("evil\x1b[31m<script>alert(1)</script>", 30, 40)]
    export = write_export(tmp_path / "x.sqlite", launches, ranges=[("<b>\x1b[2J", 0, 100, 1, 59)])
    said = run("analyze", report, "--timeline", export)
    assert "\x1b" not in said.stdout + said.stderr
    assert "evil" in said.stderr
    assert "\x1b" not in run("explain", report, "--timeline", export, "--kernel", "rare").stdout
    page = tmp_path / "page.html"
    assert run("report", report, "--timeline", export, "-o", page).exit_code == 0
    written = page.read_text(encoding="utf-8")
    assert "in range &lt;b&gt;" in written
    assert "<script>alert" not in written


@pytest.mark.corpus
def test_a_published_training_step_as_a_script_counts_it(corpus: Path) -> None:
    """Launches, times, busy time and gaps of 1,154 kernels equal a plain count over the JSON."""
    trace = corpus.parent / "outcomes" / "timelines" / "hta_sampled_rank-0.json.gz"
    if not trace.is_file():
        pytest.skip(f"no timeline at {trace}")
    events = [one for one in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if one.get("ph") == "X"]
    kernels = [one for one in events if one.get("cat") == "kernel"]
    times_ns: Counter[str] = Counter()
    for one in kernels:
        times_ns[bare_name(one["name"])] += round(one["dur"] * 1000)
    first = min(one["ts"] for one in kernels)
    last = max(one["ts"] + one["dur"] for one in kernels)
    busy: set[int] = set()
    for one in events:
        if one.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}:  # whole microseconds, in this trace
            busy.update(range(max(one["ts"], first), int(min(one["ts"] + one["dur"], last))))
    program = read_timeline(trace).program
    found: Counter[str] = Counter()
    for entry in program.launch_counts:
        found[entry.name] += entry.total_ns or 0
    assert (program.launches, program.kernels_ns) == (len(kernels), sum(times_ns.values()))
    assert found == times_ns
    assert (program.wall_ns, program.kernel_ns) == (round(last - first) * 1000, len(busy) * 1000)


@pytest.mark.corpus
def test_a_published_pair(corpus: Path) -> None:
    """A kernel with 25.5 us alone and 50.0 us under ncu agrees with the export's own table, with the reason."""
    folder = corpus.parent / "outcomes" / "timelines"
    if not folder.is_dir():
        pytest.skip(f"no timelines at {folder}")
    export, report = folder / "algo64.sqlite", folder / "algo64.ncu-rep"
    with closing(sqlite3.connect(f"file:{export}?mode=ro", uri=True)) as database:
        ((time_ns,),) = database.execute('SELECT "end" - start FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchall()
    found = analyze_inputs(find_inputs([str(report)]), Basis(timeline=read_timeline(export)))
    (analysis,) = found.analyses
    assert analysis.in_program is not None
    assert (analysis.in_program.time_ns, analysis.kernel.duration_ns, analysis.launches) == (time_ns, 49_952, 1)
    assert (analysis.gpu_time_ns, found.remarks) == (25_473, ())
    explained = run("explain", report, "--timeline", export).stdout
    assert "Under ncu 50.0 \u00b5s, 2.0x that: its SM clock was 1.13 GHz there" in explained
    assert "median 25.5 \u00b5s" in explained


def test_a_kernel_that_the_timeline_rounds_to_nothing_is_explained(report: Path, tmp_path: Path) -> None:
    """A kernel whose time a trace rounds to 0 ns causes no division by zero, and the page is drawn."""
    launches = [Launched("rare(float *)", 0, 0), Launched("often<4>(float *)", 9, 9)]
    export = write_export(tmp_path / "zero.sqlite", launches)
    said = run("explain", report, "--timeline", export, "--kernel", "rare")
    assert (said.exit_code, said.exception) == (0, None)
    assert "Under ncu 90.0 \u00b5s" in said.stdout
    assert run("report", report, "--timeline", export, "-o", tmp_path / "page.html").exit_code == 0
