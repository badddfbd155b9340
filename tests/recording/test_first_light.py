from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from itertools import pairwise
from pathlib import Path

import check
import costs
import first_light
import pytest
import record
import stored
import unattended
from msgspec.structs import replace
from support import fake_ncu, fake_nsys
from support.recorded import only
from truth import Measured

from rooflens.model.records import Kernel
from rooflens.processes import Command, run
from rooflens.workloads.registry import find_workload, load_workloads

QUICK = "import sys; sys.stdout.write('loss 1\\n')"


def quick_script(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a program of no time stand in for the user's script, and an nsys, without which PyTorch would trace it."""
    script = gpu_box / "train_transformer.py"
    script.write_text(QUICK)
    fake_nsys.install(gpu_box / "bin", [("saxpy", 8, 128, 3, 1000)])
    monkeypatch.setattr(first_light, "_SCRIPT", script)


def chosen(output: Path, *names: str) -> list[unattended.Step]:
    """Return some of the steps, of which the recorder takes saxpy alone."""
    by_name = {step.name: step for step in first_light.steps(output)}
    recorder = by_name["record_first"]
    arguments = recorder.arguments[: recorder.arguments.index("--only")]
    by_name["record_first"] = dataclasses.replace(recorder, arguments=(*arguments, *only("saxpy")))
    return [by_name[name] for name in names]


def states(output: Path) -> dict[str, str]:
    """Return how each step ended, as results.json says."""
    return {step["name"]: step["state"] for step in json.loads((output / "results.json").read_text())["steps"]}


def test_first_light_brings_home_what_it_can(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails and one that hangs stop nothing; one folder, one results.json and one archive hold the rest."""
    output = gpu_box / "out/first_light"
    probe, doctor, recorder, check = chosen(output, "probe", "doctor", "record_first", "check")
    broken = unattended.Step("broken", 5, 0, ("-c", "raise SystemExit(7)"))
    hangs = unattended.Step("hangs", 0.3, 0, ("-c", "import time; time.sleep(60)"))
    late = unattended.Step("late", 5, 0, ("-c", "pass"), grace_s=1e9)
    monkeypatch.setattr(first_light, "steps", lambda _: (probe, broken, hangs, late, doctor, recorder, check))
    copies = gpu_box / "collected"
    assert first_light.main(["--copy-to", str(copies)]) == 75
    results = json.loads((output / "results.json").read_text())
    assert states(output) == {
        "probe": "ok",
        "broken": "failed with status 7",
        "hangs": "ended: over its time",
        "late": "unfinished: no time was left",
        "doctor": "ok",
        "record_first": "ok",
        "check": "ok",
    }
    assert results["probe"]["passes"] == 9
    assert [entry["path"] for entry in results["recorded"]] == ["h200/saxpy.ncu-rep"]
    assert [one["state"] for one in results["truths"]] == ["pass", "pass", "pass"]
    with tarfile.open(copies / "first_light.tar.gz") as archive:
        names = set(archive.getnames())
    saxpy = [f"fixtures/h200/saxpy.{ending}" for ending in ("ncu-rep", "ncu.log", "unprofiled.json")]
    assert {f"first_light/{name}" for name in ("results.json", "doctor.json", "probe/saxpy.ncu.log", *saxpy)} <= names
    assert [path.name for path in copies.iterdir()] == ["first_light.tar.gz"]


def test_a_further_call_goes_on_where_one_ended(
    gpu_box: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ended well or failed is not run again, what had no time is; on another machine the archive says which."""
    output = gpu_box / "light"
    counts = "import pathlib; file = pathlib.Path('{}'); file.open('a').write('x'); raise SystemExit({})"
    once = unattended.Step("once", 5, 0, ("-c", counts.format("once", 0)))
    fails = unattended.Step("fails", 5, 0, ("-c", counts.format("fails", 7)))
    late = unattended.Step("late", 5, 0, ("-c", counts.format("late", 75)))
    always = unattended.Step("always", 5, 0, ("-c", counts.format("always", 0)), every_call=True)
    monkeypatch.setattr(first_light, "steps", lambda _: (once, fails, late, always))
    assert first_light.main(["--output", "light"]) == 75
    assert "call it again: it goes on where this call ended" in capsys.readouterr().err
    shutil.rmtree(output)  # the next machine has the archive only
    late = dataclasses.replace(late, arguments=("-c", counts.format("late", 0)))
    assert first_light.main(["--output", "light"]) == 1
    ran = {name: len((gpu_box / name).read_text()) for name in ("once", "fails", "late", "always")}
    assert ran == {"once": 1, "fails": 1, "late": 2, "always": 2}
    assert states(output) == {"once": "ok", "fails": "failed with status 7", "late": "ok", "always": "ok"}
    first_light.main(["--output", "light", "--steps", "fails"])
    first_light.main(["--output", "light", "--fresh"])
    assert [len((gpu_box / name).read_text()) for name in ("once", "fails")] == [2, 3]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("permission", "you may not read this GPU's counters"), ("no driver", "`nvidia-smi` does not answer")],
)
def test_where_ncu_cannot_work_the_probe_says_so_and_nothing_else_is_run(
    gpu_box: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    behaviour: str,
    reason: str,
) -> None:
    """The reason stands in the output, in results.json and in the archive; the exit code is 3."""
    if behaviour == "no driver":
        (gpu_box / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    else:
        monkeypatch.setenv(fake_ncu.BEHAVIOUR, behaviour)
    output = gpu_box / "light"
    assert first_light.main(["--output", "light"]) == 3
    told = capsys.readouterr().out
    assert "nothing can be profiled here: " in told
    assert reason in told
    assert "hint: " in told
    found = states(output)
    assert found.pop("probe").startswith("failed with status ")
    assert set(found.values()) == {"not run: the probe failed"}
    assert not (output / "doctor.json").exists()
    assert (gpu_box / "light.tar.gz").exists()


def test_what_fails_leaves_its_words_and_its_part(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ncu wrote before it broke off comes home, with its log and the run without ncu, behind all that is whole."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "broken_off")
    output = gpu_box / "light"
    steps = chosen(output, "record_first")
    monkeypatch.setattr(first_light, "steps", lambda _: steps)
    assert first_light.main(["--output", "light"]) == 1
    assert states(output) == {"record_first": "failed with status 1"}
    names = [path.relative_to(output).as_posix() for path in first_light.packing_order(output)]
    kept = [name for name in names if name.startswith("fixtures/h200/saxpy.")]
    endings = ("ncu-rep.incomplete", "ncu-rep.incomplete.unprofiled.json", "ncu.log")
    assert sorted(kept) == [f"fixtures/h200/saxpy.{ending}" for ending in endings]
    assert names[-1] == "fixtures/h200/saxpy.ncu-rep.incomplete"


def test_each_step_is_packed_when_it_has_ended(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is cut off has brought home everything up to its last whole step."""
    first = unattended.Step("first", 5, 0, ("-c", "open('light/found.txt', 'w').write('much')"))
    looks = "import tarfile; tarfile.open('light.tar.gz').extract('light/found.txt', 'seen', filter='data')"
    monkeypatch.setattr(first_light, "steps", lambda _: (first, unattended.Step("looks", 5, 0, ("-c", looks))))
    first_light.main(["--output", "light"])
    assert (gpu_box / "seen/light/found.txt").read_text() == "much"


def test_first_light_needs_python_alone(tmp_path: Path) -> None:
    """Without a single installed package it runs, and says what is missing."""
    script = Path(first_light.__file__)
    clean = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-S", str(script), "--output", str(tmp_path / "light")]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    reason = json.loads((tmp_path / "light/results.json").read_text())["probe"]["reason"]
    assert f"nothing can be profiled here: {reason}" in done.stdout


def test_several_archives_hold_what_one_cannot(tmp_path: Path) -> None:
    """Each stays below the limit, what fits in none is named, and archives of a larger folder do not stay."""
    folder = tmp_path / "light"
    folder.mkdir()
    files = [folder / f"{at}.bin" for at in range(5)]
    for file in files:
        file.write_bytes(os.urandom(5000))
    (folder / "large.bin").write_bytes(os.urandom(20_000))
    archive = tmp_path / "light.tar.gz"
    assert stored.pack_all(archive, tmp_path, [folder / "large.bin", *files], 14_000) == [folder / "large.bin"]
    made = sorted(tmp_path.glob("*.tar.gz"))
    assert [path.name for path in made] == ["light.2.tar.gz", "light.3.tar.gz", "light.tar.gz"]
    assert max(path.stat().st_size for path in made) < 14_000
    stored.unpack(archive, tmp_path / "there")
    assert {path.name for path in (tmp_path / "there/light").iterdir()} == {file.name for file in files}
    assert stored.pack_all(archive, tmp_path, files[:1], 14_000) == []
    assert [path.name for path in tmp_path.glob("*.tar.gz")] == ["light.tar.gz"]


def test_a_folder_is_judged_elsewhere(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--check` judges what a machine without a reader left."""
    output = gpu_box / "light"
    steps = chosen(output, "record_first")
    monkeypatch.setattr(first_light, "steps", lambda _: steps)
    assert first_light.main(["--output", "light", "--steps", "record_first"]) == 1
    assert first_light.main(["--check", "light"]) == 0
    assert json.loads((output / "results.json").read_text())["is_checked"]


def test_nothing_checked_is_not_good(gpu_box: Path) -> None:
    """A folder without recordings proves nothing."""
    (gpu_box / "empty").mkdir()
    assert first_light.main(["--check", str(gpu_box / "empty")]) == 1
    assert (gpu_box / "empty.tar.gz").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["--check", "missing"], 1, "`missing` is no folder"),
        (["--check", "file"], 1, "`file` is no folder"),
        (["--output", "file"], 1, "cannot write into `file`: File exists"),
        (["--output", "new", "--steps", "doctor,nothing"], 2, "no step is called `nothing`"),
        (["--check", "damaged"], 1, "steps.json` is damaged"),
    ],
)
def test_what_cannot_work_is_said_at_once(
    gpu_box: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, error: str
) -> None:
    """A wrong folder, step or file is an error with a hint, and nothing is written for it."""
    (gpu_box / "file").touch()
    (gpu_box / "damaged").mkdir()
    (gpu_box / "damaged/steps.json").write_text("{")
    assert first_light.main(arguments) == status
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("error: ")
    assert error in said[0]
    assert said[2].startswith("hint: ")
    assert not (gpu_box / "missing").exists()
    assert not (gpu_box / "new").exists()
    assert not list(gpu_box.glob("*.tar.gz"))


def test_the_steps_fit_one_session() -> None:
    """A call of at most nine minutes, of which each step keeps its part; the check is last.

    Clocks are left alone but for one step, which records on those of ncu's choice, as users do.
    """
    steps = first_light.steps(Path("out"))
    assert first_light.BUDGET_S < first_light.CALL_S == 540
    assert sum(step.kept_s for step in steps) < first_light.BUDGET_S
    assert all(step.kept_s <= step.limit_s and step.grace_s < step.limit_s for step in steps)
    assert [step.name for step in steps] == [
        *("probe", "doctor", "record_first", "truth", "calibrate", "cost", "default_clocks", "overhead", "script"),
        *("record_rest", "check"),
    ]
    recorders = [step.arguments for step in steps if "--clock-control" in step.arguments]
    assert [step.name for step in steps if step.arguments in recorders] == ["record_first", "overhead", "record_rest"]
    assert all("none" in arguments[arguments.index("--clock-control") :][:2] for arguments in recorders)
    (as_users,) = (step.arguments for step in steps if step.name == "default_clocks")
    assert [name for option, name in pairwise(as_users) if option == "--only"] == ["saxpy", "fma"]
    assert "--clock-control" not in as_users
    hangs_s = {float(arguments[arguments.index("--timeout") + 1]) for arguments in recorders}
    assert all("--missing" in arguments for arguments in recorders)  # a further call goes on
    assert max(hangs_s) <= next(step.limit_s for step in steps if step.name == "record_first") / 2


def test_a_check_that_cannot_read_leaves_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare GPU box judges nothing: what the check keeps elsewhere goes to the recordings there."""
    here = first_light.steps(Path("out"))[-1]
    monkeypatch.setattr(first_light, "_READER", "no_such_module")
    assert first_light.steps(Path("out"))[-1].kept_s < here.kept_s


def test_the_first_recordings_are_those_of_most_worth() -> None:
    """Attention, gemm, saxpy, fma and every rung of the ladder, the last first, are recorded before anything else."""
    arguments = next(step.arguments for step in first_light.steps(Path("out")) if step.name == "record_first")
    names = [name for option, name in pairwise(arguments) if option == "--only"]
    targets = record.choose(names, all_cases=False)
    assert [target.name for target in targets[:4]] == list(record.FIRST[:4])
    rungs = [target.case.name for target in targets[4:] if target.case is not None]
    assert rungs[:3] == ["11_wgmma", "08_tensor_core", "07_warptile"]
    assert sorted(rungs) == sorted(case.name for case in find_workload("gemm_ladder").cases)


def test_a_step_leaves_to_later_ones_what_they_keep(gpu_box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of ten seconds a step may take what the next does not keep; one that has no time to begin anything is skipped."""
    nap = ("-c", "pass")
    asked = [
        unattended.Step("greedy", 600, 0, nap),
        unattended.Step("kept", 600, 7, nap),
        unattended.Step("slow", 600, 2, nap, grace_s=30),
    ]
    limits = {one.name: one.limit_s for one in unattended.run_all(asked, gpu_box, 10.0)}
    assert 0 < limits["greedy"] <= 1
    assert 1 < limits["kept"] <= 8
    assert "slow: unfinished: no time was left" in capsys.readouterr().out


def test_everything_runs_once_through_stand_ins(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step ends in its time and leaves its part; what the stand-ins cannot show is called wrong or missing."""
    quick_script(gpu_box, monkeypatch)
    monkeypatch.setattr(costs, "PROGRAMS", ("saxpy", "fp16_fma"))
    monkeypatch.setattr(costs, "COMPARED", ("saxpy",))
    output = gpu_box / "light"
    output.mkdir()
    assert first_light._probe(output, None) == first_light._doctor(output, None) == 0
    assert len(list((gpu_box / "cache").glob("rooflens/cuda/*"))) == 1 + sum(
        one.kind == "cuda" for one in load_workloads()
    )
    assert first_light._truth(output, None) == first_light._cost(output, None) == 0
    assert first_light._script(output, None) == 0
    assert first_light._check(output, None) == 1
    results = first_light.assemble(output)
    assert {cost["way"] for cost in results["costs"] if cost["program"] == "saxpy"} == {way.name for way in costs.WAYS}
    assert [run["command"] for run in results["script_runs"]] == ["profile"] * 3
    assert (output / "script/whole/train_transformer.html").exists()
    assert {one["name"] for one in results["script"]} == {"whole", "start_end", "push_pop"}
    assert {(one["way"], one["equal"] == one["compared"]) for one in results["switches"]} == {
        ("standard_again", True),
        ("standard_no_pre_pass", True),
        ("standard_one_sampling_pass", True),
    }
    assert "saxpy.n28: opcode tables against the formula" in {row["name"] for row in results["rows"]}
    assert {one["state"] for one in results["truths"]} == {"fail"}  # the stand-in's kernels are in no range
    stored.write_json(output / first_light.RESULTS, results)
    names = [file.name for file in first_light.packing_order(output)]
    assert names.index("results.json") < names.index("saxpy.deep.ncu-rep") < names.index("saxpy.quick.ncu-rep")


def test_clocks_are_logged_while_the_steps_run(gpu_box: Path) -> None:
    """The log of clocks has what nvidia-smi said; where there is none, the steps run all the same."""
    log = gpu_box / "clocks.csv"
    (gpu_box / "bin" / "nvidia-smi").write_text("#!/bin/sh\necho $*\nexec sleep 60\n")
    with unattended.watching(log):
        deadline_s = time.monotonic() + 10
        while not log.read_text() and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert "clocks.sm" in log.read_text()
    (gpu_box / "bin" / "nvidia-smi").unlink()
    with unattended.watching(log):
        assert log.read_text() == ""


def test_where_no_page_can_be_drawn_the_script_is_collected(gpu_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare GPU box keeps the script's reports; the page comes later."""
    quick_script(gpu_box, monkeypatch)
    monkeypatch.setattr(first_light, "_DRAWING", ("no_such_module",))
    assert first_light._script(gpu_box / "light", None) == 0
    assert len(list(gpu_box.glob("light/script/*/train_transformer.ncu-rep"))) == 3
    assert not list(gpu_box.rglob("*.html"))


def test_ranges_tell_the_threads_of_a_step_apart() -> None:
    """Autograd's kernels stand in the start/end range alone, those of the script's thread in its own ranges too."""
    seen = [
        {"name": "start_end", "by_range": {"step": 4, "step/forward": 9}},
        {"name": "whole", "by_range": {"": 3}},
        {"name": "push_pop", "error": "no report"},
    ]
    assert [(one.state, one.measured) for one in check._script_truths(seen)] == [
        ("pass", "9"),
        ("pass", "4"),
        ("fail", "0"),
    ]


def test_kernels_of_equal_shape_must_not_be_taken_for_one() -> None:
    """What is missing where equal launches are profiled once was dropped for another kernel; a repeat was not."""
    shape = {"grid": (132, 1, 1), "block": (384, 1, 1)}
    kernel = Kernel(digest="", source="", index=0, name="bf16", function_name="nvjet", status="ok", **shape)
    bf16, fp16 = Measured(kernel, {}), Measured(replace(kernel, name="fp16"), {})
    (kept,) = check.one_of_each_truths([bf16, fp16, bf16], [bf16, fp16])
    (dropped,) = check.one_of_each_truths([bf16, fp16], [bf16])
    assert [(one.state, one.measured, one.wanted) for one in (kept, dropped)] == [
        ("pass", "2", "2"),
        ("fail", "1", "2"),
    ]
    assert check.one_of_each_truths([], [bf16]) == check.one_of_each_truths([bf16], []) == []


@pytest.mark.thorough
def test_the_products_and_the_script_run(tmp_path: Path) -> None:
    """Without a GPU the script trains on the CPU, and the products say why they are left out."""
    arguments = ("--batch", "2", "--length", "16", "--width", "64")
    script, products = first_light._SCRIPT, Path(costs.__file__).with_name("products.py")
    files = [tmp_path / name for name in ("out", "err")]
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    assert run(Command((sys.executable, str(script), *arguments), *files)).status == 0
    assert files[0].read_text().startswith("loss ")
    assert run(Command((sys.executable, str(products)), *files)).status in {0, 3}
    assert len(files[0].read_text().splitlines()) == 5
