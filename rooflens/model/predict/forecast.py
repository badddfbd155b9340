"""Predict an operation on a GPU before it is measured: intensity, regime, and the bounds of its time.

T_math = FLOP / peak and T_memory = bytes / bandwidth; with perfect overlap a kernel takes max(T_math, T_memory), with
none the sum of both. Peaks are dense and at boost clock, as `rooflens/gpus` holds them. The parts of a composite
operation run one after another, so their bounds add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.formulas import Part
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.sizes import crossing, sweep_sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.predict.formulas import Sizes
    from rooflens.model.predict.operations import Operation, Size, Unit
    from rooflens.model.predict.sizes import Crossing
    from rooflens.model.roofline.datasheets import Datasheet


Regime = Literal["memory", "compute"]

ELEMENT_BYTES: Mapping[str, float] = MappingProxyType(
    {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp4": 0.5}
)
"""Bytes of one element by type; tf32 is stored as fp32. Scales of block formats are not counted."""

_SWITCHES = frozenset({"gated", "causal"})

_MAY_BE_NONE = frozenset({"padding", "reads", "writes", "flops"}) | _SWITCHES
"""Sizes that may be 0 although they have another usual value: a fill reads nothing, a copy computes nothing."""

LARGEST_SIZE = 10**15
"""Sizes above this are a slip of the finger."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a napkin says of one operation, or of one part of it.

    Attributes:
        label: Name of the operation, or what the part does.
        count: How often it runs; the amounts and times are those of all of them.
        peak: Pipe whose dense peak was used: `tensor_bf16`; for a composite operation that of its products.
        t_lower_s: max(T_math, T_memory), summed over the parts of a composite operation.
        regime: Which of the two is the longer one; for a composite operation, where most of its lower bound goes.
        t_upper_s: T_math + T_memory.
        parts: The steps of a composite operation; empty for a simple one.
        tokens: Tokens of one run, for operations of a whole model.
    """

    label: str
    flop: float
    moved_bytes: float
    t_math_s: float
    t_memory_s: float
    t_lower_s: float
    regime: Regime
    peak: str
    peak_flop_per_s: float
    bandwidth_bytes_per_s: float
    count: int = 1
    parts: tuple[Forecast, ...] = ()
    tokens: float | None = None

    @property
    def t_upper_s(self) -> float:
        """Time with no overlap at all."""
        return self.t_math_s + self.t_memory_s

    @property
    def intensity(self) -> float:
        """FLOP per byte of compulsory traffic."""
        return self.flop / self.moved_bytes if self.moved_bytes else inf

    @property
    def ridge(self) -> float:
        """Intensity at which the two times are equal: peak / bandwidth."""
        return self.peak_flop_per_s / self.bandwidth_bytes_per_s

    @property
    def attainable_flop_per_s(self) -> float | None:
        """FLOP per second at the lower bound of time: min(peak, intensity x bandwidth) for a simple operation."""
        return self.flop / self.t_lower_s if self.flop and self.t_lower_s else None

    @property
    def share_of_peak(self) -> float:
        """Part of the peak that can be reached at best, 0 to 1: T_math over the lower bound.

        Parts of a composite operation run on several pipes; each counts at the peak of its own.
        """
        return self.t_math_s / self.t_lower_s if self.t_lower_s else 0.0

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens per second at the lower bound of time."""
        return self.tokens / self.t_lower_s if self.tokens and self.t_lower_s else None


def forecast(operation: Operation, sizes: Mapping[str, int], dtype: str, gpu: Datasheet) -> Forecast:
    """Predict one operation on one GPU.

    Args:
        operation: A row of the table.
        sizes: Its sizes by name; those with a default may be left out.
        dtype: Type of the operands, a key of `ELEMENT_BYTES`.
        gpu: Where its peaks come from.

    Raises:
        UsageError: A size is missing, unknown or out of range, or the type is unknown.
        InputError: The GPU has no peak for that type.
    """
    if dtype not in ELEMENT_BYTES:
        raise UsageError(f"no type is called `{dtype}`", f"types are: {', '.join(ELEMENT_BYTES)}")
    whole = checked_sizes(operation, sizes)
    if operation.parts is None:
        return _simple(whole_of(operation, whole), dtype, gpu)
    parts = tuple(_simple(part, dtype, gpu) for part in operation.parts(whole))
    return composite(operation, whole, parts, _peak(operation.unit, dtype, gpu), gpu.dram_bandwidth.value)


def checked_sizes(operation: Operation, sizes: Mapping[str, int]) -> Sizes:
    """Fill in the defaults of an operation's sizes.

    Raises:
        UsageError: A size is missing, unknown, negative or beyond reason.
    """
    known = {size.name: size for size in operation.sizes}
    unknown = [name for name in sizes if name not in known]
    wanted = ", ".join(f"--{name.replace('_', '-')}" for name in known)
    if unknown:
        raise UsageError(f"`{operation.name}` has no size `{unknown[0]}`", f"its sizes are {wanted}")
    values = {name: sizes.get(name, size.default) for name, size in known.items()}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise UsageError(f"`{operation.name}` needs the size `{missing[0]}`", f"its sizes are {wanted}")
    for name, value in values.items():
        least, most = limits(known[name])
        if not least <= (value or 0) <= most:
            written = str(most) if most == 1 else f"{most:.0e}"
            raise UsageError(f"`{name}` must be {least} to {written}, not {value}", f"its sizes are {wanted}")
    return {name: value for name, value in values.items() if value is not None}


def limits(size: Size) -> tuple[int, int]:
    """Give the least and the largest value that a size may have; one of 0 to 1 is a switch."""
    least = 0 if size.default == 0 or size.name in _MAY_BE_NONE else 1
    return least, 1 if size.name in _SWITCHES else LARGEST_SIZE


def check_shape(sizes: Sizes) -> None:
    """Refuse sizes that do not fit one another.

    Raises:
        UsageError: Heads do not share the width or one another evenly, or a kernel is larger than its image.
    """
    heads, kv_heads, hidden = (sizes.get(name, 0) for name in ("heads", "kv_heads", "hidden"))
    if heads and hidden % heads:
        raise UsageError(f"`hidden` must be a multiple of `heads`: {hidden} is none of {heads}")
    if kv_heads and heads % kv_heads:
        raise UsageError(f"`heads` must be a multiple of `kv_heads`: {heads} is none of {kv_heads}")
    if "stride" in sizes and min(sizes["height"], sizes["image_width"]) + 2 * sizes["padding"] < sizes["kernel"]:
        raise UsageError(f"the kernel of {sizes['kernel']} is larger than the padded image")


def work_of(operation: Operation, sizes: Sizes, dtype: str) -> tuple[float, float]:
    """Count the FLOPs and the compulsory bytes of one run, composite operations part by part.

    Args:
        operation: A row of the table.
        sizes: All its sizes, as `checked_sizes` gives them.
        dtype: Type of the operands, a key of `ELEMENT_BYTES`.
    """
    steps = operation.parts(sizes) if operation.parts else (whole_of(operation, sizes),)
    amounts = [_work_of_part(step, ELEMENT_BYTES[dtype]) for step in steps]
    return sum(flop for flop, _ in amounts), sum(moved_bytes for _, moved_bytes in amounts)


def whole_of(operation: Operation, sizes: Sizes) -> Part:
    """Take a simple operation as the one step that it is."""
    return Part(operation.name, sizes, operation.name)


def _work_of_part(part: Part, element_bytes: float) -> tuple[float, float]:
    operation = OPERATIONS[part.operation]
    moved_bytes = element_bytes * operation.elements(part.sizes) + operation.extra_bytes(part.sizes)
    return part.count * operation.flop(part.sizes), part.count * moved_bytes


def _simple(part: Part, dtype: str, gpu: Datasheet) -> Forecast:
    peak = _peak(OPERATIONS[part.operation].unit, dtype, gpu)
    return simple(part, ELEMENT_BYTES[dtype], peak, gpu.dram_bandwidth.value)


def simple(part: Part, element_bytes: float, pipe: tuple[str, float], bandwidth_bytes_per_s: float) -> Forecast:
    """Predict one step from what its type and GPU come to: plain arithmetic, which `tracing` can follow.

    Args:
        part: A step, with all its sizes.
        element_bytes: Bytes of an element of its type.
        pipe: Where its FLOPs run, and its dense peak in FLOP per second.
        bandwidth_bytes_per_s: Bandwidth of device memory.
    """
    flop, moved_bytes = _work_of_part(part, element_bytes)
    peak, peak_flop_per_s = pipe
    t_math_s, t_memory_s = flop / peak_flop_per_s, moved_bytes / bandwidth_bytes_per_s
    return Forecast(
        label=part.label,
        flop=flop,
        moved_bytes=moved_bytes,
        t_math_s=t_math_s,
        t_memory_s=t_memory_s,
        t_lower_s=max(t_math_s, t_memory_s),
        regime="compute" if t_math_s > t_memory_s else "memory",
        peak=peak,
        peak_flop_per_s=peak_flop_per_s,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        count=part.count,
    )


def composite(
    operation: Operation,
    sizes: Sizes,
    parts: Sequence[Forecast],
    pipe: tuple[str, float],
    bandwidth_bytes_per_s: float,
) -> Forecast:
    """Add up the steps of a composite operation; its pipe is that of its products."""
    t_lower_s = sum(part.t_lower_s for part in parts)
    computing_s = sum(part.t_lower_s * (part.regime == "compute") for part in parts)
    return Forecast(
        label=operation.name,
        flop=sum(part.flop for part in parts),
        moved_bytes=sum(part.moved_bytes for part in parts),
        t_math_s=sum(part.t_math_s for part in parts),
        t_memory_s=sum(part.t_memory_s for part in parts),
        t_lower_s=t_lower_s,
        regime="compute" if computing_s > t_lower_s / 2 else "memory",
        peak=pipe[0],
        peak_flop_per_s=pipe[1],
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        parts=tuple(parts),
        tokens=operation.tokens(sizes) if operation.tokens else None,
    )


def _peak(unit: Unit, dtype: str, gpu: Datasheet) -> tuple[str, float]:
    """Choose the pipe that an operation's FLOPs run on, and its dense peak in FLOP per second.

    Products run on the tensor cores of their type, those of fp32 on the CUDA cores, as do all where a GPU has no tensor
    cores for the type; everything else is computed in fp32, whatever the type in memory, or in fp64.

    Raises:
        InputError: The GPU has no such pipe.
    """
    wanted = pipes_for(unit, dtype)
    for name in wanted:
        if name in gpu.peaks:
            return name, gpu.peaks[name].value
    known = ", ".join(sorted(gpu.peaks))
    raise InputError(f"`{gpu.name}` has no published peak for {dtype}", f"it has: {known}")


def pipes_for(unit: Unit, dtype: str) -> tuple[str, ...]:
    """Name the pipes that may run FLOPs of a type; the first one that a GPU has is the one that does."""
    if unit == "vector":
        return ("fp64",) if dtype == "fp64" else ("fp32",)
    if dtype == "fp32":
        return ("fp32",)
    return f"tensor_{dtype}", dtype


@dataclass(frozen=True, slots=True)
class Row:
    """One operation, type and GPU over the steps of a sweep; a single prediction has one step.

    Attributes:
        steps: Sizes and forecast of each step, in order.
        crossing: Where the regime changes along the sweep; None where it never does.
        achieved_flop_per_s: Measured FLOP per second to be set against the roof.
    """

    operation: Operation
    dtype: str
    gpu: Datasheet
    steps: tuple[tuple[Mapping[str, int], Forecast], ...]
    crossing: Crossing | None
    achieved_flop_per_s: float | None = None


def swept(
    operation: Operation,
    written: Mapping[str, str],
    dtype: str,
    gpu: Datasheet,
    achieved_flop_per_s: float | None = None,
) -> Row:
    """Predict every step of a sweep.

    Raises:
        UsageError: A size cannot be read, is out of range or does not fit another one, or the type is unknown.
        InputError: The GPU has no peak for the type.
    """
    sizes = [checked_sizes(operation, step) for step in sweep_sizes(written)]
    for step in sizes:
        check_shape(step)
    steps = tuple((step, forecast(operation, step, dtype, gpu)) for step in sizes)
    change = crossing(sizes, lambda step: forecast(operation, step, dtype, gpu)) if len(sizes) > 1 else None
    return Row(operation, dtype, gpu, steps, change, achieved_flop_per_s)


def of_roof(achieved_flop_per_s: float | None, result: Forecast) -> float | None:
    """Say what part of its roof a measured rate is; None where nothing was measured, or there are no FLOPs."""
    roof = result.attainable_flop_per_s
    return achieved_flop_per_s / roof if achieved_flop_per_s and roof else None


def moving(row: Row) -> list[str]:
    """Name the sizes that differ along the sweep, or the ones without a usual value where there is one step."""
    if len(row.steps) > 1:
        first = row.steps[0][0]
        return [name for name in first if any(sizes[name] != first[name] for sizes, _ in row.steps)]
    return [size.name for size in row.operation.sizes if row.steps[0][0][size.name] != size.default]
