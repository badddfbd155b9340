from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from support import shell
from support.damage import certain_damage, flipped_copies
from support.ncu_rep_writer import KernelSpec, ReportSpec, SessionSpec, encode_report, write_report
from support.packing import pack

from rooflens.analyzing import analyze_store
from rooflens.cli.group import main
from rooflens.collect.ranks import NO_COMMUNICATION
from rooflens.ingest.reports.inputs import has_name_of_report
from rooflens.ingest.reports.unpacking import sidecar
from rooflens.ingest.reports.unprofiled import write_unprofiled
from rooflens.model.store.dataset import Store
from rooflens.model.unprofiled import GapsAfter, LaunchCount, Unprofiled

SCHEMA = json.loads(files("rooflens.report").joinpath("analysis.schema.json").read_text(encoding="utf-8"))
KERNEL = KernelSpec("kernel(float *)", {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 8})


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Write a small report."""
    return write_report(tmp_path / "one.ncu-rep", ReportSpec([KERNEL]))


def test_json_follows_its_schema(fixtures: Path) -> None:
    """The JSON of every stored report is valid against the shipped schema."""
    result = run("analyze", fixtures, "--format", "json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    assert result.exit_code == 0
    assert len(document["kernels"]) >= 23


def test_json_goes_to_stdout_alone(fixtures: Path) -> None:
    """Messages go to stderr, so that stdout parses."""
    result = run("analyze", fixtures, "--format", "json")
    json.loads(result.stdout)
    assert "skipped" in result.stderr


def test_a_damaged_report_is_named_and_the_others_are_analyzed(report: Path) -> None:
    """With a bad file among good ones, the good kernels are shown, the bad file is named, and the exit code is 1."""
    (report.parent / "bad.ncu-rep").write_bytes(report.read_bytes()[:-1])
    result = run("analyze", report.parent, "--format", "json")
    assert result.exit_code == 1
    assert len(json.loads(result.stdout)["kernels"]) == 1
    assert "error: " in result.stderr
    assert "bad.ncu-rep: truncated" in result.stderr
    assert "\nhint: " in result.stderr


def test_a_missing_file_is_an_error_with_a_hint() -> None:
    """A missing path gives one error line, a hint and exit code 1."""
    result = run("analyze", "nowhere.ncu-rep")
    assert result.exit_code == 1
    assert result.stderr == "error: `nowhere.ncu-rep` does not exist\n\nhint: give a report file, or a folder of them\n"


@pytest.mark.parametrize("arguments", [("analyze",), ("ingest", "--store", "s"), ("analyze", "x", "--store", "s")])
def test_wrong_usage_exits_with_two(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No report, or two kinds of input together, is wrong usage."""
    monkeypatch.chdir(tmp_path)
    assert run(*arguments).exit_code == 2


def test_ingest_then_analyze_from_the_store(report: Path, tmp_path: Path) -> None:
    """A store gives the same analysis as its report."""
    store = tmp_path / "store"
    ingested = run("ingest", report, "--store", store)
    assert ingested.exit_code == 0
    assert ingested.stderr.splitlines()[-1] == f"wrote {store}"
    direct, stored = run("analyze", report, "--format", "json"), run("analyze", "--store", store, "--format", "json")
    assert json.loads(stored.stdout) == json.loads(direct.stdout)
    assert (store / "roofline").is_dir()


@pytest.mark.parametrize("style", ["json", "md"])
def test_a_compressed_report_says_the_same_as_the_plain_one(fixtures: Path, tmp_path: Path, style: str) -> None:
    """A compressed report gives the same output, except for its name."""
    plain = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    file = pack(plain, tmp_path / "attention.synthetic.ncu-repz")
    written, expected = (run("report", path, "-o", "-", "--format", style).stdout for path in (file, plain))
    assert written.replace(str(file), str(plain)).replace(file.name, plain.name) == expected
    assert len(expected) > 1000


def test_the_page_is_written_and_kept(report: Path, tmp_path: Path) -> None:
    """The page is a complete file; an existing file is kept unless forced."""
    page = tmp_path / "page.html"
    assert run("report", report, "-o", page).stderr.splitlines()[-1] == f"wrote {page}"
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    page.write_text("mine")
    refused = run("report", report, "-o", page)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert page.read_text() == "mine"
    assert run("report", report, "-o", page, "--force").exit_code == 0
    assert page.read_text(encoding="utf-8") != "mine"


def test_a_report_is_never_written_over(report: Path) -> None:
    """A page under a report's name is refused, forced or not."""
    before = report.read_bytes()
    refused = run("report", report, "-o", report, "--force")
    assert refused.exit_code == 2
    assert report.read_bytes() == before


def test_nothing_read_writes_no_page(tmp_path: Path) -> None:
    """If no report could be read, neither page nor table is written."""
    bad, page = tmp_path / "bad.ncu-rep", tmp_path / "page.html"
    bad.write_bytes(b"no report")
    result = run("report", bad, "-o", page)
    assert result.exit_code == 1
    assert not page.exists()
    assert run("analyze", bad).stdout == ""


def test_metrics_lists_names_and_passes_without_a_gpu() -> None:
    """`metrics --names` prints bare names, one per line; its table has the passes counted by NVIDIA's scheduler."""
    names = run("metrics", "--chip", "gh100", "--names").stdout.splitlines()
    assert "dram__bytes.sum" in names
    assert run("metrics", "--chip", "9.0", "--names").stdout.splitlines() == names
    assert "3 hardware passes" in run("metrics", "--chip", "gh100").stderr
    assert run("metrics", "--chip", "voodoo2").exit_code in {1, 2}


def test_metrics_says_what_findings_are_told_from() -> None:
    """`--findings` has a line for each way to a finding, with the tier that collects it."""
    lines = run("metrics", "--chip", "gh100", "--findings").stdout.splitlines()
    assert any(
        line.split() == ["partition_imbalance", "l2_cycles_active_avg", "+", "l2_cycles_active_max", "standard"]
        for line in lines
    )
    assert any(line.split() == ["stalls", "+", "issue_active_per_cycle", "standard"] for line in lines)


def test_metrics_says_what_a_report_cannot_tell(tmp_path: Path) -> None:
    """`--report --all` lists the findings that lack counters in a report, without needing a chip."""
    kernel = KernelSpec("kernel(float *)", {"gpu__time_duration.sum": 1e6})
    path = write_report(tmp_path / "bare.ncu-rep", ReportSpec([kernel]))
    said = run("metrics", "--report", path, "--all")
    assert said.exit_code == 0
    assert "thread_divergence" in said.stdout
    assert "1 of 1" in said.stdout
    assert "short_kernel" not in said.stdout
    assert "`--gpu NAME` or `--chip CHIP` says what to collect" in said.stderr


def test_metrics_says_what_a_list_gave(tmp_path: Path) -> None:
    """`--report` counts quantities and names unread metrics; `--all` names each quantity with its metric."""
    stored = {
        "gpu__time_duration.sum": 1e6,
        "smsp__warps_issue_stalled_barrier.sum": 30.0,
        "smsp__warps_active.sum": 100.0,
        "sm__my_own.sum": 1.0,
    }
    path = write_report(tmp_path / "list.ncu-rep", ReportSpec([KernelSpec("kernel(float *)", stored)]))
    said = run("metrics", "--report", path, "--chip", "gh100").stdout
    assert "1 kernel, 2 quantities read" in said
    assert "1 metric not understood: sm__my_own.sum\n" in said
    listed = run("metrics", "--report", path, "--chip", "gh100", "--all").stdout
    assert re.search(r"stall_barrier_share +smsp__warps_issue_stalled_barrier\.sum / smsp__warps_active\.sum", listed)
    everything = write_report(
        tmp_path / "one.ncu-rep", ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1e6})])
    )
    assert "every metric that was asked for is understood" in run("metrics", "--report", everything).stdout


def test_metrics_writes_the_command_of_ncu_that_collects_what_is_missing(tmp_path: Path) -> None:
    """A report with the metrics of the suggested command shows the promised findings."""
    path = write_report(tmp_path / "bare.ncu-rep", ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1e6})]))
    said = run("metrics", "--report", path, "--chip", "ga100").stdout
    [command] = [shlex.split(line) for line in said.splitlines() if line.startswith("ncu ")]
    assert command[:2] == ["ncu", "--metrics"]
    assert command[3:] == ["--kernel-name=k", "--launch-count=1", "-o", "missing", "./program"]
    names = command[2].split(",")
    assert {"dram__bytes.sum", "group:smsp__pcsamp_warp_stall_reasons"} <= {*names}
    assert "gpu__time_duration.sum" not in names
    more = dict.fromkeys((name for name in names if ":" not in name and "__" in name), 1.0)
    again = write_report(
        tmp_path / "more.ncu-rep", ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1e6, **more})])
    )
    left = run("metrics", "--report", again, "--chip", "ga100").stdout
    assert "partition_imbalance" in said
    assert "partition_imbalance" not in left
    assert "dram__bytes.sum" not in left


def test_metrics_of_an_export_take_the_gpu_that_it_does_not_name(tmp_path: Path) -> None:
    """`--gpu` means the same as in `analyze`: it gives the chip whose missing metrics are listed."""
    path = tmp_path / "export.csv"
    path.write_text('"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","k","1000"\n', encoding="utf-8")
    without, with_gpu = run("metrics", "--report", path), run("metrics", "--report", path, "--gpu", "a100-pcie-40gb")
    assert (without.exit_code, with_gpu.exit_code) == (1, 0)
    assert "hint: name it with --gpu" in without.stderr
    assert "ncu --metrics" in with_gpu.stdout


@pytest.mark.parametrize(
    "name", ["Hyper-Spec-M__profile", "llm.c__adamw_coalsecing_shared", "GPU_workshop__MW_Baseline"]
)
def test_metrics_of_a_report_fit_a_screen(name: str, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a report lacks, and how to collect it, fits into 40 lines of 80 columns."""
    shell.widen(monkeypatch, 80)
    said = run("metrics", "--report", fixtures / f"published/{name}.ncu-rep").stdout
    assert said.count("\n") <= 40


def test_metrics_of_a_report_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """For a file without kernels nothing is printed, and the exit code is 1."""
    path = tmp_path / "empty.csv"
    path.write_text("", encoding="utf-8")
    said = run("metrics", "--report", path)
    assert (said.exit_code, said.stdout) == (1, "")
    assert "the file is empty" in said.stderr


def test_metrics_needs_a_chip_or_a_report() -> None:
    """Without chip and report, `metrics` says what to give, with exit code 2."""
    said = run("metrics")
    assert said.exit_code == 2
    assert "--chip is missing" in said.stderr


def test_workloads_lists_them_and_their_cases() -> None:
    """`workloads` lists all bundled workloads, and a workload's cases with what they must compute and move."""
    listed = run("workloads").stdout
    assert all(name in listed for name in ("attention", "saxpy", "gemm_ladder"))
    assert "537 M" in run("workloads", "saxpy").stdout
    assert run("workloads", "nonesuch").exit_code == 2


def test_gaps_are_said_once_of_the_program(report: Path, tmp_path: Path) -> None:
    """Gaps in half of the un-profiled run do not make kernels overhead-bound; every output mentions them once."""
    gaps = (GapsAfter("evil<\x1b[31mb>", 3, 400_000), GapsAfter(None, 1, 100_000))
    found = Unprofiled(wall_ns=1_000_000, kernel_ns=500_000, launches=10, source="nsys", gaps_after=gaps)
    before = json.loads(run("analyze", report, "--format", "json").stdout)
    write_unprofiled(report, found)
    document = json.loads(run("analyze", report, "--format", "json").stdout)
    assert before["programs"] == []
    assert [kernel["verdict"]["bound"] for kernel in document["kernels"]] == [
        kernel["verdict"]["bound"] for kernel in before["kernels"]
    ]
    (program,) = document["programs"]
    assert (program["gap_ns"], program["gap_share"], program["measured_by"]) == (500_000, 0.5, "nsys")
    assert program["gaps_after"][1] == {"kernel": None, "count": 1, "gap_ns": 100_000}
    said = "no kernel ran for 500 \u00b5s of 1.00 ms (50 %)"
    terminal = run("analyze", report).stderr
    assert terminal.count(said) == 1
    assert "\x1b" not in terminal
    page = tmp_path / "page.html"
    run("report", report, "-o", page)
    markdown = run("report", report, "--format", "md", "-o", "-").stdout
    assert page.read_text(encoding="utf-8").count("no kernel ran for") == 1
    assert markdown.count(said) == 1
    assert "evil<" not in page.read_text(encoding="utf-8").partition("no kernel ran for")[2][:300]


def test_the_store_keeps_the_unprofiled_run(report: Path, tmp_path: Path) -> None:
    """An un-profiled run present at ingest is used from the store, wherever the report has gone since."""
    store, counts = tmp_path / "store", (LaunchCount("k", (1, 2, 3), (4, 5, 6), 9, 40, 2),)
    run("ingest", report, "--store", store)
    assert json.loads(run("analyze", "--store", store, "--format", "json").stdout)["programs"] == []
    found = Unprofiled(1_000_000, 500_000, 10, "nsys", 1, counts, (GapsAfter(None, 2, 7), GapsAfter("k", 1, 3)))
    beside = write_unprofiled(report, found)
    run("ingest", report, "--store", store)
    beside.unlink()
    (analyzed,) = analyze_store(store).reports
    assert analyzed.unprofiled == found


def test_a_damaged_unprofiled_run_is_named_when_ingested(report: Path, tmp_path: Path) -> None:
    """A damaged un-profiled run is left out with a warning and a hint; its report is stored."""
    sidecar(report).write_text("{}")
    said = run("ingest", report, "--store", tmp_path / "store")
    assert said.exit_code == 0
    assert "not a record of an un-profiled run" in said.stderr
    ((stored,), _) = Store(tmp_path / "store").runs()
    assert "unprofiled" not in stored.files


def test_launch_counts_weight_the_time(tmp_path: Path) -> None:
    """A kernel profiled once and launched 9 times counts with 9 times its time, in table and page."""
    shape = {"launch__grid_dim_x": 8, "launch__grid_dim_y": 1, "launch__grid_dim_z": 1}
    shape |= {f"launch__block_dim_{axis}": size for axis, size in zip("xyz", (128, 1, 1), strict=True)}
    kernels = [KernelSpec(f"{name}(int)", {"gpu__time_duration.sum": 1e6, **shape}) for name in ("often", "once")]
    report = write_report(tmp_path / "weighted.ncu-rep", ReportSpec(kernels))
    counts = (LaunchCount("often", (8, 1, 1), (128, 1, 1), 9), LaunchCount("once", (8, 1, 1), (128, 1, 1), 1))
    write_unprofiled(report, Unprofiled(wall_ns=1, launch_counts=counts))
    table = run("analyze", report).stdout
    assert "2 kernels, 10 launches, 10.0 ms of GPU time" in table
    assert "often x9  9.00 ms   90 %" in table


@pytest.mark.parametrize(
    ("options", "is_said"),
    [
        ("--filter-mode per-launch-config --launch-count 1", True),
        ("--filter-mode per-launch-config --kernel-id :::1", True),
        (f"--filter-mode per-launch-config --kernel-id ::{NO_COMMUNICATION}:1", True),
        ("--filter-mode per-launch-config --kernel-id ::regex:^(often|x)$:1", False),
        ("--filter-mode per-launch-config --nvtx-include step --launch-count 1", False),
        ("--kernel-name often --filter-mode per-launch-config --launch-count 1", False),
        ("--launch-count 200", False),
    ],
)
def test_kernels_that_ran_and_are_not_in_the_report_are_told(tmp_path: Path, options: str, is_said: bool) -> None:  # noqa: FBT001 - a table
    """Kernels that nsys saw but the report lacks are named as plain text, if every distinct launch was wanted."""
    kernel = KernelSpec("often(int)", {"gpu__time_duration.sum": 1e6})
    session = SessionSpec(command_line=f"ncu {options} ./train")
    report = write_report(tmp_path / "some.ncu-rep", ReportSpec([kernel], session))
    counts = (
        LaunchCount("gone\x1b[31m", (8, 1, 1), (128, 1, 1), 9),
        LaunchCount("gone\x1b[31m", (9, 1, 1), (1, 1, 1), 1),
        LaunchCount("ncclDevKernel_AllReduce", (9, 1, 1), (1, 1, 1), 1),
    )
    write_unprofiled(report, Unprofiled(wall_ns=1, launch_counts=counts))
    said = run("analyze", report).stderr
    assert ("launches of 1 kernel ran but are not in the report: gone?[31m; `--launch-count N`" in said) == is_said


def test_thresholds_can_be_overridden(report: Path, tmp_path: Path) -> None:
    """A file of thresholds changes the verdict; an unknown name in it is refused."""
    file = tmp_path / "limits.toml"
    file.write_text("[thresholds]\noverhead_duration_ns = 1\n")
    assert run("analyze", report, "--thresholds", file).exit_code == 0
    file.write_text("[thresholds]\nunheard_of = 1\n")
    refused = run("analyze", report, "--thresholds", file)
    assert refused.exit_code == 1
    assert "unheard_of" in refused.stderr


def test_a_kernel_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Control characters and markup in a kernel name are plain text in table and Markdown."""
    kernel = KernelSpec("\x1b[31mred[bold]x[/bold]|a(int)", dict(KERNEL.metrics))
    report = write_report(tmp_path / "hostile.ncu-rep", ReportSpec([kernel]))
    table, markdown = run("analyze", report).stdout, run("analyze", report, "--format", "md").stdout
    assert "\x1b" not in table + markdown
    assert "[bold]x[/bold]" in table
    assert "\\|a" in markdown


def test_csv_has_one_line_a_kernel(fixtures: Path) -> None:
    """The CSV has a header, a line per kernel, and empty cells for unmeasured values."""
    lines = run("analyze", fixtures, "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("source,index,name,function,short_name,key,digest,gpu,")
    assert len(lines) > 23


def test_gpus_shows_numbers_with_their_source() -> None:
    """`gpus` lists the GPUs, or one GPU with the source of each number."""
    assert "H200" in run("gpus").stdout
    assert "H100 PCIe" in run("gpus", "h100").stdout
    assert "datasheet" in run("gpus", "NVIDIA H200").stdout.lower()
    assert run("gpus", "Voodoo 2").exit_code == 2


def test_doctor_passes_without_a_gpu() -> None:
    """Everything needed to read reports is ok here; what only collecting needs is a warning."""
    result = run("doctor")
    assert result.exit_code == 0
    assert re.search(r"^ok +report reader ", result.stdout, re.MULTILINE)


def _all_damage(data: bytes) -> dict[str, bytes]:
    return {**dict(certain_damage(data)), **dict(flipped_copies(data, 24, seed=7))}


def _check_damaged(data: bytes, folder: Path, whole: Path) -> None:
    folder.mkdir()
    damaged = _all_damage(data)
    assert len(damaged) >= 40
    for name, content in damaged.items():
        (folder / f"{name}.ncu-rep").write_bytes(content)
    good = len(json.loads(run("analyze", whole, "--format", "json").stdout)["kernels"])
    result = run("analyze", folder, whole, "--format", "json")
    kernels = json.loads(result.stdout)["kernels"]
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    accepted = {kernel["source"] for kernel in kernels} - {str(whole)}
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert sum(kernel["source"] == str(whole) for kernel in kernels) == good
    named = {line.removeprefix("error: ").partition(".ncu-rep: ")[0] + ".ncu-rep" for line in errors}
    assert named | accepted == {str(folder / f"{name}.ncu-rep") for name in damaged}  # in both: a part of it is lost
    assert len(errors) >= len(dict(certain_damage(data)))


def test_damaged_copies_never_end_the_run(tmp_path: Path) -> None:
    """Each of over 40 damaged copies gives an error or kernels, never a traceback; the intact report is complete."""
    kernels = [KernelSpec(f"kernel_{number}(float *)", dict(KERNEL.metrics)) for number in range(4)]
    whole = tmp_path / "whole.ncu-rep"
    whole.write_bytes(encode_report(ReportSpec(kernels)))
    _check_damaged(whole.read_bytes(), tmp_path / "damaged", whole)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["nsight-training__manual_nvtx.ncu-rep", "cudaCode__profile.ncu-rep"])
def test_damaged_copies_of_published_reports(name: str, corpus: Path, tmp_path: Path) -> None:
    """The same holds for published reports."""
    _check_damaged((corpus / name).read_bytes(), tmp_path / "damaged", corpus / name)


@pytest.mark.corpus
def test_the_whole_corpus_as_json(corpus: Path) -> None:
    """Of 250 kernels and one damaged file all kernels are in valid JSON, the file is named, the exit code is 1."""
    result = run("analyze", *filter(has_name_of_report, sorted(corpus.iterdir())), "--format", "json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(document["kernels"]) == 250
    assert result.exit_code == 1
    assert len(errors) == 1
    assert "benchmark_flash_attention__window-512.ncu-rep" in errors[0]


def test_a_terminal_that_is_no_utf8_gets_its_table(fixtures: Path) -> None:
    """If stdout is ASCII only, other characters are replaced, and the table is printed."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "rooflens", "analyze", str(fixtures)]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)  # noqa: S603 - ours
    assert b"verdict" in done.stdout
    assert b"Traceback" not in done.stderr
