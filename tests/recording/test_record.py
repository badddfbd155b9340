from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path

import click
import home
import judge
import pytest
import record
import slim
import stored
from support import fake_ncu
from support.make_fixtures import MARK
from support.packing import pack
from support.recorded import ENTRY, only

from rooflens.collect import plan as planning
from rooflens.collect.unprofiled import run_program
from rooflens.errors import InputError, UsageError
from rooflens.ingest.reports.unpacking import INCOMPLETE_SUFFIX
from rooflens.workloads.registry import load_workloads

_FIXTURES = Path(__file__).parents[2] / "fixtures"


def manifest(folder: Path) -> dict[str, dict[str, object]]:
    """Read a manifest."""
    return tomllib.loads((folder / "manifest.toml").read_text())


def test_a_recording_has_all_its_provenance(gpu_box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Slimmed report, un-profiled run and manifest entry are written, the report is judged, and all is packed."""
    status = record.main(
        ["--folder", "fx", "--clock-control", "none", "--archive", "out/all.tar.gz", *only("saxpy", "saxpy.n16")]
    )
    printed = capsys.readouterr().out
    assert status == 0, printed
    entry = manifest(gpu_box / "fx")["h200/saxpy.ncu-rep"]
    assert entry.pop("date")
    report = (gpu_box / "fx/h200/saxpy.ncu-rep").read_bytes()
    assert slim.slim(report) == report
    assert entry == {
        "synthetic": True,  # as the simulated report says
        "gpu": "NVIDIA H200",
        "workload": "saxpy",
        "case": "n28",
        "parameters": {"n": 268_435_456},
        "dtype": "fp32",
        "detail": "standard",
        "command": "rooflens collect saxpy --case n28 --detail standard --clock-control none",
        "clock_control": "none",
        "driver": "580.65.06",
        "ncu": "2025.3.1.0",
        "kernels": 3,
        "ncu_passes": 9,
        "wall_ns": 1_000_000,
        "iterations": 20,
        "kernel_ns": 990_000,
        "launches": 20,
        "sm_clock_hz": pytest.approx(1.5e9, rel=0.5),
        "made_by": "fixtures/record.py",
    }
    assert "saxpy n28  memory dram  memory dram  as expected" in printed
    assert printed.splitlines()[-1] == "recorded 2, failed 0, left out 0"
    with tarfile.open("out/all.tar.gz") as archive:
        assert sorted(archive.getnames()) == [
            "h200/saxpy.n16.ncu-rep",
            "h200/saxpy.n16.unprofiled.json",
            "h200/saxpy.ncu-rep",
            "h200/saxpy.unprofiled.json",
            "manifest.toml",
        ]


def test_what_ncu_compressed_is_recorded_plain(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A compressed report is stored unpacked and slimmed, under its name in the manifest."""
    monkeypatch.setenv(fake_ncu.REPORT, str(pack(Path(os.environ[fake_ncu.REPORT]), gpu_box / "packed")))
    monkeypatch.setenv(fake_ncu.PUTS_BEHIND, "z")
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0, capsys.readouterr().out
    assert list(manifest(gpu_box / "fx")) == ["h200/saxpy.ncu-rep"]
    report = gpu_box / "fx/h200/saxpy.ncu-rep"
    assert slim.slim(report.read_bytes()) == report.read_bytes()
    assert sorted(file.name for file in report.parent.iterdir()) == ["saxpy.ncu-rep", "saxpy.unprofiled.json"]


def test_a_failure_costs_only_itself(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What this GPU cannot run is left out, failures are named at the end with exit code 1, the rest is recorded."""
    make_plan = planning.make_plan

    def sometimes(request: planning.Request, *, dry_run: bool) -> planning.Plan:
        if request.target.name == "fma":
            raise ValueError("a bug")
        return make_plan(request, dry_run=dry_run)

    monkeypatch.setattr(record, "make_plan", sometimes)
    assert record.main(["--folder", "fx", *only("attention", "fma", "saxpy")]) == 1
    assert list(manifest(gpu_box / "fx")) == ["h200/saxpy.ncu-rep"]
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "left out: attention: PyTorch is not installed",
        "failed: fma: ValueError: a bug",
        "recorded 1, failed 1, left out 1",
    ]


@pytest.mark.parametrize(("behaviour", "status"), [("permission", 1), ("half", 1)])
def test_what_ncu_cannot_profile_leaves_nothing(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, status: int
) -> None:
    """If ncu fails, only its log is left; a partial report is put aside with the plain run."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    assert record.main(["--folder", "fx", *only("saxpy")]) == status
    left = sorted(path.name for path in (gpu_box / "fx").rglob("*") if path.is_file() and path.stat().st_size)
    part = f"saxpy.ncu-rep{INCOMPLETE_SUFFIX}"
    assert left == [*((part, f"{part}.unprofiled.json") if behaviour == "half" else ()), "saxpy.ncu.log"]


def test_without_a_gpu_nothing_is_recorded(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a GPU, or one that can run any workload, recording ends at once with exit code 3."""
    assert record.main(["--folder", "fx", *only("attention")]) == 3
    monkeypatch.setenv("PATH", str(gpu_box / "cache"))
    monkeypatch.setattr("rooflens.collect.command._INSTALL_PATTERNS", ())
    assert record.main(["--folder", "fx"]) == 3
    assert "error: Nsight Compute's `ncu` was not found" in capsys.readouterr().err


def test_a_second_session_records_what_is_missing(gpu_box: Path) -> None:
    """`--missing` keeps existing recordings, and those of another session stay in the manifest."""
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0
    before = (gpu_box / "fx/h200/saxpy.ncu-rep").stat().st_mtime_ns
    assert record.main(["--folder", "fx", "--missing", *only("saxpy", "fma")]) == 0
    assert (gpu_box / "fx/h200/saxpy.ncu-rep").stat().st_mtime_ns == before
    assert list(manifest(gpu_box / "fx")) == ["h200/fma.ncu-rep", "h200/saxpy.ncu-rep"]


def test_a_compressed_report_that_stays_so_is_recorded_once(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A compressed report that cannot be unpacked is kept, counts to the folder's size, and is not recorded again."""
    monkeypatch.setenv(fake_ncu.REPORT, str(pack(Path(os.environ[fake_ncu.REPORT]), gpu_box / "packed")))
    monkeypatch.setenv(fake_ncu.PUTS_BEHIND, "z")

    def bare(_: Path) -> Path:
        raise InputError("cannot be unpacked")

    monkeypatch.setattr(record, "plain_file", bare)
    monkeypatch.setattr(record, "_show", lambda *_: None)
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0
    (entry,) = stored.read_entries(Path("fx")).values()
    assert entry.path == "h200/saxpy.ncu-repz"
    assert stored.report_at(Path("fx/h200/saxpy.ncu-rep")) == Path("fx/h200/saxpy.ncu-repz")
    capsys.readouterr()
    assert record.main(["--folder", "fx", "--missing", *only("saxpy")]) == 0
    assert "saxpy: left out: it is recorded already" in capsys.readouterr().out
    assert stored.too_large(Path("fx"), [], 1) == []
    other = replace(entry, path="h200/other.ncu-rep")
    Path("fx/h200/other.ncu-rep").write_bytes(b"x" * 100)
    assert stored.too_large(Path("fx"), [other], Path("fx/h200/saxpy.ncu-repz").stat().st_size + 50) == [other]


def test_after_the_budget_nothing_begins(gpu_box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workloads without time left are named and are not failures; the exit code says that there is more to record."""
    assert record.main(["--folder", "fx", "--budget", "0", *only("saxpy")]) == 75
    assert "left out: saxpy: no time was left" in capsys.readouterr().out
    assert not list(gpu_box.rglob("*.ncu-rep"))


@pytest.mark.parametrize("manifest", [None, "", "[[", '["h200/saxpy.ncu-rep"]\nmade_by = "fixtures/record.py"\n'])
@pytest.mark.parametrize("script", ["home", "record"])
def test_a_folder_without_recordings_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, manifest: str | None
) -> None:
    """`--adopt` and `--read` refuse a missing, empty or damaged manifest."""
    if manifest is not None:
        (tmp_path / "manifest.toml").write_text(manifest)
    if script == "home":
        assert home.main([str(tmp_path), "--adopt", "--folder", str(tmp_path / "fixtures")]) == 1
    else:
        assert record.main(["--read", "--folder", str(tmp_path)]) == 1
    error, _, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    assert not (tmp_path / "fixtures").exists()


def test_reports_can_be_read_later(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bare GPU machine records without a reader, and `--read` elsewhere completes the manifest."""
    readers = judge._READERS
    monkeypatch.setattr(judge, "_READERS", ("no_such_reader",))
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0
    assert "`no_such_reader` is not installed" in capsys.readouterr().out
    assert "sm_clock_hz" not in manifest(gpu_box / "fx")["h200/saxpy.ncu-rep"]
    monkeypatch.setattr(judge, "_READERS", readers)
    assert record.main(["--read", "--folder", "fx"]) == 0
    assert "sm_clock_hz" in manifest(gpu_box / "fx")["h200/saxpy.ncu-rep"]


def test_recording_needs_no_third_party() -> None:
    """The scripts, and the doctor and calibration they call, start with only the standard library."""
    code = f"import sys; sys.path.insert(0, {str(_FIXTURES)!r}); import first_light, record, rooflens.collect.doctor"
    code += ", rooflens.model.roofline.calibrations, rooflens.workloads.calibrating; print('fine')"
    assert run_program((sys.executable, "-ISc", code)).stdout == "fine\n"


def test_a_bare_gpu_box_collects_and_calibrates(gpu_box: Path) -> None:
    """Doctor, workloads, collect, calibrate and first light need only the standard library and click."""
    only = gpu_box / "only"
    only.mkdir()
    (only / "click").symlink_to(Path(click.__file__).parent)
    paths = [str(_FIXTURES), str(_FIXTURES.parent), str(only)]

    def run(code: str, *arguments: str) -> str:
        start = f"import sys; sys.path[:0] = {paths}; {code}"
        command = (sys.executable, "-ISc", start, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=gpu_box)  # noqa: S603 - ours
        assert "Python package `" not in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    command = "from rooflens.cli.group import main; main()"
    assert "ncu                 2025.3" in run(command, "doctor")
    assert "attention" in run(command, "workloads")
    assert "compute at tensor bf16" in run(command, "workloads", "gemm")
    run(command, "collect", "saxpy", "-o", "saxpy.ncu-rep")
    assert (gpu_box / "saxpy.ncu-rep").is_file()
    assert "hint: " in run(command, "calibrate")  # the simulated nvcc makes no program that measures
    run("import first_light; sys.exit(first_light.main())", "--out", "home", "--folder", "light", "--stages", "roofs")
    assert (gpu_box / "light" / "roofs" / "roofs.ncu-rep").is_file()


def test_what_is_worth_most_comes_first() -> None:
    """A run that is cut short has attention, gemm, saxpy, fma, the ladder, decoding; each workload occurs once."""
    names = [target.name for target in record.choose(None, all_cases=False)]
    assert names[: len(record.FIRST)] == list(record.FIRST)
    assert sorted(names) == sorted(workload.name for workload in load_workloads())
    cases = record.choose(None, all_cases=True)
    assert [target.name for target in cases[: len(names)]] == names
    assert len({target.name for target in cases}) == len(cases) == sum(len(one.cases) for one in load_workloads())
    with pytest.raises(UsageError):
        record.choose(["nosuch"], all_cases=False)


def test_the_synthetic_part_of_the_manifest_stays(tmp_path: Path) -> None:
    """Recorded entries are placed above the generator's mark, read back unchanged, and replace only themselves."""
    below = f'{MARK}\n["synthetic/x.ncu-rep"]\nsynthetic = true\n'
    (tmp_path / "manifest.toml").write_text(below)
    other = replace(ENTRY, path="h200/fma.ncu-rep", sm_clock_hz=1.98e9, incomplete="stopped after 200 launches")
    stored.write_entries(tmp_path, [ENTRY, other])
    stored.write_entries(tmp_path, stored.read_entries(tmp_path).values())
    assert stored.read_entries(tmp_path) == {other.path: other, ENTRY.path: ENTRY}
    text = (tmp_path / "manifest.toml").read_text()
    assert text.endswith(below)
    assert "synthetic = false" in text.partition(MARK)[0]
    stored.write_entries(tmp_path, [])
    assert (tmp_path / "manifest.toml").read_text() == below


@pytest.mark.parametrize(
    ("name", "folder"),
    [("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"), ("Tesla T4", "tesla-t4"), ("?", "gpu")],
)
def test_a_folder_is_named_after_its_gpu(name: str, folder: str) -> None:
    """The name is suitable for a path: lower case, without spaces and manufacturer."""
    assert stored.slug(name) == folder


def test_an_archive_stays_below_its_limit(tmp_path: Path) -> None:
    """Files are packed by value; one that would not fit is left out and named, and smaller ones after it are packed."""
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(index * index * 7919 % 251 ^ index % 253 for index in range(20_000)))
    small = [tmp_path / name for name in ("first", "last")]
    for file in small:
        file.write_text("x")
    archive = tmp_path / "some.tar.gz"
    assert stored.pack(archive, tmp_path, [small[0], noise, small[1]], 5000) == [noise]
    assert archive.stat().st_size <= 5000
    with tarfile.open(archive) as tar:
        assert tar.getnames() == ["first", "last"]
