"""Predict an operation on a GPU before it is measured: intensity, regime, and the floor of its time.

T_math = FLOP / peak, T_memory = bytes / bandwidth, T_comms = bytes sent / bandwidth of the link in one direction.
Beside the products, T_vector = FLOPs on CUDA cores / their peak, T_special = special functions / their rate and
T_issue = instructions that unpack weights / those issued a second; besides DRAM, T_L2 = bytes of L2 / its bandwidth.
The longest of them is the floor of its time, from cold caches. The warm floor leaves T_memory out: it holds if operands
and results fit in L2 and are there already. A kernel whose floor is shorter than its launch takes as long as the
launch. Peaks are dense, as `rooflens/gpus` holds them, and for floors at the highest clock that the card is known, or
assumed, to run at. The parts of a composite operation run one after another, so their floors add up; where one kernel
could do them all, it has a floor of its own, `t_fused_s`: the longest time of a unit for all parts together, with the
traffic of the whole. If GPUs share an operation, all amounts and times are those of one GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError, UsageError
from rooflens.format import duration, si
from rooflens.model.predict.communication import Path, PathKind, Taken, algorithms_of, bus_factor, path_of
from rooflens.model.predict.operations import OPERATIONS, the_operation
from rooflens.model.predict.options import Options
from rooflens.model.predict.rows import (
    DTYPES,
    Operation,
    Part,
    Sizes,
    Unit,
    Widths,
    pipes_for,
    result_type,
    the_dtype,
    widths_of,
)
from rooflens.model.predict.sizes import check_shape, checked_sizes, sweep_sizes
from rooflens.model.roofline.datasheets import Datasheet, the_datasheet

if TYPE_CHECKING:
    from rooflens.model.predict.compared import Compared
    from rooflens.model.predict.published import PublishedTimes

Regime = Literal["memory", "compute", "communication", "overhead"]

LAUNCH_FLOOR_S = 5e-6
"""A launch costs 2 to 5 us of host time, as `overhead_duration_ns` of the verdicts has it: a kernel whose floor is
shorter runs as long as its launch."""

Longest = Literal["t_math_s", "t_vector_s", "t_special_s", "t_issue_s", "t_memory_s", "t_l2_s", "t_comms_s"]
"""Published names of the times that bound a step."""


SOFTWARE_ONLY = frozenset({"fp64"})
"""Types whose exponentials are computed in software: special functions have the precision of fp32."""


class SideRates(Struct, frozen=True):
    """A GPU's rates besides its peak and DRAM bandwidth; infinite if unknown.

    Infinite rates bound nothing, so that the formulas need no branches.

    Attributes:
        vector_flop_per_s: Peak of the CUDA cores; infinite where the products run there, too.
        vector: Their pipe.
    """

    special_per_s: float = inf
    issued_per_s: float = inf
    l2_bytes_per_s: float = inf
    vector_flop_per_s: float = inf
    vector: str = ""


def side_rates(gpu: Datasheet, pipe: str, dtype: str) -> SideRates:
    """Compute the rates at the clock of a pipe's peak, and for the highest clock."""
    over = gpu.clock_of(pipe).value / gpu.boost_clock.value * gpu.above_boost
    vector, vector_flop_per_s = _known_peak("vector", dtype, gpu) or ("", inf)
    return SideRates(
        special_per_s=inf if dtype in SOFTWARE_ONLY or not gpu.special_rate else gpu.special_rate.value * over,
        issued_per_s=gpu.issue_rate.value * over if gpu.issue_rate else inf,
        l2_bytes_per_s=gpu.l2_bandwidth.value * gpu.above_boost if gpu.l2_bandwidth else inf,
        vector_flop_per_s=inf if vector == pipe else vector_flop_per_s,
        vector=vector,
    )


class Forecast(Struct, frozen=True):
    """The prediction for an operation, or for one part of it; times are in seconds.

    Attributes:
        label: Name of the operation, or what the part does.
        count: How often it runs; amounts and times are for all runs.
        peak: Pipe whose dense peak was used: `tensor_bf16`; for a composite operation that of its products.
        peak_flop_per_s: That peak, at the highest clock.
        t_lower_s: The floor from cold caches: the longest of its times, summed over the parts of a composite operation.
        t_fused_s: The floor of one kernel that does all parts; None for a simple operation.
        fused_on_chip_s: That without DRAM.
        regime: What takes longest; for a composite operation, what most of its floor goes to; `overhead` if the floor
            is shorter than the launches.
        parts: The steps of a composite operation; empty for a simple one.
        tokens: Tokens of one run, for whole models.
        sent_bytes: What one GPU must send to others.
        t_comms_s: Time that its link needs for that.
        link: The link over which GPUs share the operation, or `network`; None if they do not.
        link_bytes_per_s: Its bandwidth in one direction.
        algorithms: What the algorithms of libraries take for a collective, the least first.
        buffer_bytes: The size of a collective; 0 for other operations.
        bus_factor: Its bus bandwidth over size a second.
        longest: The longest of a simple operation's times; None for a composite one.
        vector_flop: FLOPs besides the products, on the CUDA cores; they are in `flop`, too.
        vector_s: Time that they take; 0 where the products run there, too, and `t_math_s` has them all.
        special: Special functions (MUFU), such as exponentials.
        special_s: Time that they take; 0 if their rate is unknown.
        issued: Instructions besides the products: those that unpack weights.
        issue_s: Time that issuing them takes; 0 if the rate is unknown.
        l2_bytes: Bytes between the SMs and L2.
        l2_s: Time that moving them takes; 0 if L2's bandwidth is unknown.
        rates: The rates behind these four times; infinite if not known.
        data_bytes: Operands and results, each once: what L2 must hold for the warm floor.
        l2_size_bytes: What L2 holds; None if unknown.
        rereads: Bytes that kernels move over those of the floor: above 1 where rows are too long for an SM.
        clock_hz: The clock of the floor: the highest that the card is known, or assumed, to run at.
        above_boost: That over the rated boost clock: 1 for a card that stops there.
        measured_s: Its measured time, if that was given.
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
    sent_bytes: float = 0.0
    t_comms_s: float = 0.0
    link: PathKind | None = None
    link_bytes_per_s: float | None = None
    algorithms: tuple[Taken, ...] = ()
    buffer_bytes: float = 0.0
    bus_factor: float = 0.0
    t_fused_s: float | None = None
    fused_on_chip_s: float | None = None
    longest: Longest | None = None
    vector_flop: float = 0.0
    vector_s: float = 0.0
    special: float = 0.0
    special_s: float = 0.0
    issued: float = 0.0
    issue_s: float = 0.0
    l2_bytes: float = 0.0
    l2_s: float = 0.0
    rates: SideRates = SideRates()
    data_bytes: float = 0.0
    l2_size_bytes: float | None = None
    rereads: float = 1.0
    clock_hz: float = 0.0
    above_boost: float = 1.0
    measured_s: float | None = None

    def __repr__(self) -> str:
        amounts = f"{si(self.flop, 'FLOP')}, {si(self.moved_bytes, 'B')}"
        return f"<Forecast of {self.label}: {self.regime}-bound, floor {duration(self.t_lower_s * 1e9)}, {amounts}>"

    @property
    def attainable(self) -> PublishedTimes | None:
        """What published kernels of this operation would take; None if there is none, or launches take longer."""
        from rooflens.model.predict.published import attainable  # noqa: PLC0415 - its points need this module's floors

        return None if self.regime == "overhead" else attainable(self.label, self.t_lower_s, rereads=self.rereads)

    @property
    def compared(self) -> tuple[Compared, ...]:
        """The measured time compared with the floor and with published kernels; empty if none was given."""
        from rooflens.model.predict.compared import compared_times  # noqa: PLC0415 - published points need floors

        if self.measured_s is None or not self.t_lower_s:
            return ()
        times_ns = 1e9 * self.measured_s, 1e9 * self.floor_s
        apart_ns = None if self.t_fused_s is None else 1e9 * self.t_lower_s
        return compared_times(*times_ns, self.attainable, 1e9 * self.t_without_dram_s, apart_ns)

    @property
    def floor_s(self) -> float:
        """The time that no kernel is faster than, from cold caches: of one kernel where one could do all parts."""
        return self.t_lower_s if self.t_fused_s is None else self.t_fused_s

    @property
    def t_upper_s(self) -> float:
        """The time if nothing overlaps: arithmetic, then memory, then links, each at its full rate."""
        if self.parts:
            return sum(part.t_upper_s for part in self.parts)
        working_s = max(self.t_math_s, self.vector_s, self.special_s, self.issue_s)
        return working_s + max(self.t_memory_s, self.l2_s) + self.t_comms_s

    @property
    def rated_flop_per_s(self) -> float:
        """The pipe's peak at the rated clock, as its maker states it."""
        return self.peak_flop_per_s / self.above_boost

    @property
    def algorithm_bytes_per_s(self) -> float | None:
        """Bytes of a collective's buffer a second, as measured; None if it was not, or is no collective."""
        return self.buffer_bytes / self.measured_s if self.measured_s and self.buffer_bytes else None

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Bus bandwidth as measured, which nccl-tests compare with the link's; None as above."""
        found = self.algorithm_bytes_per_s
        return None if found is None else found * self.bus_factor

    @property
    def t_lower_warm_s(self) -> float | None:
        """The floor where L2 holds operands and results; None if they do not fit, or its size is not known.

        It is the cold floor where DRAM does not bound that. Where L2's bandwidth is not known, only arithmetic and
        links bound it.
        """
        if self.l2_size_bytes is None or self.data_bytes > self.l2_size_bytes:
            return None
        return sum(part.t_without_dram_s for part in self.parts) if self.parts else self.t_without_dram_s

    @property
    def t_without_dram_s(self) -> float:
        """The floor without DRAM: nothing is faster, wherever its data is; unknown times are 0."""
        if self.fused_on_chip_s is not None:
            return self.fused_on_chip_s
        if self.parts:
            return sum(part.t_without_dram_s for part in self.parts)
        return max(self.t_math_s, self.vector_s, self.special_s, self.issue_s, self.l2_s, self.t_comms_s)

    @property
    def t_vector_s(self) -> float | None:
        """Time of the FLOPs beside the products; None if the peak of the CUDA cores is unknown."""
        return self.vector_s if self.rates.vector else None

    @property
    def t_special_s(self) -> float | None:
        """Time that special functions take; None if their rate is unknown."""
        return None if self.rates.special_per_s == inf else self.special_s

    @property
    def t_issue_s(self) -> float | None:
        """Time that it takes to issue the counted instructions; None if the rate is unknown."""
        return None if self.rates.issued_per_s == inf else self.issue_s

    @property
    def t_l2_s(self) -> float | None:
        """Time that the bytes of L2 take; None if its bandwidth is unknown."""
        return None if self.rates.l2_bytes_per_s == inf else self.l2_s

    @property
    def intensity(self) -> float:
        """FLOP per byte of compulsory traffic."""
        return self.flop / self.moved_bytes if self.moved_bytes else inf

    @property
    def ridge(self) -> float:
        """Intensity at which T_math and T_memory are equal: peak / bandwidth."""
        return self.peak_flop_per_s / self.bandwidth_bytes_per_s

    @property
    def link_intensity(self) -> float | None:
        """FLOP per byte sent; None if nothing is sent."""
        return self.flop / self.sent_bytes if self.sent_bytes else None

    @property
    def link_ridge(self) -> float | None:
        """FLOP per byte sent at which T_math and T_comms are equal: peak / link; None without a link."""
        return self.peak_flop_per_s / self.link_bytes_per_s if self.link_bytes_per_s else None

    @property
    def roof_flop_per_s(self) -> float | None:
        """FLOP per second at the floor of its time: min(peak, intensity x bandwidth) for a simple operation."""
        return self.flop / self.t_lower_s if self.flop and self.t_lower_s else None

    @property
    def share_of_peak(self) -> float:
        """Largest share of the rated peak that can be reached: FLOPs over it, over the floor.

        It is above 1 where the card may run above its rated clock. Parts of a composite operation run on several pipes;
        each counts at the peak of its own.
        """
        return self.t_math_s * self.above_boost / self.t_lower_s if self.t_lower_s else 0.0

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens per second at the floor of its time."""
        return self.tokens / self.t_lower_s if self.tokens and self.t_lower_s else None


def forecast(  # noqa: PLR0913 - what is predicted, on what, and how
    operation: Operation,
    sizes: Mapping[str, int],
    dtype: str,
    gpu: Datasheet,
    options: Options = Options(),  # noqa: B008 - frozen
    *,
    moved_bytes: float | None = None,
) -> Forecast:
    """Predict one operation on one GPU, or on several equal GPUs that share it.

    Args:
        operation: A row of the table.
        sizes: Its sizes by name; those with a default may be left out.
        dtype: Type of the operands, one of `DTYPES`.
        gpu: Where its peaks come from.
        options: Everything else; its type and GPU are ignored in favour of those above.
        moved_bytes: Compulsory bytes of a simple operation, if they are known better than from one type for all
            operands; None for the operation's own formula.

    Raises:
        UsageError: A size is missing, unknown or out of range, or a type is unknown.
        InputError: The GPU has no peak for that type, or no link to as many others.
    """
    dtype = the_dtype(dtype)
    widths = widths_of(operation, dtype, options.out_dtype)
    whole = checked_sizes(operation, sizes)
    gpus = operation.group(whole)
    over = path_of(gpu, gpus, options.link, options.network_gb_per_s) if gpus > 1 else None
    if operation.parts is None:
        found = _simple(whole_of(operation, whole), widths, dtype, gpu, over, moved_bytes)
        return _as_algorithms_send(found, operation, whole, over) if operation.algorithms and over else found
    parts = tuple(_simple(part, widths_in(part, widths), dtype, gpu, over) for part in operation.parts(whole))
    found = _composite(operation, whole, parts, dtype, gpu)
    if not operation.fused:
        return found
    if operation.fused_parts is not None:
        steps = operation.fused_parts(whole)
        parts = tuple(_simple(part, widths_in(part, widths), dtype, gpu, over) for part in steps)
    memory_s = _work_of_part(whole_of(operation, whole), widths)[1] / gpu.dram_bandwidth.value
    beside_s = (sum(getattr(part, name) for part in parts) for name in ("special_s", "issue_s", "t_comms_s"))
    on_chip_s = max(*_of_units(parts), *beside_s)
    return replace(found, t_fused_s=max(memory_s, on_chip_s), fused_on_chip_s=on_chip_s)


def _of_units(parts: Iterable[Forecast]) -> tuple[float, ...]:
    """Add up the times of FLOPs that run on the same pipe."""
    spent_s: dict[str, float] = {}
    for part in parts:
        spent_s[part.peak] = spent_s.get(part.peak, 0.0) + part.t_math_s
        spent_s[part.rates.vector] = spent_s.get(part.rates.vector, 0.0) + part.vector_s
    return tuple(spent_s.values())


def _as_algorithms_send(forecast: Forecast, operation: Operation, sizes: Sizes, over: Path) -> Forecast:
    """Say beside the floor of a collective what the algorithms of libraries take."""
    gpus = operation.group(sizes)
    return replace(
        forecast,
        algorithms=algorithms_of(operation, sizes["bytes"], gpus, over),
        buffer_bytes=sizes["bytes"],
        bus_factor=bus_factor(operation.name, gpus) or 0.0,
    )


def widths_in(part: Part, widths: Widths) -> Widths:
    """Return the widths of a step of a composite operation: only products have operands narrower than results."""
    return widths if OPERATIONS[part.operation].results else Widths(widths.result, widths.result)


def work_of(operation: Operation, sizes: Sizes, dtype: str, out_dtype: str | None = None) -> tuple[float, float]:
    """Count the FLOPs and the compulsory bytes of one run, composite operations part by part.

    Args:
        operation: A row of the table.
        sizes: All its sizes, as `checked_sizes` gives them.
        dtype: Type of the operands, one of `DTYPES`.
        out_dtype: Type of the results of products; None for the usual.
    """
    widths = widths_of(operation, dtype, out_dtype)
    if operation.parts is None:
        return _work_of_part(whole_of(operation, sizes), widths)
    amounts = [_work_of_part(step, widths_in(step, widths)) for step in operation.parts(sizes)]
    return sum(flop for flop, _ in amounts), sum(moved_bytes for _, moved_bytes in amounts)


def whole_of(operation: Operation, sizes: Sizes) -> Part:
    """Return the one step of a simple operation."""
    return Part(operation.name, sizes, operation.name)


def _work_of_part(part: Part, widths: Widths) -> tuple[float, float]:
    operation = OPERATIONS[part.operation]
    moved_bytes = widths.operand * operation.elements(part.sizes) + operation.extra_bytes(part.sizes)
    moved_bytes += _wider_bytes(part, widths)
    return part.count * operation.flop(part.sizes), part.count * moved_bytes


def _wider_bytes(part: Part, widths: Widths) -> float:
    """Count the extra bytes of results that are wider than the operands; negative if they are narrower."""
    results = OPERATIONS[part.operation].results
    return (widths.result - widths.operand) * results(part.sizes) if results else 0.0


def _sent_by_part(part: Part, widths: Widths) -> float:
    operation, sizes = OPERATIONS[part.operation], part.sizes
    elements = widths.operand * operation.sent(sizes) + widths.result * operation.sent_results(sizes)
    return part.count * (elements + operation.sent_bytes(sizes))


ROW_KEPT = 228 * 1024 // 4
"""The longest row that an SM can keep as numbers of fp32, in the shared memory of the largest ones (CC 9.0, 10.0)."""


def rereads_of(part: Part, widths: Widths) -> float:
    """Return by what kernels that read long rows twice move more than the floor allows for."""
    operation = OPERATIONS[part.operation]
    if operation.read_again is None or part.sizes["width"] <= ROW_KEPT:
        return 1.0
    again = part.count * widths.operand * operation.read_again(part.sizes)
    return 1 + again / _work_of_part(part, widths)[1]


def _simple(  # noqa: PLR0913, PLR0917 - what a step is predicted from
    part: Part, widths: Widths, dtype: str, gpu: Datasheet, over: Path | None, counted_bytes: float | None = None
) -> Forecast:
    """Predict a step; `counted_bytes` take the place of the bytes of its formula."""
    peak, peak_flop_per_s = _peak(OPERATIONS[part.operation].unit, dtype, gpu)
    rates, bandwidth_bytes_per_s = side_rates(gpu, peak, dtype), gpu.dram_bandwidth.value
    flop, moved_bytes = _work_of_part(part, widths)
    moved_bytes = moved_bytes if counted_bytes is None else counted_bytes
    sent_bytes = _sent_by_part(part, widths) if over else 0.0
    operation = OPERATIONS[part.operation]
    vector_flop = part.count * operation.vector_flop(part.sizes) if operation.vector_flop else 0.0
    vector_s = vector_flop / rates.vector_flop_per_s
    # Where all FLOPs run on one pipe, its time has them all.
    t_math_s = (flop - vector_flop * (rates.vector_flop_per_s != inf)) / peak_flop_per_s
    t_memory_s = moved_bytes / bandwidth_bytes_per_s
    t_comms_s = sent_bytes / over.bytes_per_s if over else 0.0
    special = part.count * operation.special(part.sizes) if operation.special else 0.0
    issued = part.count * operation.issued(part.sizes) if operation.issued else 0.0
    l2_bytes = moved_bytes
    if operation.l2_bytes and counted_bytes is None:
        l2_bytes = part.count * (operation.l2_bytes(part.sizes, widths.operand) + _wider_bytes(part, widths))
    special_s, issue_s = special / rates.special_per_s, issued / rates.issued_per_s
    l2_s = l2_bytes / rates.l2_bytes_per_s
    working: list[tuple[Longest, float]] = [("t_math_s", t_math_s)]
    moving: list[tuple[Longest, float]] = [("t_memory_s", t_memory_s)]
    # What an operation does not count needs no comparison.
    if operation.vector_flop:
        working.append(("t_vector_s", vector_s))
    if operation.special:
        working.append(("t_special_s", special_s))
    if operation.issued:
        working.append(("t_issue_s", issue_s))
    if operation.l2_bytes:
        moving.append(("t_l2_s", l2_s))
    (work, working_s), (move, moving_s) = (max(times, key=itemgetter(1)) for times in (working, moving))
    longest_of = _regime(working_s, moving_s, t_comms_s)
    untiled = replace(part, sizes={**part.sizes, "tile": 0}) if part.sizes.get("tile") else None
    t_lower_s = max(working_s, moving_s, t_comms_s)
    return Forecast(
        label=part.label,
        flop=flop,
        moved_bytes=moved_bytes,
        t_math_s=t_math_s,
        t_memory_s=t_memory_s,
        t_lower_s=t_lower_s,
        regime="overhead" if t_lower_s < part.count * LAUNCH_FLOOR_S else longest_of,
        peak=peak,
        peak_flop_per_s=peak_flop_per_s,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        count=part.count,
        sent_bytes=sent_bytes,
        t_comms_s=t_comms_s,
        link=over.kind if over else None,
        link_bytes_per_s=over.bytes_per_s if over else None,
        longest="t_comms_s" if longest_of == "communication" else work if longest_of == "compute" else move,
        vector_flop=vector_flop,
        vector_s=vector_s,
        special=special,
        special_s=special_s,
        issued=issued,
        issue_s=issue_s,
        l2_bytes=l2_bytes,
        l2_s=l2_s,
        rates=rates,
        data_bytes=_work_of_part(untiled, widths)[1] if untiled else moved_bytes,
        l2_size_bytes=gpu.l2_size.value if gpu.l2_size else None,
        rereads=rereads_of(part, widths),
        clock_hz=gpu.clock_of(peak).value * gpu.above_boost,
        above_boost=gpu.above_boost,
    )


def _composite(operation: Operation, sizes: Sizes, parts: Sequence[Forecast], dtype: str, gpu: Datasheet) -> Forecast:
    """Add up the steps of a composite operation; its pipe is the one that its products use."""
    peak, peak_flop_per_s = _peak(operation.unit, dtype, gpu)
    sums: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in _ADDED}
    spent_s = (
        sum(part.t_lower_s * (part.regime == regime) for part in parts)
        for regime in ("compute", "memory", "communication")
    )
    launches = sum(part.count for part in parts)
    return Forecast(
        label=operation.name,
        regime="overhead" if sums["t_lower_s"] < launches * LAUNCH_FLOOR_S else _regime(*spent_s),
        peak=peak,
        peak_flop_per_s=peak_flop_per_s,
        bandwidth_bytes_per_s=gpu.dram_bandwidth.value,
        parts=tuple(parts),
        tokens=operation.tokens(sizes) if operation.tokens else None,
        link=parts[0].link,
        link_bytes_per_s=parts[0].link_bytes_per_s,
        rates=parts[0].rates,
        l2_size_bytes=parts[0].l2_size_bytes,
        clock_hz=max(part.clock_hz for part in parts),
        above_boost=parts[0].above_boost,
        **sums,
    )


_ADDED = (
    *("flop", "vector_flop", "moved_bytes", "sent_bytes", "special", "issued", "l2_bytes", "data_bytes"),
    *("t_math_s", "vector_s", "t_memory_s", "t_lower_s", "t_comms_s", "special_s", "issue_s", "l2_s"),
)
"""What the steps of a composite operation add up to."""


def _regime(math_s: float, memory_s: float, comms_s: float) -> Regime:
    """Name the longest of three times."""
    if comms_s > max(math_s, memory_s):
        return "communication"
    return "compute" if math_s > memory_s else "memory"


def _peak(unit: Unit, dtype: str, gpu: Datasheet) -> tuple[str, float]:
    """Choose the pipe that an operation's FLOPs run on, and its dense peak in FLOP per second at the highest clock.

    Products run on the tensor cores of their type if the GPU has them, but those of fp32, and fp64 FLOPs that a user
    counted, run on the CUDA cores. All else is computed in fp32, whatever the type in memory, or in fp64.

    Raises:
        InputError: The GPU has no such pipe.
    """
    found = _known_peak(unit, dtype, gpu)
    if found is None:
        known = ", ".join(one for one in DTYPES if ":" not in one and _known_peak(unit, one, gpu))
        raise InputError(f"`{gpu.name}` has no published peak for {dtype}", f"it has: {known}")
    return found


def _known_peak(unit: Unit, dtype: str, gpu: Datasheet) -> tuple[str, float] | None:
    known = ((pipe, gpu.peak(pipe)) for pipe in pipes_for(unit, dtype))
    return next(((pipe, peak.value * gpu.above_boost) for pipe, peak in known if peak is not None), None)


def usual_dtype(operation: Operation, gpu: Datasheet) -> str:
    """Choose the default type: the operation's own, or the faster of fp16 and fp32 on a GPU that lacks it.

    A GPU has a type if it multiplies matrices in it, whatever pipe the operation runs on. Some chips compute fp16 at a
    small part of their fp32 rate, so the faster one is taken.
    """
    peaks = {dtype: _known_peak("matrix", dtype, gpu) for dtype in (operation.dtype, "fp16", "fp32")}
    known = {dtype: peak[1] for dtype, peak in peaks.items() if peak}
    return operation.dtype if operation.dtype in known else max(known, key=known.__getitem__, default=operation.dtype)


class ForecastRow(Struct, frozen=True):
    """One operation, type and GPU over the steps of a sweep; a single prediction has one step.

    Attributes:
        steps: Sizes and forecast of each step, in order.
        crossings: Where the regime changes along the sweep: the sizes there and the new regime.
        options: What was asked for.
    """

    operation: Operation
    dtype: str
    gpu: Datasheet
    steps: tuple[tuple[Sizes, Forecast], ...]
    crossings: tuple[tuple[Sizes, Regime], ...] = ()
    options: Options = Options()

    @property
    def result_dtype(self) -> str:
        """The type of its results."""
        return result_type(self.operation, self.dtype, self.options.out_dtype)


def predicted(operation: str, sizes: Mapping[str, int], options: Options) -> ForecastRow:
    """Predict an operation at one set of sizes; without a type, in the default one for that GPU.

    Raises:
        UsageError: There is no such operation, type or size, a size does not fit another one, or no GPU, or more than
            one, has this name.
        InputError: The GPU has no peak for the type, or no link to as many others.
    """
    found, gpu = the_operation(operation), the_datasheet(options.gpu)
    return _forecast_row(found, [sizes], the_dtype(options.dtype or usual_dtype(found, gpu)), gpu, options)


def swept(
    operation: Operation,
    written: Mapping[str, str],
    dtype: str,
    gpu: Datasheet,
    options: Options = Options(),  # noqa: B008 - frozen
) -> ForecastRow:
    """Predict every step of a sweep.

    Raises:
        UsageError: A size cannot be read, is out of range or does not fit another one, or the type is unknown.
        InputError: The GPU has no peak for the type, or no link to as many others.
    """
    return _forecast_row(operation, sweep_sizes(written), the_dtype(dtype), gpu, options)


def _forecast_row(
    operation: Operation, steps: Iterable[Mapping[str, int]], dtype: str, gpu: Datasheet, options: Options
) -> ForecastRow:
    sizes = [checked_sizes(operation, step) for step in steps]
    if options.measured_ms is not None and len(sizes) > 1:
        raise UsageError("a measured time is of one size, and several are swept", "give each size one value")
    for step in sizes:
        check_shape(step)

    measured_s = None if options.measured_ms is None else options.measured_ms / 1e3

    def at(step: Sizes) -> Forecast:
        return replace(forecast(operation, step, dtype, gpu, options), measured_s=measured_s)

    return ForecastRow(operation, dtype, gpu, tuple((step, at(step)) for step in sizes), crossings(sizes, at), options)


def crossings(steps: Sequence[Sizes], evaluate: Callable[[Sizes], Forecast]) -> tuple[tuple[Sizes, Regime], ...]:
    """Find every change of regime from a step of a sweep to the next.

    If all swept sizes are equal, the exact size is found by bisection between the two steps; otherwise the step after
    the change is returned.

    Returns:
        For each change the sizes at which the new regime begins, and that regime.
    """
    regimes = [evaluate(step).regime for step in steps]
    changes = (i for i in range(1, len(steps)) if regimes[i] != regimes[i - 1])
    return tuple((_regime_begin(steps[i - 1], steps[i], regimes[i], evaluate), regimes[i]) for i in changes)


def _regime_begin(low: Sizes, high: Sizes, regime: Regime, evaluate: Callable[[Sizes], Forecast]) -> Sizes:
    """Find the first sizes of a regime between two steps."""
    walking = [name for name in low if low[name] != high[name]]
    if len({(low[name], high[name]) for name in walking}) > 1:
        return high
    below, above = low[walking[0]], high[walking[0]]
    while abs(above - below) > 1:
        middle = (below + above) // 2
        if evaluate({**high, **dict.fromkeys(walking, middle)}).regime == regime:
            above = middle
        else:
            below = middle
    return {**high, **dict.fromkeys(walking, above)}


def moving(row: ForecastRow) -> list[str]:
    """Name the sizes that change along a sweep; for a single step, those that differ from their defaults."""
    if len(row.steps) > 1:
        first = row.steps[0][0]
        return [name for name in first if any(sizes[name] != first[name] for sizes, _ in row.steps)]
    return [size.name for size in row.operation.sizes if row.steps[0][0][size.name] != size.default]


_WITHOUT_ROWS: Mapping[str, str] = {"gemm": "m", "grouped-gemm": "m", "attention-decode": "length"}
"""Steps that hold weights or a cache -> the size that is 0 where there is nothing else."""

_EACH_ONCE = frozenset({"gemv", "gemm", "quantized-gemm", "batched-gemm", "attention-flash", "attention-decode"})
"""Operations whose compulsory traffic is what memory must hold: each operand moves once."""


def held_bytes(operation: Operation, sizes: Sizes, dtype: str, out_dtype: str | None = None) -> float | None:
    """Return the bytes that one GPU must hold at once; None if unknown for this operation.

    For a whole model that is its weights and its cache: a lower bound, as activations come on top.

    Args:
        operation: A row of the table.
        sizes: All its sizes.
        dtype: Type of the operands.
        out_dtype: Type of the results; None for the usual.
    """
    if operation.name in _EACH_ONCE:
        return work_of(operation, {**sizes, "tile": 0}, dtype, out_dtype)[1]
    if operation.tokens is None or operation.parts is None:
        return None
    held = 0.0
    for part in operation.parts(sizes):
        one, empty = OPERATIONS[part.operation], _WITHOUT_ROWS.get(part.operation)
        if empty is None:
            continue
        all_experts = {"groups": sizes["experts"]} if "groups" in part.sizes else {}
        without = work_of(one, {**part.sizes, **all_experts, empty: 0}, dtype)[1]
        whole = work_of(one, part.sizes, dtype)[1]
        held += part.count * (whole - without if part.operation == "attention-decode" else without)
    return held


def gpus_to_hold(
    operation: Operation, sizes: Sizes, dtype: str, gpu: Datasheet, out_dtype: str | None = None
) -> int | None:
    """Return how many GPUs it takes to hold the data; None if its size or that of the memory is unknown."""
    held = held_bytes(operation, sizes, dtype, out_dtype)
    if held is None or gpu.dram_size is None:
        return None
    return max(1, ceil(held * operation.group(sizes) / gpu.dram_size.value))
