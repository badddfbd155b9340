from __future__ import annotations

import gzip
import json
import tracemalloc
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.hostile import SCRIPTS
from support.traces import Event, host, kernel, launch, write_trace

from rooflens.errors import InputError
from rooflens.ingest.timelines.chrome import read_trace
from rooflens.model.program.launches import Launches
from rooflens.model.program.timeline import BusyEvent, KernelEvent, Operands


def _step() -> list[Event]:
    """Return a forward pass of two modules in a range, each with one kernel."""
    return [
        host("user_annotation", "step", 0, 100),
        host("python_function", "train.py(12): step", 1, 98),
        host("python_function", "nn.Module: Net_0", 2, 90),
        host("python_function", "nn.Module: Linear_0", 3, 20),
        host("python_function", "torch/nn/modules/linear.py(113): forward", 3, 20),
        host("cpu_op", "aten::linear", 4, 18),
        host("cpu_op", "aten::addmm", 5, 15),
        launch(10, 1),
        host("python_function", "nn.Module: ReLU_0", 40, 20),
        host("user_annotation", "inner", 41, 18),
        host("cpu_op", "aten::relu", 42, 15),
        launch(45, 2),
        kernel("gemm", 60, 9.125, correlation=1, **{"External id": 1}),
        kernel("relu", 50, correlation=2, stream=8),
    ]


def test_kernels_come_in_order_with_what_launched_them(tmp_path: Path) -> None:
    """The innermost operator, module and own function, and all ranges, are those open at the launch, not at the run."""
    timeline = read_trace(write_trace(tmp_path / "t.json", _step()))
    relu, gemm = timeline.kernels
    assert gemm == KernelEvent(
        "gemm",
        (2, 1, 1),
        (128, 1, 1),
        60_000,
        9_125,
        0,
        7,
        "step",
        "aten::addmm",
        "Linear_0",
        "train.py:12",
        gemm.call,
        launched_by=gemm.launched_by,
    )
    assert 0 != gemm.call != relu.call
    assert (relu.name, relu.operator, relu.module, relu.nvtx_range) == ("relu", "aten::relu", "ReLU_0", "step/inner")
    assert (timeline.kind, timeline.gpu, timeline.notes) == ("PyTorch profiler", None, ())


def test_what_an_operator_was_called_with_stays_with_its_kernels(tmp_path: Path) -> None:
    """Sizes, types and values are those of the innermost operator; of a call with too many none are kept."""
    called = {"Input Dims": [[8, 4], [4, 2], []], "Input type": ["float", "float", "Scalar"]}
    shown = called | {"Input Strides": [[4, 1], [2, 1], []], "Concrete Inputs": ["", "", "1"]}
    many = {"Input Dims": [[1]] * 65, "Input type": ["float"] * 65}
    events = [
        host("cpu_op", "aten::linear", 1, 90, **{"Input Dims": [[9]], "Input type": ["float"]}),
        *(host("cpu_op", "aten::mm", 10 * i, 8, **args) for i, args in enumerate((called, shown, many, {}), 1)),
        *(launch(10 * i + 2, i) for i in range(1, 5)),
        *(kernel("gemm", 10 * i + 5, correlation=i) for i in range(1, 5)),
    ]
    dims, types = ((8, 4), (4, 2), ()), ("float", "float", "Scalar")
    assert [one.operands for one in read_trace(write_trace(tmp_path / "t.json", events)).kernels] == [
        Operands(dims, types),
        Operands(dims, types, ((4, 1), (2, 1), ()), ("", "", "1")),
        None,
        None,
    ]


def test_a_launch_that_begins_where_another_operator_ended_is_not_its(tmp_path: Path) -> None:
    """In whole microseconds, as in old traces, an operator may seem to end when the next launch begins."""
    events = [host("cpu_op", "aten::short", 8, 2), host("cpu_op", "aten::mm", 10, 50), launch(10, 1, 5)]
    timeline = read_trace(write_trace(tmp_path / "t.json", [*events, kernel("gemm", 20, correlation=1)]))
    assert next(iter(timeline.kernels)).operator == "aten::mm"


def test_operators_are_found_by_id_where_launches_are_missing(tmp_path: Path) -> None:
    """An operator is found by its ID; an ID that equals the correlation is the launch's."""
    events = [
        host("cpu_op", "aten::mm", 1, 2, **{"External id": 5}),
        host("cpu_op", "aten::other", 4, 2, **{"External id": 6}),
        kernel("gemm", 10, correlation=9, **{"External id": 5}),
        kernel("other", 20, correlation=6, **{"External id": 6}),
    ]
    timeline = read_trace(write_trace(tmp_path / "t.json", events))
    assert [one.operator for one in timeline.kernels] == ["aten::mm", None]


def test_a_backward_kernel_has_the_module_of_its_step_forward(tmp_path: Path) -> None:
    """The backward pass refers to the forward pass by PyTorch's sequence numbers; ambiguous numbers are not used."""
    numbers = [{"Sequence number": number, "Fwd thread id": 0} for number in (7, 8)]
    back = {"Sequence number": 7, "Fwd thread id": 1}
    events = [
        host("python_function", "train.py(12): step", 0, 98),
        host("python_function", "nn.Module: Net_0", 2, 90),
        host("cpu_op", "aten::empty", 3, 1, **numbers[0]),
        host("python_function", "nn.Module: Linear_0", 4, 20),
        host("cpu_op", "aten::linear", 5, 15, **numbers[0]),
        host("cpu_op", "aten::addmm", 6, 12, **numbers[0]),
        host("python_function", "nn.Module: ReLU_0", 40, 20),
        host("cpu_op", "aten::relu", 42, 15, **numbers[1]),
        *(
            one | {"tid": 2}
            for one in (
                host("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 110, 20, **back),
                host("cpu_op", "AddmmBackward0", 111, 18, **back),
                host("cpu_op", "aten::mm", 112, 9),
                launch(113, 1),
            )
        ),
        kernel("gemm", 130, correlation=1),
    ]
    (gemm,) = read_trace(write_trace(tmp_path / "t.json", events)).kernels
    assert (gemm.operator, gemm.module, gemm.code) == ("aten::mm", "Linear_0", "train.py:12")
    twice = [*events, host("cpu_op", "aten::addmm", 6, 12, **numbers[0]) | {"tid": 3}]
    assert next(iter(read_trace(write_trace(tmp_path / "t.json", twice)).kernels)).module is None


def test_an_id_that_two_threads_launched_leads_to_none(tmp_path: Path) -> None:
    """Traces of several processes in one file share correlation IDs: an ambiguous ID names no launch."""
    events = [host("cpu_op", "aten::mm", 1, 9), launch(2, 1), launch(3, 1) | {"tid": 2}, kernel("a", 9, correlation=1)]
    assert next(iter(read_trace(write_trace(tmp_path / "t.json", events)).kernels)).operator is None


def test_code_of_compilers_and_of_stacks(tmp_path: Path) -> None:
    """Code comes from Inductor's file and node, a node from its name, or the innermost own frame of a stack."""
    stack = "torch/nn/functional.py(9): relu;threading.py(9): run;net/model.py(31): forward;train.py(12): step"
    events = [
        host("cpu_op", "triton_poi_fused_add_0", 0, 10, kernel_file="/tmp/x/ab.py"),  # noqa: S108 - not opened
        launch(1, 1),
        host("cpu_op", "aten::relu", 20, 10, **{"Call stack": stack, "Module Hierarchy": "TOP(Net).act(ReLU)"}),
        launch(21, 2),
        kernel("triton_poi_fused_add_0", 30, correlation=1),
        kernel("relu", 40, correlation=2),
        kernel("triton_red_fused_native_layer_norm_3", 50),
        kernel("plain", 60),
    ]
    kernels = [*read_trace(write_trace(tmp_path / "t.json", events)).kernels]
    assert [one.code for one in kernels] == [
        "/tmp/x/ab.py, node add_0",  # noqa: S108 - not opened
        "net/model.py:31",
        "node native_layer_norm_3",
        None,
    ]
    assert kernels[1].module == "TOP(Net).act(ReLU)"


def test_copies_old_categories_and_two_gpus(tmp_path: Path) -> None:
    """Capitalized categories of old traces are read; a GPU is named if all GPUs that ran kernels have one name."""
    devices = [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}]
    copy = kernel("Memcpy HtoD", 5, 2.5) | {"cat": "gpu_memcpy"}
    first, second = kernel("a", 10) | {"cat": "Kernel"}, kernel("b", 20, device=1, stream=9)
    timeline = read_trace(write_trace(tmp_path / "t.json", [second, copy, first], deviceProperties=devices))
    assert timeline.others == (BusyEvent(5_000, 2_500, 0, 7, name="Memcpy HtoD"),)
    assert [(one.name, one.device, one.stream) for one in timeline.kernels] == [("a", 0, 7), ("b", 1, 9)]
    assert timeline.gpu is None
    alone = read_trace(write_trace(tmp_path / "t.json", [second], deviceProperties=devices))
    assert alone.gpu == "B"


def test_nanoseconds_survive_large_times(tmp_path: Path) -> None:
    """A 64-bit float cannot hold nanoseconds since 1970, so times are not read as floats."""
    text = '[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1727743122413669.123,"dur":0.001,"args":{}}]'
    (tmp_path / "t.json").write_text(text)
    (one,) = read_trace(tmp_path / "t.json").kernels
    assert (one.start_ns, one.duration_ns, one.grid) == (1_727_743_122_413_669_123, 1, None)


def test_a_kernel_without_a_time_is_counted(tmp_path: Path) -> None:
    """Kernels without a usable time or name are left out, and a note counts them."""
    bad = [kernel("a", 1) | one for one in ({"ts": float("nan")}, {"dur": -1}, {"ts": "1e99999"}, {"name": 5})]
    timeline = read_trace(write_trace(tmp_path / "t.json", [*bad, kernel("b", 2)]))
    assert len([*timeline.kernels]) == 1
    assert timeline.notes == ("left out 4 kernel events without a name or time",)


@pytest.mark.parametrize("name", [*SCRIPTS[:3], "a\x00\x1b[31m\n", "\udcff", "k" * 65_536])
def test_hostile_names_are_data(tmp_path: Path, name: str) -> None:
    """Names are kept as they are here; whoever shows them cleans them."""
    assert next(iter(read_trace(write_trace(tmp_path / "t.json.gz", [kernel(name, 1)])).kernels)).name == name


def test_a_name_longer_than_any_real_one_is_cut_with_a_note(tmp_path: Path) -> None:
    """Names are cut, with a note, since processing takes time in proportion to their length."""
    timeline = read_trace(write_trace(tmp_path / "t.json.gz", [kernel("k" * 3_000_000, 1)]))
    assert next(iter(timeline.kernels)).name == "k" * 65_535 + "…"
    assert timeline.notes == ("cut 1 name of more than 65,536 characters",)


def test_no_kernel_is_an_error(tmp_path: Path) -> None:
    """For a trace of the host alone the hint says what to switch on."""
    with pytest.raises(InputError, match="has no GPU kernel among its 1 event\n") as caught:
        read_trace(write_trace(tmp_path / "t.json", [launch(1, 1)]))
    assert "ProfilerActivity.CUDA" in caught.value.hint


def test_an_event_of_the_host_takes_some_bytes_whatever_it_says(tmp_path: Path) -> None:
    """With the same kernels and more host events, each takes 64 bytes at most: what recurs in them is kept once."""
    args = {"x": "y" * 99, "Input Dims": [[1, 2, 3]] * 9, "Input type": ["float"] * 9, "Call stack": "a.py(1): f;" * 9}

    def peak(number: int) -> int:
        host_events = [host("cpu_op", f"aten::op{i % 50}", 200 + i, 1, **args) for i in range(number)]
        path = write_trace(tmp_path / "t.json", [*_step(), *host_events])
        del host_events
        tracemalloc.start()
        assert len([*read_trace(path).kernels]) == 2
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    assert (peak(40_000) - peak(20_000)) / 20_000 < 64


def test_parts_of_the_work_add_up_to_all_of_it(tmp_path: Path) -> None:
    """Reading and finding what launched the kernels are told as parts of 1, of a plain and of a packed trace."""
    for name in ("t.json", "t.json.gz"):
        path, parts = write_trace(tmp_path / name, _step() * 500), list[float]()
        timeline = read_trace(path, parts.append)
        assert sum(parts) == pytest.approx(1.0)
        assert len([*timeline.kernels]) == len(timeline.kernels) == 1000
        assert min(parts) > 0


def test_kernels_are_the_same_however_they_are_asked_for(tmp_path: Path) -> None:
    """By place, in slices, and when all are gone through again, equal operands are one object."""
    called = {"Input Dims": [[8, 4]], "Input type": ["float"]}
    events = [host("cpu_op", "aten::relu", 10 * i, 8, **called) for i in range(1, 4)]
    events += [launch(10 * i + 1, i) for i in range(1, 4)]
    timeline = read_trace(
        write_trace(tmp_path / "t.json", [*events, *(kernel("k", 90 + i, correlation=i) for i in range(1, 4))])
    )
    kernels = timeline.kernels
    assert isinstance(kernels, Sequence)
    assert [kernels[0], kernels[-1]] == [*kernels][::2] == [*kernels[::2]]
    assert len({id(one.operands) for one in (*kernels, *kernels)}) == 1
    assert len({one.call for one in kernels}) == 3


def test_what_launches_have_in_common_is_made_once(tmp_path: Path) -> None:
    """A thousand launches of two kernels, each in an operator of its own, are of two kinds."""
    timeline = read_trace(write_trace(tmp_path / "t.json", _step() * 500))
    assert isinstance(timeline.kernels, Launches)
    assert (len(timeline.kernels), len(timeline.kernels.alike)) == (1000, 2)


def test_a_gpu_is_a_number_whatever_a_trace_calls_it(tmp_path: Path) -> None:
    """What JSON has for 1 is GPU 1; what is no number at all is GPU 0."""
    events = [kernel("k", at, device=device) for at, device in enumerate((1, True, "x", None, [1]))]
    found = [str(one.device) for one in read_trace(write_trace(tmp_path / "t.json", events)).kernels]
    assert found == ["1", "1", "0", "0", "0"]


@pytest.fixture(scope="module")
def traces(corpus: Path) -> Path:
    """Return the folder of published timelines beside the corpus."""
    folder = corpus.parent / "outcomes" / "timelines"
    if not folder.is_dir():
        pytest.skip(f"no timelines at {folder}")
    return folder


def _plain(path: Path) -> list[Any]:
    events: list[Any] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


@pytest.mark.corpus
def test_a_published_training_step_as_a_plain_count_has_it(traces: Path) -> None:
    """Kernels, their times, shapes and operators equal those that a short script reads from the decoded JSON."""
    path = traces / "hta_sampled_rank-0.json.gz"
    events = _plain(path)
    kernels = sorted((one for one in events if one.get("cat") == "kernel"), key=lambda one: one["ts"])
    launches = {one["args"]["correlation"]: one for one in events if one.get("cat") == "cuda_runtime"}
    operators = [one for one in events if one.get("cat") == "cpu_op"]

    def operator(one: Event) -> str | None:
        call = launches[one["args"]["correlation"]]
        around = [
            (other["dur"], other["name"])
            for other in operators
            if other["tid"] == call["tid"] and other["ts"] <= call["ts"] + call["dur"] / 2 <= other["ts"] + other["dur"]
        ]
        return min(around)[1] if around else None

    timeline = read_trace(path)
    assert len([*timeline.kernels]) == len(kernels) == 1_154
    assert sum(one.duration_ns for one in timeline.kernels) == sum(one["dur"] for one in kernels) * 1_000
    assert len([*timeline.others]) == 50
    for ours, theirs in zip(timeline.kernels, kernels, strict=True):
        assert (ours.name, ours.start_ns) == (theirs["name"], theirs["ts"] * 1_000)
        assert (list(ours.grid or ()), ours.stream) == (theirs["args"]["grid"], theirs["args"]["stream"])
    for ours, theirs in list(zip(timeline.kernels, kernels, strict=True))[::25]:
        assert ours.operator == operator(theirs)
    middle = [*timeline.kernels][bisect_right(kernels, 1682725898082228, key=lambda one: one["ts"]) - 1]
    assert middle.nvtx_range == "ProfilerStep#551/## sdd_preprocess_splits ##"


@pytest.mark.corpus
def test_a_published_trace_of_triton(traces: Path) -> None:
    """The kernel's code is given by Inductor's file and node."""
    timeline = read_trace(traces / "hta_triton_example.json.gz")
    (one,) = timeline.kernels
    assert (timeline.gpu, one.start_ns, one.duration_ns) == ("NVIDIA A100-PG509-200", 2_413_669_097_444_592, 1_760)
    assert (one.name, one.operator) == ("triton_poi_fused_add_cos_sin_0",) * 2
    assert one.code is not None
    assert one.code.endswith("cqaokwf2bph4egogzevc22vluasiyuui4i54zpemp6knbsggfbuu.py, node add_cos_sin_0")


@pytest.mark.corpus
def test_a_published_trace_without_kernels(traces: Path) -> None:
    """In 4,222 events of CUPTI's ranges and of the host, no kernel ran."""
    with pytest.raises(InputError, match="no GPU kernel among its 4,222 events"):
        read_trace(traces / "hta_benchmark_result_924719_1679055439_trace.json.gz")
