"""Where the time of a program goes: parts that add up, idle time with its cause, graphs that are never idle, steps."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.timelines import Launched, write_export
from support.traces import host, kernel, launch, write_trace

from rooflens.cli.group import main
from rooflens.model.program.comparison import compare_programs
from rooflens.model.program.idle import IdleCause
from rooflens.model.program.program import Program
from rooflens.model.program.ranks import joined
from rooflens.programs import read_programs
from rooflens.report.document import spans
from rooflens.report.program.next_steps import next_steps
from rooflens.report.program.parts import headline_of
from rooflens.report.program.words import PART_NAMES

HTA = Path(__file__).parents[4] / "shared" / "outcomes" / "timelines"
TRACES = [f"hta_{name}.json.gz" for name in ("control", "test", "sampled_rank-0", "sampled_rank-1", "triton_example")]


def read(path: Path, gpu: str | None = None) -> Program:
    """Read one trace."""
    return read_programs([path], gpu)[0]


def published(name: str) -> Path:
    """Return a published trace; skip where there is none."""
    if not (HTA / name).is_file():
        pytest.skip(f"no {name}: it is one of HolisticTraceAnalysis' fixtures")
    return HTA / name


def added(program: Program) -> int:
    """Add the parts up."""
    return sum(getattr(program.parts, name) for name in program.parts.__struct_fields__ if name != "wall_ns")


def test_each_instant_is_in_one_part(tmp_path: Path) -> None:
    """Kernels hide communication and copies, communication hides copies; what is left is idle. Worked out by hand."""
    events = [
        kernel("gemm", 0, 100),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50, 100, stream=20),  # 50 alone
        {**kernel("Memcpy HtoD (Pinned -> Device)", 140, 60, stream=22), "cat": "gpu_memcpy"},  # 50 alone
        kernel("gemm", 300, 10),  # after 100 of nothing
    ]
    parts = read(write_trace(tmp_path / "t.json", events)).parts
    assert (parts.wall_ns, parts.kernels_ns, parts.open_ns) == (310_000, 110_000, 110_000)
    assert (parts.communication_ns, parts.copies_ns, parts.idle_ns) == (50_000, 50_000, 100_000)


def test_a_gap_begins_where_the_kernel_before_it_ends_whatever_the_clock_counts_from(tmp_path: Path) -> None:
    """Of kernels before moment 0 of the clock the gap is as long as after it."""
    for begin in (-8, 0, 5_084_329_857_012.345):
        path = write_trace(tmp_path / "t.json", [kernel("gemm", begin, 3), kernel("gemm", begin + 10, 3)])
        (program,) = read_programs([path])
        assert [(one.count, one.gap_ns) for one in program.idle] == [(1, 7_000)], begin


@pytest.mark.corpus
@pytest.mark.parametrize("name", TRACES)
def test_parts_add_up_and_what_is_next_is_about_the_largest(name: str) -> None:
    """To the nanosecond, on every published trace; Next has one item for each part that takes 2 %, in their order."""
    program = read(published(name))
    whole = joined([program])
    assert added(program) == program.parts.wall_ns > 0
    assert sum(one.gap_ns for one in program.idle) == program.parts.idle_ns
    largest = program.parts.largest
    assert largest is None or PART_NAMES[largest] in headline_of(whole).lower()
    steps = [one.words[0].text.lower() for one in next_steps(whole)]
    order = [PART_NAMES[one] for one in program.parts.ranked if whole.share(one) >= 0.02]
    assert [text.startswith(name) for text, name in zip(steps, order, strict=True)] == [True] * len(order)


@pytest.mark.parametrize(
    ("kind", "operator", "call", "events"),
    [
        ("launching", "aten::mm", None, [host("cpu_op", "aten::mm", 20, 60), launch(25, 2, 50)]),
        (
            "synchronizing",
            "aten::item",
            "cudaStreamSynchronize",
            [
                host("cpu_op", "aten::item", 5, 20),
                host("cuda_runtime", "cudaStreamSynchronize", 6, 15),
                launch(70, 2),
            ],
        ),
        ("host", "aten::to", None, [host("cpu_op", "aten::to", 12, 490), launch(505, 2)]),
        ("queued", None, None, [launch(6, 2)]),
    ],
)
def test_a_gap_has_the_cause_that_its_thread_shows(
    tmp_path: Path, kind: str, operator: str | None, call: str | None, events: list[dict[str, Any]]
) -> None:
    """A kernel of 10 us, a gap, another kernel: what the thread that launched the second did in between."""
    begin = 510 if kind == "host" else 80
    both = [launch(0, 1), kernel("one", 10, 10, correlation=1), kernel("two", begin, 10, correlation=2)]
    (cause,) = read(write_trace(tmp_path / "t.json", [*both, *events])).idle
    assert (cause.cause.kind, cause.cause.operator, cause.cause.call) == (kind, operator, call)
    assert cause.gap_ns == (begin - 20) * 1000


def test_a_graph_without_records_is_unknown_and_never_idle(tmp_path: Path) -> None:
    """In both formats; one that was recorded as a whole is busy, and the hint says how to see its kernels."""
    events = [
        *(launch(0, 1), kernel("one", 10, 10, correlation=1)),
        host("cuda_runtime", "cudaGraphLaunch", 22, 4, correlation=2),
        host("cuda_runtime", "cudaStreamSynchronize", 30, 900),
        *(launch(940, 3), kernel("two", 950, 10, correlation=3)),
    ]
    kineto = read(write_trace(tmp_path / "t.json", events))
    assert added(kineto) == kineto.parts.wall_ns
    assert kineto.parts.unknown_ns > 0.9 * kineto.parts.wall_ns > 10 * kineto.parts.idle_ns
    assert kineto.graph_hint
    launched = [Launched("one", 0, 100_000), Launched("two", 900_000, 1_000_000)]
    whole = read(write_export(tmp_path / "t.sqlite", launched, graphs=((0, 100_000, 900_000),)))
    assert (whole.parts.graphs_ns, whole.parts.idle_ns) == (800_000, 0)
    assert "--cuda-graph-trace=node" in (whole.graph_hint or "")


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["hta_control.json.gz", "hta_sampled_rank-0.json.gz", "hta_sampled_rank-1.json.gz"])
def test_work_that_was_launched_already_is_what_a_script_counts(name: str) -> None:
    """A second reading of the trace: gaps of the GPU whose work was launched before their first half was over."""
    program = read(published(name))
    events = json.loads(gzip.decompress((HTA / name).read_bytes()), strict=False)["traceEvents"]
    gpu = [
        one for one in events if one.get("cat") in {"kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
    ]
    calls: dict[int, float] = {}
    for one in events:
        if one.get("cat") in {"cuda_runtime", "Runtime", "cuda_driver"} and "correlation" in one.get("args", {}):
            calls[one["args"]["correlation"]] = max(one["ts"] + one["dur"], calls.get(one["args"]["correlation"], 0.0))
    kernels = [one for one in gpu if one["cat"] in {"kernel", "Kernel"}]
    first = min(one["ts"] for one in kernels)
    last = max(one["ts"] + one["dur"] for one in kernels)
    queued, end = 0.0, first
    for one in sorted(gpu, key=lambda one: (one["ts"], one["dur"])):
        if one["ts"] < first or one["ts"] > last:
            continue
        if one["ts"] > end:
            returned = calls.get(one["args"].get("correlation"))
            if returned is not None and returned <= end + (one["ts"] - end) / 2:
                queued += one["ts"] - end
        end = max(end, one["ts"] + one["dur"])
    assert program.parts.queued_ns == pytest.approx(1000 * queued, rel=0.02)


def test_steps_are_what_the_profiler_marks(tmp_path: Path) -> None:
    """Three marked steps of two kernels each are found as such; four kernels that do not repeat make no step."""
    marked: list[dict[str, Any]] = []
    for step in range(3):
        at = 100.0 * step
        marked.append(host("user_annotation", f"ProfilerStep#{step + 7}", at, 95))
        for place, name in enumerate(("gemm", "softmax")):
            number = 2 * step + place + 1
            marked += [launch(at + 5 + 10 * place, number), kernel(name, at + 20 + 30 * place, 25, correlation=number)]
    program = read(write_trace(tmp_path / "marked.json", marked))
    assert ([one.name for one in program.steps], program.steps_by) == (
        ["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"],
        "ProfilerStep",
    )
    assert [(one.launches, one.kernel_ns) for one in program.steps] == [(2, 50_000)] * 3
    assert sum(one.wall_ns for one in program.steps) == 255_000  # from the first kernel to the end of the last
    never = [kernel(name, 30.0 * at, 20) for at, name in enumerate("abcd")]
    assert read(write_trace(tmp_path / "never.json", never)).steps == ()


def test_a_gpu_takes_no_time_of_steps_before_its_first_kernel(tmp_path: Path) -> None:
    """The second GPU begins in the second step: the first step has the kernel of the first GPU alone, and no idle."""
    events: list[dict[str, Any]] = []
    for step in range(2):
        at = 100.0 * step
        events += [host("user_annotation", f"ProfilerStep#{step}", at, 95), launch(at + 5, 2 * step + 1)]
        events.append(kernel("gemm", at + 10, 100 - 60 * step, correlation=2 * step + 1))
    events += [launch(110, 4), kernel("late", 120, 30, device=1, correlation=4)]
    first, second = (one.occupancy for one in read(write_trace(tmp_path / "t.json", events)).steps)
    assert (first.wall_ns, first.kernels_ns, first.idle_ns) == (100_000, 100_000, 0)
    assert (second.wall_ns, second.kernels_ns, second.idle_ns) == (70_000, 70_000, 0)


def stepped(walls_us: list[int], gap_us: int = 0) -> list[dict[str, Any]]:
    """Return marked steps of one kernel each, the last of which has a gap before a second kernel."""
    events: list[dict[str, Any]] = []
    at = 1000.0
    for step, wall_us in enumerate(walls_us):
        open_us = wall_us - 1 + (gap_us + 50 if step == len(walls_us) - 1 else 0)
        events += [host("user_annotation", f"ProfilerStep#{step + 7}", at, open_us), launch(at, 2 * step + 1)]
        events.append(kernel("gemm", at + 5, wall_us, correlation=2 * step + 1))
        at += wall_us
    events += [host("python_function", "train.py(31): load", at + 6, gap_us - 3), launch(at + gap_us + 3, 99)]
    return [*events, kernel("last", at + gap_us + 5, 50, correlation=99)]


def test_the_longest_gaps_say_where_they_are_and_what_the_host_did(tmp_path: Path) -> None:
    """A gap of 900 us, 500 us into its step, in which a function of Python ran: in the record and the text."""
    trace = write_trace(tmp_path / "t.json", stepped([400, 400, 500], 900))
    (gap,) = read(trace).longest_gaps
    assert (gap.start_ns, gap.gap_ns, gap.step, gap.into_step_ns) == (1_300_000, 900_000, 2, 500_000)
    assert (gap.cause.kind, gap.cause.code, gap.cause.before) == ("host", "train.py:31", "last")
    shown = CliRunner().invoke(main, [str(trace)]).stdout
    assert "most in train.py:31 (900 µs in 1 gap)" in shown
    assert "Longest gap: 900 µs (the host launched late), 500 µs into ProfilerStep#9, before last" in shown
    assert "3 steps, median 400 µs, 400 µs to 1.45 ms; slowest ProfilerStep#9: 900 µs more idle." in shown


def test_what_waits_though_it_was_launched_is_no_fault_of_what_the_host_did_meanwhile(tmp_path: Path) -> None:
    """The host ran on while launched work waited: the gap says what it was in, and the cause stays open."""
    events = [
        *(launch(0, 1), kernel("one", 10, 10, correlation=1), launch(6, 2)),
        *(host("cpu_op", "aten::item", 15, 490), kernel("two", 510, 10, correlation=2)),
    ]
    program = read(write_trace(tmp_path / "t.json", events))
    (idle,), (gap,) = program.idle, program.longest_gaps
    assert (idle.cause, gap.cause) == (
        IdleCause("queued", before="two"),
        IdleCause("queued", "aten::item", before="two"),
    )
    words = "".join(span.text for span in spans(next_steps(joined([program]))[0].words))
    assert words.startswith(
        "Idle, 96 %: for 490 µs the next kernel was launched but had not started, and nothing recorded ran"
    )


def test_a_graph_is_advised_without_the_waits_that_it_cannot_capture(tmp_path: Path) -> None:
    """Launches that come one by one beside a wait of the host: the wait has to go first, and is named."""
    program = read(
        write_export(tmp_path / "t.sqlite", [Launched("one", 0, 10_000), Launched("two", 990_000, 1_000_000)])
    )
    (cause,) = program.idle
    waits = replace(cause, cause=IdleCause("synchronizing", "aten::item", "cudaStreamSynchronize"), gap_ns=1)
    launching = replace(cause, cause=IdleCause("launching", "aten::mm"))
    for idle, is_told in (((launching, waits), True), ((launching,), False)):
        words = "".join(span.text for span in spans(next_steps(joined([replace(program, idle=idle)]))[0].words))
        assert "capture the step as a CUDA graph" in words
        told = "first take out the host's waits for the GPU, such as cudaStreamSynchronize in aten::item"
        assert (told in words) is is_told


def test_what_the_host_recorded_only_as_a_call_is_named(tmp_path: Path) -> None:
    """A late launch after a call of the system without operator or range: Next names the call, and asks for no more."""
    launched = [Launched("one", 0, 10_000), Launched("two", 990_000, 1_000_000)]
    program = read(write_export(tmp_path / "t.sqlite", launched))
    (cause,) = program.idle
    named = replace(program, idle=(replace(cause, cause=IdleCause("host", call="pthread_cond_wait")),))
    words = "".join(span.text for span in spans(next_steps(joined([named]))[0].words))
    assert words.startswith(
        "Idle, 98 %: for 980 µs the host launched late, most in pthread_cond_wait (980 µs in 1 gap)"
    )


@pytest.mark.parametrize(("stride", "may_be"), [(5, False), (100, True)])
def test_a_trace_without_most_calls_of_cuda_may_be_a_sample(tmp_path: Path, stride: int, *, may_be: bool) -> None:
    """CUPTI numbers every call: a trace that holds 1 in 100 of them may lack kernels, too, and says so."""
    first = 1 << 24
    events = [
        event
        for at in range(200)
        for event in (
            launch(10.0 * at, first + stride * at),
            kernel("k", 10.0 * at + 5, correlation=first + stride * at),
        )
    ]
    trace = write_trace(tmp_path / "t.json", events)
    program = read(trace)
    assert program.calls_share == pytest.approx(200 / (199 * stride))
    assert program.may_be_sample is may_be
    assert ("may be a sample: it holds 1 in" in CliRunner().invoke(main, [str(trace)]).stdout) is may_be


def test_ranges_are_shown_without_what_sets_them_off(tmp_path: Path) -> None:
    """`## forward ##` is shown as `forward`; data keeps the name as it is."""
    events = [host("user_annotation", "## forward ##", 0, 50), launch(5, 1), kernel("own", 20, correlation=1)]
    trace = write_trace(tmp_path / "t.json", events)
    assert read(trace).every[0].nvtx_range == "## forward ##"
    shown = CliRunner().invoke(main, [str(trace)]).stdout
    assert ("forward" in shown, "##" in shown) == (True, False)


@pytest.mark.corpus
@pytest.mark.parametrize(
    "names", [("hta_control", "hta_test"), ("hta_sampled_rank-0", "hta_sampled_rank-1")], ids=["pair", "ranks"]
)
def test_a_comparison_is_that_of_a_script(names: tuple[str, str]) -> None:
    """Kernels of a step by name on both sides, from the raw JSON; and differences add up to that of the step."""
    paths = [published(f"{name}.json.gz") for name in names]
    sides = [read_programs([path]) for path in paths]
    found = compare_programs((sides[0], sides[1]), names, anyway=True)
    assert sum(one.lost_ns for one in found.changes) == pytest.approx(found.lost_ns, abs=2)
    for path, amount_of in zip(paths, ("base", "head"), strict=True):
        ours: Counter[str] = Counter()
        for one in found.kernels:
            amount = getattr(one, amount_of)
            ours[one.name if amount_of == "head" else one.was or one.name] += amount.time_ns if amount else 0.0
        script = _kernels_of_a_step(path)
        assert sum(ours.values()) == pytest.approx(sum(script.values()), rel=1e-3)
        apart = {name for name, time_ns in script.items() if ours[name] != pytest.approx(time_ns, rel=1e-3, abs=2)}
        # Of one operator with one shape, several kernels are one row, under the name of the longest.
        assert len(apart) < 0.1 * len(script) > 10


def _kernels_of_a_step(path: Path) -> dict[str, float]:
    events = json.loads(gzip.decompress(path.read_bytes()), strict=False)["traceEvents"]
    steps = sorted(
        (one["ts"], one["ts"] + one["dur"])
        for one in events
        if str(one.get("name", "")).startswith("ProfilerStep#") and one.get("cat") in {"user_annotation", "cpu_op"}
    )
    begins = [begin for begin, _ in steps]
    launched = {
        one["args"]["correlation"]: one["ts"]
        for one in events
        if one.get("cat") in {"cuda_runtime", "Runtime"} and "correlation" in one.get("args", {})
    }
    times: defaultdict[str, float] = defaultdict(float)
    for one in events:
        if one.get("cat") in {"kernel", "Kernel"} and not one["name"].startswith("nccl"):
            moment = launched.get(one["args"].get("correlation"))
            place = -1 if moment is None else bisect_right(begins, moment) - 1
            if place >= 0 and (moment <= steps[place][1] or place < len(steps) - 1):
                times[one["name"]] += 1000 * one["dur"] / len(steps)
    return dict(times)
