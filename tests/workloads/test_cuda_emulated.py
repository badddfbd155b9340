"""Run every CUDA workload on the CPU, thread by thread, with toy sizes: indices, barriers, bounds, checks, answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from support.cuda_emulator import build_for_cpu, rewrite
from support.loops import for_all

from rooflens.model.cases import Case, Workload
from rooflens.workloads.commands import CASE_VARIABLE
from rooflens.workloads.registry import RANGE_NAME, find_workload, load_workloads

pytestmark = pytest.mark.emulated

WORKLOADS = [workload for workload in load_workloads() if workload.kind == "cuda"]
CASES = [(workload, case) for workload in WORKLOADS for case in workload.cases]
KEYS = [
    "workload",
    "iterations",
    "launches",
    "wall_ns",
    "kernel_ns",
    "cold_ns",
    "max_relative_error",
    "tolerance",
    "ok",
]
MORE = {"gemm_ladder": ["cublas_ns"], "09_autotuned": ["tile"]}
"""Additional output of a workload or case."""


@pytest.fixture(scope="module")
def compiler() -> str:
    """Return a g++; skip the test if there is none."""
    found = shutil.which("g++")
    if found is None:
        pytest.skip("no g++: the CUDA workloads are not run on the CPU")
    return found


@pytest.fixture(scope="module")
def program(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program with all workloads."""
    return build_for_cpu(WORKLOADS, tmp_path_factory.mktemp("emulated"), compiler)


def _run(
    program: Path, workload: str, arguments: Mapping[str, int], **variables: str
) -> subprocess.CompletedProcess[str]:
    pairs = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", **variables}
    return subprocess.run(  # noqa: S603 - our program
        [program, workload, *pairs], capture_output=True, text=True, check=False, env=environment
    )


def _witness(stderr: str) -> dict[str, Any]:
    return json.loads(stderr.splitlines()[-1])


@pytest.mark.parametrize(("workload", "case"), CASES, ids=lambda part: part.name)
def test_toy_matches_its_reference(program: Path, workload: Workload, case: Case) -> None:
    """Results are within tolerance, in one line of JSON, and one range has exactly the reported launches."""
    iterations = 1 if workload.together else 2  # a ladder's products take seconds on the CPU, and overwrite the last
    done = _run(program, workload.name, {**case.toy, "iterations": iterations})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") == 1
    answer = json.loads(done.stdout)
    assert list(answer) == KEYS + MORE.get(workload.name, []) + MORE.get(case.name, [])
    assert answer["workload"] == workload.name
    assert answer["iterations"] == iterations
    assert answer["launches"] == iterations * case.toy.get("launches", len(case.parts) or 1)
    assert answer["ok"] is True
    assert answer["max_relative_error"] <= answer["tolerance"]
    assert answer["wall_ns"] > 0
    assert (answer["kernel_ns"] is None) == (iterations == 1)
    assert _witness(done.stderr) == {"ranges": 1, "name": RANGE_NAME, "launches": answer["launches"]}


@pytest.mark.parametrize("shared_kib", [64, 99], ids=["turing", "rtx"])
def test_the_multistage_rung_takes_as_many_stages_as_fit(program: Path, shared_kib: int) -> None:
    """With less shared memory per block, two or three stages are also right; the toy runs four."""
    toy = {**find_workload("gemm_ladder").case("10_multistage").toy, "iterations": 1}
    done = _run(program, "gemm_ladder", toy, EMULATED_SHARED_BYTES=str(shared_kib * 1024))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["ok"] is True


@pytest.mark.parametrize("case", find_workload("attention_ladder").cases, ids=lambda case: case.name)
def test_attention_over_more_tiles_than_the_toy_is_right(program: Path, case: Case) -> None:
    """With more keys a row's largest score comes later, both stages are filled twice, and one head is all there is."""
    done = _run(program, "attention_ladder", {**case.toy, "heads": 1, "length": 256, "iterations": 1})
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["ok"] is True


@pytest.mark.parametrize(("cold_ms", "ratio"), [(16, 1.5), (13, 0.75), (10, None), (9, None)])
def test_cold_times_are_those_beyond_the_flushes(program: Path, cold_ms: int, ratio: float | None) -> None:
    """Of 4 ms warm, 10 ms of flushes and 16 ms with flushes, 6 ms are cold; a time that is not positive is unknown."""
    done = _run(program, "saxpy", {"n": 4096, "iterations": 2}, EMULATED_MS=f"4 10 {cold_ms}")
    answer = json.loads(done.stdout)
    assert answer["ok"] is True
    found = answer["cold_ns"] and answer["cold_ns"] / answer["kernel_ns"]
    assert found == (ratio and pytest.approx(ratio, rel=1e-6))


def test_short_kernels_are_timed_by_one_pair_of_events(program: Path) -> None:
    """As many launches as fill 20 ms are timed at once, and the time given is that of the iterations asked for."""
    done = _run(program, "saxpy", {"n": 4, "iterations": 2, "check": 0}, EMULATED_MS="2 0 3")
    answer = json.loads(done.stdout)
    timed = round(2 * 2e6 / answer["kernel_ns"])
    assert timed == min(200, 20_000_000 * 2 // answer["wall_ns"]) > 2
    assert answer["cold_ns"] == pytest.approx(answer["kernel_ns"] * 1.5)


def test_a_single_iteration_is_not_timed_again(program: Path) -> None:
    """Under a profiler the program launches nothing but its one iteration and the warm-up."""
    answer = json.loads(_run(program, "saxpy", {"n": 100, "iterations": 1}).stdout)
    assert (answer["kernel_ns"], answer["cold_ns"], answer["ok"]) == (None, None, True)


def test_unchecked_result_has_no_error(program: Path) -> None:
    """With `--check 0` nothing is compared: the error is null, and the exit status that of success."""
    done = _run(program, "saxpy", {"n": 100, "check": 0})
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["max_relative_error"], answer["ok"]) == (0, None, True)


def test_a_case_that_is_named_is_marked_and_answered(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ROOFLENS_CASE opens its own range inside the common one, and is in the answer."""
    monkeypatch.setenv(CASE_VARIABLE, "saxpy.n16")
    done = _run(program, "saxpy", {"n": 100, "check": 0})
    answer = json.loads(done.stdout)
    assert (answer["workload"], answer["case"]) == ("saxpy", "n16")
    assert _witness(done.stderr) == {"ranges": 2, "name": "saxpy.n16", "launches": answer["launches"]}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("fma", {"n": 6}, "`--n` must be a multiple of 4"),
        ("roofline", {"n": 6}, "`--n` must be a multiple of 4"),
        ("roofline", {"n": 4, "table": 1}, "`--table` needs a `--n` of 8 or more"),
        ("fp16_fma", {"n": 12}, "`--n` must be a multiple of 8"),
        ("fp16_fma", {"iters": 1025}, "`--iters` must be 1 to 1024"),
        ("gemm_ladder", {"n": 200}, "`--n` must be a multiple of 128"),
        ("gemm_ladder", {"rung": 12}, "`--rung` must be 1 to 11"),
        ("gemm_ladder", {"rung": 11, "n": 128}, "`--n` of rung 11 must be a multiple of 256"),
        ("attention_ladder", {"length": 192}, "`--length` must be a multiple of 128"),
        ("attention_ladder", {"width": 128}, "`--width` must be 64"),
        (
            "attention_ladder",
            {"heads": 2, "length": 32768},
            "`--heads` x `--length` x `--length` must be less than 2^31",
        ),
        ("attention_ladder", {"rung": 4}, "`--rung` must be 1 to 3"),
        ("transpose", {"passes": 2}, "`--passes` must be odd"),
        ("gather", {"table": 100}, "`--table` must be a power of two"),
        ("gather", {"table": 64, "n": 9}, "`--n` must be at most `--table` / 8"),
        ("pointer_chase", {"lines": 12}, "`--lines` must be a power of two"),
        ("l2_stream", {"n": 24}, "`--n` must be a power of two"),
        ("l2_stream", {"threads": 300}, "`--threads` must be a multiple of 256"),
        ("int8_mma", {"iters": 4097}, "`--iters` must be 1 to 4096"),
        ("int8_wgmma", {"iters": 1025}, "`--iters` must be 1 to 1024"),
        ("histogram", {"n": 24}, "`--n` must be a multiple of 16"),
    ],
)
def test_sizes_that_a_kernel_cannot_take_are_refused(
    program: Path, name: str, arguments: dict[str, int], message: str
) -> None:
    """A kernel's requirements are checked before it is launched."""
    done = _run(program, name, arguments)
    assert done.returncode == 1
    assert f"error: {message}" in done.stderr
    assert _witness(done.stderr)["ranges"] == 0


class Mutation(NamedTuple):
    """A change that breaks a kernel, and the arguments besides the first toy's that run it."""

    name: str
    file: str
    line: str
    changed: str
    arguments: Mapping[str, int] = MappingProxyType({})


def _rung(number: int) -> dict[str, int]:
    return {"rung": number, "n": 256}


MUTATIONS = [
    Mutation("gemm_ladder", "05_blocktile_2d.cuh", "    }\n    __syncthreads();\n  }\n", "    }\n  }\n", _rung(5)),
    Mutation("gemm_ladder", "07_warptile.cuh", "lane / 4 * kVector", "lane % 8 * kVector", _rung(7)),
    Mutation("gemm_ladder", "08_tensor_core.cuh", "    }\n    __syncthreads();\n#pragma", "    }\n#pragma", _rung(8)),
    Mutation("gemm_ladder", "10_multistage.cuh", "wait_prior(stages - 2)", "wait_prior(stages - 1)", _rung(10)),
    Mutation("gemm_ladder", "11_wgmma.cuh", "multiplied_but<1>()", "multiplied_but<2>()", _rung(11)),
    Mutation("attention_ladder", "01_naive.cuh", "= of_warp;\n  __syncthreads();", "= of_warp;", {"rung": 1}),
    Mutation("attention_ladder", "02_online_softmax.cuh", "__syncwarp();", "", {"rung": 2}),
    Mutation("attention_ladder", "03_tensor_core.cuh", "wait_prior(0)", "wait_prior(1)", {"rung": 3}),
    Mutation("transpose", "main.cu", "tile[tx][ty + e * kRows]", "tile[ty + e * kRows][tx]"),
    Mutation("int8_mma", "main.cu", "column * kK + 16 + 4 * part", "column * kK + 4 * part"),
    Mutation("int8_wgmma", "main.cu", "(chunk ^ row % 8)", "chunk"),
    Mutation("stencil", "main.cu", "in[i + 2 * row]", "in[i + row]"),
    Mutation("histogram", "main.cu", "= 0;\n  __syncthreads();", "= 0;", {"shared": 1}),
    Mutation("saxpy", "main.cu", "rest < n;", "rest < n - 1;"),
]


@pytest.fixture(scope="module")
def broken(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program of the mutated workloads, a whole ladder at once, as a rung runs only its own file."""
    changed = tmp_path_factory.mktemp("changed")
    workloads = []
    for name in dict.fromkeys(mutation.name for mutation in MUTATIONS):
        original = find_workload(name)
        shutil.copytree(original.folder, changed / name)
        for common in original.folder.parent.glob("*.cuh"):
            shutil.copy(common, changed)
        for mutation in (mutation for mutation in MUTATIONS if mutation.name == name):
            file = changed / name / mutation.file
            source = file.read_text(encoding="utf-8")
            assert mutation.line in source
            file.write_text(source.replace(mutation.line, mutation.changed), encoding="utf-8")
        workloads.append(replace(original, folder=changed / name))
    return build_for_cpu(workloads, tmp_path_factory.mktemp("broken"), compiler)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.name}-{mutation.file}")
def test_check_notices_a_broken_kernel(broken: Path, mutation: Mutation) -> None:
    """Without a barrier, or with a wrong index, a program reports a wrong result and exits with 1."""
    original = find_workload(mutation.name)
    done = _run(broken, mutation.name, {**original.cases[0].toy, "iterations": 1, **mutation.arguments})
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(done.stdout)["ok"] is False


def test_the_same_sources_are_a_program_of_hip(compiler: str, tmp_path: Path) -> None:
    """With names mapped as by hipcc's macro, `roofline` is right too, and its table has a row per step."""
    hip = build_for_cpu([find_workload("roofline")], tmp_path, compiler, ["__HIP_PLATFORM_AMD__"])
    done = _run(hip, "roofline", {"n": 1024, "iterations": 1, "table": 1, "repeats": 1})
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["ok"] is True
    rows = [line for line in done.stderr.splitlines() if line.endswith((" memory", " compute"))]
    steps = [0.1667, *(2.0**power for power in range(-2, 8))]
    assert [float(row.split()[0]) for row in rows] == steps
    assert len([line for line in done.stderr.splitlines() if line.startswith(("pass", "FAIL"))]) == 6
    text = (find_workload("roofline").folder.parent / "hip.cuh").read_text(encoding="utf-8")
    assert "cuda" not in "".join(line for line in text.splitlines() if line.startswith("using"))


STEPS_MS = (1.0, *(0.5,) * 7, 0.6, 1.2, 2.4)
"""SAXPY, and chains of 1 to 512 multiply-adds: the last three reach 0.853 n FLOP/us, so the curve is flat."""
FURTHER_MS = (1.0, 1.0, 1.2, 4.8)
"""SAXPY twice more, and the longest chain with half and twice the elements."""


def _checklist(program: Path, steps_ms: tuple[float, ...], further_ms: tuple[float, ...]) -> list[str]:
    """Run `roofline --table 1` with these times of the fastest runs; return the lines of its checklist."""
    given = " ".join(map(str, (*steps_ms, *further_ms)))
    done = _run(program, "roofline", {"n": 64, "iterations": 1, "table": 1, "repeats": 1}, EMULATED_MS=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith(("pass", "FAIL"))]


def test_the_checklist_passes_where_both_roofs_can_be_trusted(program: Path) -> None:
    """Equal runs, a flat end and equal sizes pass; 12 n bytes in 1 ms and 1,024 n FLOP in 2.4 ms meet at 35.6."""
    assert _checklist(program, STEPS_MS, FURTHER_MS) == [
        "pass  SAXPY's slowest of 3 runs, of the GB/s of the best: 100.0 %, at least 60 %",
        "pass  a chain of 256, over the GFLOP/s of one of 128: 0.0 %, less than 3 %",
        "pass  a chain of 512, over the GFLOP/s of one of 256: 0.0 %, less than 3 %",
        "pass  the longest chain at half the elements: 0.0 %, within 3 %",
        "pass  the longest chain at double the elements: 0.0 %, within 3 %",
        "pass  SAXPY is bound by memory: 0.1667 FLOP/B, the ridge is at 35.6",
    ]


@for_all(
    "steps_ms, further_ms, failed",
    [
        (STEPS_MS, (1.66, 1.0, 1.2, 4.8), ""),
        (STEPS_MS, (1.68, 1.0, 1.2, 4.8), "SAXPY's slowest of 3 runs, of the GB/s of the best: 59.5 %, at least 60 %"),
        ((*STEPS_MS[:9], 1.168, 2.336), (1.0, 1.0, 1.168, 4.672), ""),
        (
            (*STEPS_MS[:9], 1.163, 2.326),
            (1.0, 1.0, 1.163, 4.652),
            "a chain of 256, over the GFLOP/s of one of 128: 3.2 %, less than 3 %",
        ),
        (
            (*STEPS_MS[:10], 2.326),
            (1.0, 1.0, 1.163, 4.652),
            "a chain of 512, over the GFLOP/s of one of 256: 3.2 %, less than 3 %",
        ),
        (STEPS_MS, (1.0, 1.0, 1.236, 4.8), ""),
        (STEPS_MS, (1.0, 1.0, 1.24, 4.8), "the longest chain at half the elements: -3.2 %, within 3 %"),
        (STEPS_MS, (1.0, 1.0, 1.2, 4.65), "the longest chain at double the elements: 3.2 %, within 3 %"),
        (
            (0.004, *STEPS_MS[1:]),
            (0.004, 0.004, 1.2, 4.8),
            "SAXPY is bound by memory: 0.1667 FLOP/B, the ridge is at 0.142",
        ),
    ],
)
def test_the_checklist_fails_beyond_each_limit(
    program: Path, steps_ms: tuple[float, ...], further_ms: tuple[float, ...], failed: str
) -> None:
    """Limits are 60 % of the best run, 3 % between lengths or sizes, and the ridge; both sides of each are tested."""
    found = [line for line in _checklist(program, steps_ms, further_ms) if line.startswith("FAIL")]
    assert found == ([f"FAIL  {failed}"] if failed else [])


def test_launches_are_rewritten() -> None:
    """Only grid and block remain of a launch's configuration, including parentheses and template arguments."""
    assert rewrite("f<1><<<dim3(a, b), dim3(c), 0, stream>>>(x.data(), y);") == (
        "emulator::launch(dim3(a, b), dim3(c), [](auto... all) { f<1>(all...); }, x.data(), y);"
    )
