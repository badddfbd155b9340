"""Measure a PyTorch workload: warm up, run inside the range, time it, trace its kernels, check the result."""

from __future__ import annotations

import gc
import math
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import torch

from rooflens.errors import EnvironmentMissingError
from rooflens.workloads.registry import RANGE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Tensors: TypeAlias = torch.Tensor | tuple[torch.Tensor, ...]

SEED = 0
WARM_UP_RUNS = 3
"""The first run compiles, loads kernels and creates library handles; libraries that tune settle after three runs."""


@dataclass(frozen=True, slots=True)
class Dtype:
    """The meaning of a type's name in `workload.toml`.

    Attributes:
        torch: Type of the operands.
        capability: Lowest compute capability with the type; below it, PyTorch fails or silently uses another.
    """

    torch: torch.dtype
    capability: tuple[int, int] = (0, 0)


DTYPES = {
    "fp32": Dtype(torch.float32),
    "tf32": Dtype(torch.float32, (8, 0)),
    "bf16": Dtype(torch.bfloat16),
    "fp16": Dtype(torch.float16),
    "fp8": Dtype(torch.float8_e4m3fn, (8, 9)),
}


class WorkloadModule(Protocol):
    """What a PyTorch workload's `main.py` defines: its lesson and nothing else.

    Attributes:
        TOLERANCE: By type, the largest error (as measured by the harness) that rounding explains.
    """

    TOLERANCE: Mapping[str, float]

    def prepare(self, parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[Any, ...]:
        """Make the operands, outside the range: what the others take."""

    def run(self, *operands: Any) -> Tensors:
        """Do the work once; each call repeats it on the same operands."""

    def reference(self, *operands: Any) -> Tensors:
        """Compute the expected result of `run` in higher precision."""


@dataclass(frozen=True, slots=True)
class MeasurePlan:
    """Where and how often to run, and what else to do.

    Attributes:
        profiled: Trace kernels with PyTorch's profiler.
        checked: Compare the result with its reference.
        case_range: Name of a range for this case inside the common range; None for no range.
    """

    device: torch.device
    iterations: int
    profiled: bool
    checked: bool = True
    case_range: str | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a measurement; times and launches are totals over all iterations.

    Attributes:
        launches: Kernels launched; None if they were not counted.
        wall_ns: Host time of the iterations, with the device idle before and after.
        kernel_ns: Time in which the device ran at least one kernel or copy; None if it was not traced.
        cold_ns: The same with the operands of each iteration in DRAM, as L2 was filled with something else before; None
            if unknown.
        max_relative_error: Largest difference from the reference over the reference's largest value; None if the result
            has a value that is not finite, or was not checked, which counts as ok.
    """

    launches: int | None
    wall_ns: int
    kernel_ns: int | None
    cold_ns: int | None
    max_relative_error: float | None
    tolerance: float
    ok: bool


@dataclass(frozen=True, slots=True)
class Activity:
    """Device work over an interval: a kernel, or a copy or fill by its copy engine."""

    name: str
    start_ns: float
    end_ns: float


def find_device(name: str, dtype: str) -> torch.device:
    """Return the device, after checking that it exists and supports the type.

    Raises:
        EnvironmentMissingError: The device does not exist, or lacks the type.
    """
    if name == "cpu":
        return torch.device("cpu")
    hint = "`--device cpu --toy` checks the program without a GPU"
    if torch.version.cuda is None:
        raise EnvironmentMissingError(f"this PyTorch ({torch.__version__}) is built without CUDA", hint)
    if not torch.cuda.is_available():
        raise EnvironmentMissingError("PyTorch finds no NVIDIA GPU", hint)
    have, need = torch.cuda.get_device_capability(), DTYPES[dtype].capability
    if have < need:
        message = f"{dtype} needs compute capability {need[0]}.{need[1]}; this GPU has {have[0]}.{have[1]}"
        raise EnvironmentMissingError(message, "choose a case of another type")
    return torch.device("cuda")


def measure(program: WorkloadModule, parameters: Mapping[str, int], dtype: str, plan: MeasurePlan) -> Measurement:
    """Run one case and check it.

    Raises:
        EnvironmentMissingError: The GPU's memory is too small for the case.
    """
    _forget()
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    try:
        return _measure(program, parameters, dtype, plan)
    except torch.OutOfMemoryError as error:
        raise EnvironmentMissingError("the case does not fit into the GPU's free memory", "try another case") from error


def _forget() -> None:
    """Free the memory of earlier cases in this process, and the shapes from which the compiler would generalize."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


def _measure(program: WorkloadModule, parameters: Mapping[str, int], dtype: str, plan: MeasurePlan) -> Measurement:
    operands = program.prepare(parameters, DTYPES[dtype].torch, plan.device)
    for _ in range(WARM_UP_RUNS):
        program.run(*operands)
    wall_ns, result = _run_in_range(program, operands, plan)
    activities = _watch(program, operands, plan)
    error = relative_error(result, program.reference(*operands)) if plan.checked else None
    tolerance = program.TOLERANCE[dtype]
    return Measurement(
        launches=None if activities is None else count_kernels(activities),
        wall_ns=wall_ns,
        kernel_ns=None if activities is None else busy_ns(activities),
        cold_ns=_cold_ns(program, operands, plan),
        max_relative_error=error,
        tolerance=tolerance,
        ok=not plan.checked or (error is not None and error <= tolerance),
    )


def _run_in_range(program: WorkloadModule, operands: tuple[Any, ...], plan: MeasurePlan) -> tuple[int, Tensors]:
    _synchronize(plan.device)
    with ExitStack() as ranges:
        for name in filter(None, (RANGE_NAME, plan.case_range)):
            ranges.enter_context(_nvtx_range(plan.device, name))
        start_ns = time.perf_counter_ns()
        for _ in range(plan.iterations):
            result = program.run(*operands)
        _synchronize(plan.device)
        wall_ns = time.perf_counter_ns() - start_ns
    return wall_ns, result


@contextmanager
def _nvtx_range(device: torch.device, name: str) -> Iterator[None]:
    # Autograd launches backward kernels from its own thread, so a push/pop range of this thread would miss them.
    if device.type != "cuda":
        yield
        return
    handle = torch.cuda.nvtx.range_start(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_end(handle)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _watch(program: WorkloadModule, operands: tuple[Any, ...], plan: MeasurePlan) -> list[Activity] | None:
    # Run again outside the range: tracing slows the host, and wall time would count that as gaps.
    if not plan.profiled or plan.device.type != "cuda":
        return None
    return _traced(lambda: program.run(*operands), plan)


def _traced(run: Callable[[], object], plan: MeasurePlan) -> list[Activity]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(plan.iterations):
            run()
        _synchronize(plan.device)
    return device_activities(profile.events())


def _cold_ns(program: WorkloadModule, operands: tuple[Any, ...], plan: MeasurePlan) -> int | None:
    l2_bytes = _l2_bytes(plan.device)
    if not plan.profiled or not l2_bytes:
        return None
    # Reading leaves no lines in L2 that a later kernel must write back.
    other = torch.ones(2 * l2_bytes // 4, device=plan.device)
    flushes = _traced(other.sum, plan)
    both = _traced(lambda: (other.sum(), program.run(*operands)), plan)
    own = without_first(both, plan.iterations, len(flushes))
    return None if own is None else busy_ns(own)


def _l2_bytes(device: torch.device) -> int | None:
    if device.type != "cuda":
        return None
    size: int | None = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", None)
    return size


def without_first(activities: Sequence[Activity], iterations: int, count: int) -> list[Activity] | None:
    """Drop what each iteration begins with.

    Args:
        activities: The work of all iterations.
        iterations: Number of iterations.
        count: Activities to drop, of all iterations together.

    Returns:
        The other activities; None if the iterations do not have as many each, so that their beginnings are unknown.
    """
    if len(activities) % iterations or count % iterations:
        return None
    each, dropped = len(activities) // iterations, count // iterations
    ordered = sorted(activities, key=lambda activity: activity.start_ns)
    return [activity for at, activity in enumerate(ordered) if at % each >= dropped]


def device_activities(events: Iterable[Any]) -> list[Activity]:
    """Select the device's work from the profiler's events, whose times are in microseconds.

    Annotations by the host also appear on the device's time line and span gaps; they are no work.
    """
    return [
        Activity(event.name, event.time_range.start * 1e3, event.time_range.end * 1e3)
        for event in events
        if event.device_type.name == "CUDA" and not event.is_user_annotation
    ]


def count_kernels(activities: Sequence[Activity]) -> int:
    """Count the kernels; copies and fills by the driver do not count."""
    return sum(not activity.name.startswith(("Memcpy", "Memset")) for activity in activities)


def busy_ns(activities: Sequence[Activity]) -> int:
    """Return the length of the union of the intervals: time shared by kernels on several streams counts once."""
    total, reached = 0.0, -math.inf
    for activity in sorted(activities, key=lambda activity: activity.start_ns):
        total += max(0.0, activity.end_ns - max(reached, activity.start_ns))
        reached = max(reached, activity.end_ns)
    return round(total)


def relative_error(result: Tensors, reference: Tensors) -> float | None:
    """Compare with the reference: largest difference over the reference's largest value, worst of all tensors.

    Per element it would mean little: where terms cancel almost to zero, any rounding is a large error.
    """
    errors = [_relative_error(*pair) for pair in zip(_tuple(result), _tuple(reference), strict=True)]
    return max(errors) if all(math.isfinite(error) for error in errors) else None


def _tuple(tensors: Tensors) -> tuple[torch.Tensor, ...]:
    return tensors if isinstance(tensors, tuple) else (tensors,)


def _relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    if result.shape != reference.shape:
        raise ValueError(f"the result has shape {tuple(result.shape)}, its reference {tuple(reference.shape)}")
    difference = (result.detach().double() - reference.detach().double()).abs().max()
    scale = reference.detach().double().abs().max().clamp_min(torch.finfo(torch.float64).tiny)
    return float(difference / scale)
