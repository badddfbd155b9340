"""The parts of the harness that measure: intervals, errors, devices, the range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from rooflens.errors import EnvironmentMissingError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from rooflens.workloads import torch_measure  # noqa: E402 - it imports torch
from rooflens.workloads.torch_measure import Activity, MeasurePlan  # noqa: E402

CPU = torch.device("cpu")


@dataclass
class Doubling:
    """A program that doubles, with an error of `offset`, and logs its calls."""

    TOLERANCE: Mapping[str, float] = field(default_factory=lambda: {"fp32": 1e-6})
    offset: float = 0.0
    diary: list[str] = field(default_factory=list)

    def prepare(self, parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor]:
        """Make ones."""
        self.diary.append("prepare")
        return (torch.ones(parameters["n"], dtype=dtype, device=device),)

    def run(self, state: torch.Tensor) -> torch.Tensor:
        """Double, with the error."""
        self.diary.append("run")
        return 2 * state + self.offset

    def reference(self, state: torch.Tensor) -> torch.Tensor:
        """Double."""
        self.diary.append("reference")
        return 2 * state.double()


def test_kernels_that_overlap_count_once() -> None:
    """Busy time is the union of the intervals, in any order and without gaps."""
    spans = [(50.0, 60.0), (0.0, 10.0), (5.0, 20.0), (6.0, 8.0), (20.0, 30.0)]
    assert torch_measure.busy_ns([Activity("k", *span) for span in spans]) == 40
    assert torch_measure.busy_ns([]) == 0


def test_of_each_iteration_the_flush_is_left_out() -> None:
    """Three iterations of a flush of two kernels and a program of one: a third of the work is the program's."""
    work = [Activity(name, at * 10.0, at * 10.0 + 9) for at, name in enumerate(("sum", "sum 2", "relu") * 3)]
    found = torch_measure.without_first(work[::-1], 3, 6)
    assert found is not None
    assert [(one.name, one.start_ns) for one in found] == [("relu", 20.0), ("relu", 50.0), ("relu", 80.0)]
    assert torch_measure.without_first(work[1:], 3, 6) is None  # an iteration with other kernels than the rest
    assert torch_measure.without_first(work, 3, 5) is None


def test_copies_and_fills_are_no_launches() -> None:
    """The driver's copies and fills keep the device busy but do not count as kernels."""
    names = ["void gemm<float>()", "Memcpy DtoD (Device -> Device)", "Memset (Device)", "memset_kernel"]
    assert torch_measure.count_kernels([Activity(name, 0, 1) for name in names]) == 2


def test_only_the_device_s_work_is_read_from_the_profiler() -> None:
    """Host events and annotations on the device's line are dropped; microseconds become nanoseconds."""

    def event(name: str, device: str, *, annotation: bool = False) -> SimpleNamespace:
        return SimpleNamespace(
            name=name,
            device_type=SimpleNamespace(name=device),
            is_user_annotation=annotation,
            time_range=SimpleNamespace(start=1.5, end=2.0),
        )

    events = [event("kernel", "CUDA"), event("aten::mm", "CPU"), event("Compiled Region", "CUDA", annotation=True)]
    assert torch_measure.device_activities(events) == [Activity("kernel", 1500.0, 2000.0)]


def test_the_profiler_s_events_have_what_is_read() -> None:
    """PyTorch's own events have the fields that the harness reads."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(2) + 1
    events = profile.events()
    assert events
    assert torch_measure.device_activities(events) == []


def test_errors_are_relative_to_the_largest_value() -> None:
    """The error is the largest difference over the reference's largest value, worst of all tensors."""
    reference = torch.tensor([0.0, -4.0])
    assert torch_measure.relative_error(torch.tensor([1.0, -4.0]), reference) == 0.25
    assert torch_measure.relative_error((reference, reference + 2), (reference, reference)) == 0.5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_result_that_is_not_finite_has_no_error(value: float) -> None:
    """NaN and infinity give None, which is never within a tolerance, even beside correct tensors."""
    good, bad = torch.ones(2), torch.tensor([1.0, value])
    assert torch_measure.relative_error((good, bad, good), (good, good, good)) is None


def test_a_result_of_another_shape_is_a_mistake_of_the_program() -> None:
    """Different shapes are an error: broadcasting could hide a lost dimension."""
    with pytest.raises(ValueError, match="shape"):
        torch_measure.relative_error(torch.ones(2, 1), torch.ones(2))


@dataclass
class Compiled(Doubling):
    """The same, compiled by a backend that notes whether it got sizes or symbols."""

    sizes: list[bool] = field(default_factory=list)

    def run(self, state: torch.Tensor) -> torch.Tensor:
        """Double, compiled."""
        return torch.compile(_double, backend=self._note)(state)

    def _note(self, graph: torch.fx.GraphModule, inputs: list[object]) -> torch.fx.GraphModule:
        self.sizes.append(all(type(size) is int for one in inputs for size in getattr(one, "shape", [one])))
        return graph


def _double(state: torch.Tensor) -> torch.Tensor:
    return 2 * state


def test_a_case_is_compiled_as_if_it_were_the_first() -> None:
    """A second case is not compiled for variable sizes, which the compiler does after seeing two sizes."""
    program = Compiled()
    for n in (4, 8):
        assert torch_measure.measure(program, {"n": n}, "fp32", MeasurePlan(CPU, 1, profiled=False)).ok
    assert program.sizes == [True, True]


def test_preparing_and_warming_up_stay_outside_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly the requested iterations run between the start and the end of one range."""
    program = Doubling()
    monkeypatch.setattr(torch.cuda.nvtx, "range_start", lambda name: program.diary.append(f"start {name}"))
    monkeypatch.setattr(torch.cuda.nvtx, "range_end", lambda _: program.diary.append("end"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: program.diary.append("wait"))
    state = program.prepare({"n": 2}, torch.float32, CPU)
    torch_measure._run_in_range(program, state, MeasurePlan(torch.device("cuda"), 2, profiled=False))
    assert program.diary == ["prepare", "wait", "start rooflens", "run", "run", "wait", "end"]
    program.diary.clear()
    torch_measure._run_in_range(
        program, state, MeasurePlan(torch.device("cuda"), 1, profiled=False, case_range="doubling.two")
    )
    assert program.diary == ["wait", "start rooflens", "start doubling.two", "run", "wait", "end", "end"]


def test_what_is_not_checked_has_no_error() -> None:
    """Under ncu the reference is skipped: the error is unknown, and the run counts as successful."""
    found = torch_measure.measure(Doubling(), {"n": 2}, "fp32", MeasurePlan(CPU, 1, profiled=False, checked=False))
    assert (found.max_relative_error, found.ok) == (None, True)


def test_the_range_ends_even_if_the_program_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that raises leaves no open range."""
    ended: list[int] = []
    monkeypatch.setattr(torch.cuda.nvtx, "range_start", lambda _: 7)
    monkeypatch.setattr(torch.cuda.nvtx, "range_end", ended.append)
    with pytest.raises(KeyError), torch_measure._nvtx_range(torch.device("cuda"), "x"):
        raise KeyError
    assert ended == [7]


def test_a_wrong_result_is_not_ok() -> None:
    """A result off by one percent fails, and the measurement says by how much."""
    measurement = torch_measure.measure(Doubling(offset=0.02), {"n": 3}, "fp32", MeasurePlan(CPU, 1, profiled=True))
    assert not measurement.ok
    assert measurement.max_relative_error == pytest.approx(0.01, rel=1e-4)
    assert (measurement.launches, measurement.kernel_ns) == (None, None)


def test_too_little_memory_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running out of GPU memory is an environment error, not a traceback."""
    program = Doubling()
    monkeypatch.setattr(program, "run", lambda _: (_ for _ in ()).throw(torch.OutOfMemoryError("full")))
    with pytest.raises(EnvironmentMissingError, match="free memory") as caught:
        torch_measure.measure(program, {"n": 1}, "fp32", MeasurePlan(CPU, 1, profiled=False))
    assert caught.value.exit_code == 3


def _pretend_gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)


def test_a_type_that_the_gpu_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """fp8 on a GPU without it is an error with both compute capabilities."""
    _pretend_gpu(monkeypatch, (8, 0))
    with pytest.raises(EnvironmentMissingError, match=r"fp8 needs compute capability 8\.9; this GPU has 8\.0"):
        torch_measure.find_device("cuda", "fp8")
    assert torch_measure.find_device("cuda", "tf32").type == "cuda"


@pytest.mark.parametrize(("cuda", "message"), [(None, "is built without CUDA"), ("13.0", "finds no NVIDIA GPU")])
def test_a_missing_gpu_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch, cuda: str | None, message: str) -> None:
    """A PyTorch without CUDA and a machine without a GPU give different errors, both with a hint what runs without."""
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentMissingError, match=message) as caught:
        torch_measure.find_device("cuda", "bf16")
    assert "--device cpu --toy" in caught.value.hint
