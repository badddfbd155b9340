from __future__ import annotations

import json
import sys
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import fake_ncu, fake_nvcc
from support.make_fixtures import MARK

_FIXTURES = Path(__file__).parent.parent / "fixtures"
sys.path.append(str(_FIXTURES))

import first_light  # noqa: E402
import judge  # noqa: E402
import passes  # noqa: E402
import record  # noqa: E402
import stored  # noqa: E402
from judge import Judged, Judgement, truths  # noqa: E402
from stored import Entry  # noqa: E402

from rooflens import collecting  # noqa: E402
from rooflens.errors import EnvironmentMissingError, InputError  # noqa: E402
from rooflens.workloads.registry import load_workloads  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

LINE = {"iterations": 20, "launches": 20, "wall_ns": 1_000_000, "kernel_ns": 990_000}
ENTRY = Entry(
    path="h200/saxpy.ncu-rep",
    gpu="NVIDIA H200",
    workload="saxpy",
    case="n28",
    parameters={"n": 268_435_456},
    dtype="fp32",
    detail="standard",
    command="rooflens collect saxpy --case n28 --detail standard --clock-control none",
    clock_control="none",
    driver="580.65.06",
    ncu="2025.3.1.0",
    date="2025-11-21",
    kernels=1,
    ncu_passes=4,
    wall_ns=1_000_000,
    iterations=20,
    launches=20,
)
GOOD = Judged(
    path=ENTRY.path,
    workload="saxpy",
    case="n28",
    verdict="memory dram",
    expected="memory dram",
    as_expected=True,
    is_whole=True,
    flop={"fp32": 1000.0},
    flop_predicted=1000.0,
    dram_bytes=1050.0,
    dram_bytes_predicted=1000.0,
    sm_clock_hz=1.98e9,
    replay_passes=4,
    is_synthetic=False,
)


@pytest.fixture
def gpu_box(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this machine one with an H200, an ncu and an nvcc, and no PyTorch; return the folder to work in."""
    fake_ncu.install(tmp_path / "bin")
    fake_nvcc.install(tmp_path / "bin", LINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "success")
    monkeypatch.setenv(fake_ncu.REPORT, str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for module in (record, collecting):
        monkeypatch.setattr(module, "require_torch", _no_torch)
    return tmp_path


def _no_torch() -> None:
    raise EnvironmentMissingError("PyTorch is not installed")


def manifest(folder: Path) -> dict[str, dict[str, object]]:
    """Read a manifest."""
    return tomllib.loads((folder / "manifest.toml").read_text())


def only(*names: str) -> tuple[str, ...]:
    """Write the options that record these and no more."""
    return tuple(part for name in names for part in ("--only", name))


def test_a_recording_has_all_its_provenance(gpu_box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Report, un-profiled run and manifest entry are written, the report is judged, and all of it is packed."""
    status = record.main(
        ["--folder", "fx", "--clock-control", "none", "--archive", "out/all.tar.gz", *only("saxpy", "saxpy.n16")]
    )
    printed = capsys.readouterr().out
    assert status == 0, printed
    entry = manifest(gpu_box / "fx")["h200/saxpy.ncu-rep"]
    assert entry.pop("date")
    assert entry == {
        "synthetic": True,  # the stand-in's report says so itself
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


def test_a_failure_costs_only_itself(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What this GPU cannot run is left out, what fails is named at the end with exit code 1, the rest is recorded."""
    make_plan = collecting.make_plan

    def sometimes(request: collecting.Request, *, dry_run: bool) -> collecting.Plan:
        if request.target.name == "fma":
            raise ValueError("a bug")
        return make_plan(request, dry_run=dry_run)

    monkeypatch.setattr(collecting, "make_plan", sometimes)
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
    """A failure of ncu leaves no report and no entry."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    assert record.main(["--folder", "fx", *only("saxpy")]) == status
    assert [path for path in (gpu_box / "fx").rglob("*") if path.is_file() and path.stat().st_size] == []


def test_without_a_gpu_nothing_is_recorded(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine without GPU is said at once, with exit code 3; so is one that can run none of the workloads."""
    assert record.main(["--folder", "fx", *only("attention")]) == 3
    monkeypatch.setenv("PATH", str(gpu_box / "cache"))
    monkeypatch.setattr("rooflens.ingest.ncu._INSTALL_PATTERNS", ())
    assert record.main(["--folder", "fx"]) == 3
    assert "error: Nsight Compute's `ncu` was not found" in capsys.readouterr().err


def test_a_second_session_records_what_is_missing(gpu_box: Path) -> None:
    """`--missing` keeps what is there; what another session recorded stays in the manifest."""
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0
    before = (gpu_box / "fx/h200/saxpy.ncu-rep").stat().st_mtime_ns
    assert record.main(["--folder", "fx", "--missing", *only("saxpy", "fma")]) == 0
    assert (gpu_box / "fx/h200/saxpy.ncu-rep").stat().st_mtime_ns == before
    assert list(manifest(gpu_box / "fx")) == ["h200/fma.ncu-rep", "h200/saxpy.ncu-rep"]


def test_after_the_budget_nothing_begins(gpu_box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What there was no time for is named and is no failure."""
    assert record.main(["--folder", "fx", "--budget", "0", *only("saxpy")]) == 3
    assert "left out: saxpy: no time was left" in capsys.readouterr().out
    assert not list(gpu_box.rglob("*.ncu-rep"))


def test_the_largest_go_where_there_is_no_room(gpu_box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All fixtures together stay below the limit: reports of this session that do not fit are deleted and said."""
    size = len((_FIXTURES / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep").read_bytes())
    arguments = ["--folder", "fx", "--limit-bytes", str(round(1.9 * size)), *only("saxpy", "fma")]
    assert record.main(arguments) == 0
    assert len(manifest(gpu_box / "fx")) == 1
    assert len(list(gpu_box.glob("fx/*/*.ncu-rep"))) == 1
    assert "h200/fma.ncu-rep: dropped: " in capsys.readouterr().out


def test_recordings_of_another_folder_are_taken_over(gpu_box: Path) -> None:
    """`--adopt` copies reports and entries to the fixtures, and needs no GPU."""
    assert record.main(["--folder", "away", *only("saxpy")]) == 0
    assert record.main(["--adopt", "away", "--folder", "home"]) == 0
    assert manifest(gpu_box / "home") == manifest(gpu_box / "away")
    assert (gpu_box / "home/h200/saxpy.unprofiled.json").exists()


def test_reports_can_be_read_later(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bare GPU box records without a reader; `--read` elsewhere completes the manifest."""
    readers = judge._READERS
    monkeypatch.setattr(judge, "_READERS", ("no_such_reader",))
    assert record.main(["--folder", "fx", *only("saxpy")]) == 0
    assert "`no_such_reader` is not installed" in capsys.readouterr().out
    assert "sm_clock_hz" not in manifest(gpu_box / "fx")["h200/saxpy.ncu-rep"]
    monkeypatch.setattr(judge, "_READERS", readers)
    assert record.main(["--read", "--folder", "fx"]) == 0
    assert "sm_clock_hz" in manifest(gpu_box / "fx")["h200/saxpy.ncu-rep"]


def test_recording_needs_no_third_party() -> None:
    """The scripts start where only the standard library is, and so do the doctor and the calibration they call."""
    code = f"import sys; sys.path.insert(0, {str(_FIXTURES)!r}); import first_light, record, rooflens.doctor"
    code += ", rooflens.model.calibrations, rooflens.workloads.calibrating; print('fine')"
    assert record.collecting.run_program((sys.executable, "-ISc", code)).stdout == "fine\n"


def test_the_five_of_most_worth_come_first() -> None:
    """A run that is cut short has attention, gemm, saxpy, fma and the ladder; every workload is there once."""
    names = [target.name for target in record.choose(None, all_cases=False)]
    assert names[:5] == list(record.FIRST)
    assert sorted(names) == sorted(workload.name for workload in load_workloads())
    cases = record.choose(None, all_cases=True)
    assert len({target.name for target in cases}) == len(cases) == sum(len(one.cases) for one in load_workloads())
    with pytest.raises(InputError):
        record.choose(["nosuch"], all_cases=False)


def test_the_synthetic_part_of_the_manifest_stays(tmp_path: Path) -> None:
    """Recorded entries go above the generator's mark, are read back as they were, and replace themselves only."""
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
    """The name is one for a path: lower case, no spaces, the maker left out."""
    assert stored.slug(name) == folder


def test_an_archive_stays_below_its_limit(tmp_path: Path) -> None:
    """Files go in by worth; one that would not fit is left out and named, and smaller ones behind it still go in."""
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


@pytest.mark.parametrize(
    ("change", "states"),
    [
        ({}, {"verdict": "pass", "FLOP": "pass", "HBM": "pass"}),
        ({"flop": {"fp32": 1002.0}}, {"FLOP": "fail"}),
        ({"flop": {"fp32": 1000.9}}, {"FLOP": "pass"}),
        ({"flop": {}}, {"FLOP": "not measured"}),
        ({"flop": {"tensor_bf16": 1000.0}}, {"FLOP": "not measured"}),
        ({"dram_bytes": 1101.0}, {"HBM": "fail"}),
        ({"is_whole": False}, {"FLOP": "not measured", "HBM": "not measured"}),
        ({"as_expected": False}, {"verdict": "fail"}),
        ({"case": "n16"}, {"FLOP": "pass"}),
        ({"workload": "attention", "case": "fused", "flop": {"tensor_bf16": 1000.0, "fp32": 90.0}}, {"FLOP": "pass"}),
    ],
)
def test_what_must_be_so(change: Mapping[str, object], states: Mapping[str, str]) -> None:
    """FLOPs within 0.1 %, bytes of saxpy within 10 %, the verdict as expected; a lower bound proves nothing."""
    found = {truth.name.split()[0]: truth.state for truth in truths(Judgement([replace(GOOD, **change)]))}
    assert {name: found[name] for name in states} == dict(states)
    assert ("HBM" in found) == (not {"case", "workload"} & change.keys())


def test_causal_attention_has_no_exact_flops() -> None:
    """Its kernels work in tiles: only the verdict is checked."""
    causal = replace(GOOD, workload="attention", case="fused_causal")
    assert [truth.name for truth in truths(Judgement([causal], {"x": "damaged"}))] == [
        "verdict of attention fused_causal",
        "report x",
    ]


def test_the_table_marks_what_was_not_expected() -> None:
    """Each recording has a line; lower bounds and missing numbers are marked."""
    odd = replace(GOOD, as_expected=False, verdict="latency", is_whole=False, dram_bytes=None)
    lines = judge.table(Judgement([GOOD, odd])).splitlines()
    assert " ".join(lines[1].split()) == "saxpy n28 memory dram memory dram as expected 1.0000 1.0500"
    assert " ".join(lines[2].split()) == "saxpy n28 latency memory dram NOT as expected >= 1.0000 -"


@pytest.mark.parametrize(
    ("verdict", "expected", "agree"),
    [
        (("compute", "tensor_bf16_wgmma"), ("compute", "tensor_bf16"), True),
        (("compute", "fp32"), ("compute", "fp32"), True),
        (("latency", None), ("latency", None), True),
        (("memory", "l2"), ("memory", "dram"), False),
        (("memory", "l2"), ("memory", "l"), False),
        (("latency", None), ("memory", "dram"), False),
    ],
)
def test_verdicts_agree(verdict: tuple[str, str | None], expected: tuple[str, str | None], agree: bool) -> None:  # noqa: FBT001 - a table
    """Class and resource must be the same; the expected pipe may be split by instruction."""
    assert judge._agree(verdict, expected) == agree


def test_every_way_to_ask_is_measured(gpu_box: Path) -> None:
    """Our tiers, NVIDIA's sets and both switches are run on one kernel, with passes and time of each."""
    costs = passes.measure(gpu_box / "passes", workloads=("saxpy", "attention"))
    assert [cost.ask for cost in costs] == [ask.name for ask in passes.ASKS] * 2
    assert {cost.passes for cost in costs if cost.workload == "saxpy"} == {9}
    assert {cost.error for cost in costs if cost.workload == "attention"} == {"PyTorch is not installed"}
    assert passes.read_costs(gpu_box / "passes") == costs
    assert len(list((gpu_box / "passes").glob("saxpy.*.ncu-rep"))) == len(passes.ASKS)


def test_a_set_takes_the_place_of_the_counters(gpu_box: Path) -> None:
    """NVIDIA's sets and ncu's switches stand in the command line, and nothing of a tier beside a set."""
    request = collecting.Request(collecting.workload_target("saxpy", None), _collection(gpu_box), "deep")
    plan = collecting.make_plan(request, dry_run=True)
    asks = {ask.name: ask for ask in passes.ASKS}
    argv = passes.argv_for(plan, asks["set_full"], Path("x.log"))
    assert argv[argv.index("--set") + 1] == "full"
    assert not {"--metrics", "--section"} & set(argv)
    argv = passes.argv_for(plan, asks["standard_one_sampling_pass"], Path("x.log"))
    assert argv[1:3] == ("--warp-sampling-max-passes", "1")


def _collection(folder: Path) -> collecting.Collection:
    return passes.Collection(program=(), output=folder / "x.ncu-rep", clock_control="none")


def test_a_failing_ask_is_told(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ncu complains of stands beside the missing count."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "permission")
    monkeypatch.setattr(passes, "ASKS", passes.ASKS[:1])
    (cost,) = passes.measure(gpu_box / "passes", workloads=("saxpy",))
    assert cost.passes is None
    assert cost.error.startswith("ERR_NVGPUCTRPERM")


def test_first_light_brings_home_what_it_can(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails and one that hangs stop nothing; one folder, one results.json and one archive hold the rest."""
    output = gpu_box / "out/first_light"
    doctor, record_first, *_, check = first_light.steps(output)
    broken = first_light.Step("broken", 5, ("-c", "raise SystemExit(7)"))
    hangs = first_light.Step("hangs", 0.3, ("-c", "import time; time.sleep(60)"))
    late = first_light.Step("late", 5, ("-c", "pass"), grace_s=1e9)
    recorder = replace(record_first, arguments=(*record_first.arguments[:5], *only("saxpy")))
    monkeypatch.setattr(first_light, "steps", lambda _: (broken, hangs, late, doctor, recorder, check))
    assert first_light.main([]) == 1
    results = json.loads((output / "results.json").read_text())
    assert {step["name"]: step["state"] for step in results["steps"]} == {
        "broken": "failed with status 7",
        "hangs": "ended: over its time",
        "late": "skipped: no time was left",
        "doctor": "ok",
        "record_first": "ok",
        "check": "ok",
    }
    assert [entry["path"] for entry in results["recorded"]] == ["h200/saxpy.ncu-rep"]
    assert [one["state"] for one in results["truths"]] == ["pass", "pass", "pass"]
    with tarfile.open(gpu_box / "out/first_light.tar.gz") as archive:
        names = set(archive.getnames())
    assert {f"first_light/{name}" for name in ("results.json", "doctor.json", "fixtures/h200/saxpy.ncu-rep")} <= names


def test_first_light_goes_on_and_is_judged_elsewhere(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--steps` adds to an earlier run's folder; `--check` judges what a machine without a reader left."""
    output = gpu_box / "light"
    steps = first_light.steps(output)
    recorder = replace(steps[1], arguments=(*steps[1].arguments[:5], *only("saxpy")))
    nothing = first_light.Step("nothing", 5, ("-c", "pass"))
    monkeypatch.setattr(first_light, "steps", lambda _: (recorder, nothing))
    assert first_light.main(["--output", "light", "--steps", "record_first"]) == 1
    assert first_light.main(["--output", "light", "--steps", "nothing"]) == 1
    assert "not judged" in capsys.readouterr().out
    assert first_light.main(["--check", "light"]) == 0
    results = json.loads((output / "results.json").read_text())
    assert [step["name"] for step in results["steps"]] == ["record_first", "nothing"]
    assert results["is_checked"]


def test_nothing_checked_is_not_good(gpu_box: Path) -> None:
    """A folder without recordings proves nothing."""
    assert first_light.main(["--check", str(gpu_box / "empty")]) == 1
    assert (gpu_box / "empty.tar.gz").exists()


def test_the_steps_fit_one_session() -> None:
    """The whole has less than ten minutes, the check comes last, and clocks are left alone."""
    steps = first_light.steps(Path("out"))
    assert first_light.BUDGET_S < 600
    assert [step.name for step in steps][-1] == "check"
    recorders = [step.arguments for step in steps if step.name.startswith("record")]
    assert all("none" in arguments[arguments.index("--clock-control") :][:2] for arguments in recorders)
