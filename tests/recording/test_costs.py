from __future__ import annotations

import os
import sys
from pathlib import Path

import costs
import pytest
from slim import slim
from support import fake_ncu
from support.packing import pack

from rooflens import collecting
from rooflens.errors import InputError, StoppedError
from rooflens.ingest.ncu.command import Collection, Ncu, build_argv
from rooflens.ingest.ncu.run import Collected, collect
from rooflens.ingest.reports.unpacking import INCOMPLETE_SUFFIX

SAXPY = [("saxpy", way) for way in costs.WAYS]


def test_every_way_is_measured(gpu_box: Path) -> None:
    """Our tiers, NVIDIA's sets, the switches and the program alone are run, with passes and time of each."""
    measured = costs.measure(gpu_box / "costs", SAXPY)
    assert [cost.way for cost in measured] == [way.name for way in costs.WAYS]
    assert {cost.way: cost.passes for cost in measured} == {way.name: 9 if way.profiled else None for way in costs.WAYS}
    assert [cost.error for cost in measured] == [""] * len(costs.WAYS)
    assert costs.read_costs(gpu_box / "costs") == measured
    reports = [file.read_bytes() for file in (gpu_box / "costs").glob("saxpy.*.ncu-rep")]
    assert len(reports) == len(costs.WAYS) - 1
    assert all(slim(report) == report for report in reports)


def test_what_ncu_compressed_is_measured_plain(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed report is unpacked and slimmed like any, and the cost names what is there."""
    monkeypatch.setenv(fake_ncu.REPORT, str(pack(Path(os.environ[fake_ncu.REPORT]), gpu_box / "packed")))
    monkeypatch.setenv(fake_ncu.PUTS_BEHIND, ".ncu-repz")
    (cost,) = costs.measure(gpu_box / "costs", SAXPY[1:2])
    assert (cost.error, cost.report) == ("", "saxpy.standard.ncu-rep")
    report = (gpu_box / "costs" / "saxpy.standard.ncu-rep").read_bytes()
    assert slim(report) == report


def test_what_was_measured_stays(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later call measures only what is missing or failed; after its time nothing begins."""
    folder = gpu_box / "costs"
    assert costs.measure(folder, SAXPY[:2], budget_s=-1.0) == []
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "permission")
    alone, standard = costs.measure(folder, SAXPY[:2])
    assert standard.passes is None
    assert "you may not read this GPU's counters" in standard.error
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "success")
    (again,) = costs.measure(folder, SAXPY[:2])
    assert again.way == "standard"
    assert costs.read_costs(folder) == [alone, again]


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [("half", "the report that ncu wrote cannot be read"), ("nothing", "ncu succeeded but wrote no report")],
)
def test_a_bad_report_is_no_report(gpu_box: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, error: str) -> None:
    """A way that leaves half a report, or none, has its error and no report; the half is put aside."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    (cost,) = costs.measure(gpu_box / "costs", SAXPY[1:2])
    assert cost.report is None
    assert error in cost.error
    assert not list(gpu_box.rglob("*.ncu-rep"))
    assert len(list(gpu_box.rglob(f"*{INCOMPLETE_SUFFIX}"))) == (behaviour == "half")


def test_a_report_that_cannot_be_slimmed_is_put_aside(tmp_path: Path) -> None:
    """Where nothing reads reports, slimming is what finds the damage: the half is kept under another name."""
    (tmp_path / "x.ncu-rep").write_bytes(b"NVR\0 and no more")
    with pytest.raises(InputError):
        costs.slim_or_refuse(tmp_path / "x.ncu-rep")
    assert [file.name for file in tmp_path.iterdir()] == [f"x.ncu-rep{INCOMPLETE_SUFFIX}"]


def test_ctrl_c_ends_it(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops the measuring wants none of the programs after it either."""

    def stopped(*_: object) -> Collected:
        raise StoppedError("stopped")

    monkeypatch.setattr(costs, "collect", stopped)
    with pytest.raises(StoppedError):
        costs.measure(gpu_box / "costs", SAXPY)


def test_a_program_that_cannot_run_costs_only_itself(gpu_box: Path) -> None:
    """Where PyTorch is missing the products fail, in words, and the others are measured."""
    alone, standard = costs.ALONE, costs.STANDARD
    measured = costs.measure(gpu_box / "costs", [("attention", standard), ("saxpy", alone)])
    assert [cost.error for cost in measured] == ["PyTorch is not installed", ""]


def test_a_set_takes_the_place_of_the_counters(gpu_box: Path) -> None:
    """NVIDIA's sets and ncu's switches stand in the command line, and nothing of a tier beside a set."""
    ways = {way.name: way for way in costs.WAYS}

    def argv_of(way: str) -> tuple[str, ...]:
        plan = collecting.make_plan(costs.request_for(gpu_box, "saxpy", ways[way], "none"), dry_run=True)
        return build_argv(plan.ncu, plan.collection, Path("x.log"))

    argv = argv_of("set_full")
    assert argv[argv.index("--set") + 1] == "full"
    assert not {"--metrics", "--section"} & set(argv)
    argv = argv_of("standard_one_sampling_pass")
    assert argv[1:3] == ("--warp-sampling-max-passes", "1")


def test_every_launch_is_profiled_but_where_users_leave_it_to_ncu(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of two types can have one launch shape: ncu may take one for the other only where that is to be seen."""
    argvs = {}

    def noting(ncu: Ncu, collection: Collection, timeout_s: float | None) -> Collected:
        argvs[collection.output.name.split(".")[1]] = build_argv(ncu, collection)
        return collect(ncu, collection, timeout_s)

    monkeypatch.setattr(costs, "collect", noting)
    costs.measure(gpu_box / "costs", SAXPY)
    assert [name for name, argv in argvs.items() if "per-launch-config" in argv] == [costs.ONE_OF_EACH.name]
    counts = {name: argv[argv.index("--launch-count") + 1] for name, argv in argvs.items() if "--launch-count" in argv}
    assert set(counts) == {way.name for way in costs.WAYS if way.profiled} - {costs.ONE_OF_EACH.name}
    assert set(counts.values()) == {"200"}


def test_programs_are_the_products_and_workloads() -> None:
    """The products are one script for this Python; every other program is a case of a workload."""
    python, script = costs.target_of(costs.PRODUCTS).command
    assert python == sys.executable
    assert Path(script).is_file()
    assert all(costs.target_of(program).workload for program in costs.PROGRAMS[1:])
