"""A forecast in words: the answer, the peak that was used and why, how it is counted, and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rooflens import format as fmt
from rooflens.format import MISSING, duration, percent, si, significant
from rooflens.model.predict.communication import uneven
from rooflens.model.predict.compared import time_words
from rooflens.model.predict.forecast import Forecast, ForecastRow, Regime, gpus_to_hold, held_bytes, moving
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.published import floor_words, published_points
from rooflens.model.predict.rows import ELEMENT_BYTES, Operation, pipes_for, stored_type
from rooflens.model.roofline.datasheets import ASSUMED, Datasheet, Link
from rooflens.model.roofline.unit_names import resource_label

SPARSE_FROM = 8
"""Major compute capability from which tensor cores have a rate for 2:4 sparsity."""

PREFIXED = 1_000_000
"""Sizes from here on have a prefix."""

TWICE = frozenset({"tensor_tf32", "tensor_bf16", "tensor_fp16", "tensor_fp8"})
"""Pipes whose sparse figure is twice the dense one on every GPU that has it."""


TILES = (
    "bytes of a tile are set against DRAM, as if L2 caught none of them; where operands fit into L2 it "
    "catches most, and --l2-tile sets them against L2"
)

LAUNCH_TIME = "2 to 5 \u00b5s"
"""What a launch costs of host time, from `_SHORTEST_LAUNCH_S` to `LAUNCH_FLOOR_S`."""
_SHORTEST_LAUNCH_S = 2e-6


def title(rows: Sequence[ForecastRow]) -> str:
    """Name predictions of an operation: `gemm, bf16: m = n = k = 128 to 8,192`."""
    row = rows[0]
    return f"{row.operation.name}, {' and '.join(dict.fromkeys(row.dtype for row in rows))}: {_sizes_range(row)}"


def _sizes_range(row: ForecastRow) -> str:
    first, last = (sizes_text(row, row.steps[i][0], brief=True) for i in (0, -1))
    if len(row.steps) == 1:
        return first
    name, _, value = last.rpartition(" ")
    return f"{first} to {value if first.startswith(f'{name} ') else last}"


def answer(row: ForecastRow) -> str:
    """Say in a sentence which limiter applies, and where it changes."""
    if len(row.steps) == 1:
        return answer_at(row.steps[0][1])
    first, last = row.steps[0][1], row.steps[-1][1]
    # For a single step, the ridge decides between memory and peak.
    by_ridge = not last.parts and not any(
        result.link or not result.moved_bytes or is_bound_by_others(result) for _, result in row.steps
    )
    if not row.crossings:
        if first.regime == "overhead":
            return f"Overhead-bound at every size: the floor is shorter than the launches, {LAUNCH_TIME} each."
        return (
            f"{last.regime.capitalize()}-bound at every size: {_from_to(first.intensity, last.intensity)} FLOP/B, "
            f"{'below' if last.regime == 'memory' else 'above'} the ridge of {fmt.significant(last.ridge)}."
            if by_ridge
            else f"{last.regime.capitalize()}-bound at every size."
        )
    before, said = first.regime, []
    for sizes, regime in row.crossings:
        at_ridge = by_ridge and {before, regime} == {"memory", "compute"}
        why = f", where it reaches {fmt.significant(last.ridge)} FLOP/B" if at_ridge else ""
        said.append(f"{crossing_words(row, sizes, regime)}{why}")
        before = regime
    changes = "; ".join(said)
    why = f", where the floor is shorter than a launch, {LAUNCH_TIME}" if first.regime == "overhead" else ""
    return f"{changes[0].upper()}{changes[1:]}; {first.regime}-bound before{why}."


def answer_at(result: Forecast) -> str:
    """Say in a sentence what limits one step, its floor, and the times of published kernels."""
    floor = floor_words(result.t_lower_s, result.attainable, result.t_lower_warm_s, result.t_fused_s)
    if result.tokens_per_s:
        floor = f"{floor}, at best {fmt.significant(result.tokens_per_s)} tokens/s"
    floor = f"{floor[0].upper()}{floor[1:]}."
    if result.measured_s:
        times_s = result.measured_s, result.floor_s
        measured = time_words(*times_s, result.attainable, result.t_without_dram_s, result.clock_hz)
        floor = f"{floor} {measured}."
    if result.regime == "overhead":
        return f"Overhead-bound, whatever its FLOP per byte: the floor is shorter, as {_launch_words(result)}. {floor}"
    if result.parts:
        share = sum(part.t_lower_s for part in result.parts if part.regime == result.regime) / (result.t_lower_s or 1.0)
        return f"{result.regime.capitalize()}-bound for {fmt.percent(share)} of its floor. {floor}"
    regime = f"{result.regime.capitalize()}-bound"
    if not result.flop:
        sent = f" and {fmt.si(result.sent_bytes, 'B')} to send" if result.sent_bytes else ""
        return f"{regime}: no FLOPs, {fmt.si(result.moved_bytes, 'B')} to move{sent}. {floor}"
    if result.regime == "communication":
        over = fmt.factor(result.t_comms_s / max(result.t_math_s, result.t_memory_s))
        return f"{regime}: {fmt.si(result.sent_bytes, 'B')} to send take {over} as long as the rest. {floor}"
    why = _other_times_words(result) if is_bound_by_others(result) else _against_ridge(result)
    return f"{regime}: {why}. {floor}"


def _launch_count(result: Forecast) -> int:
    return sum(part.count for part in result.parts) or result.count


def _launch_words(result: Forecast) -> str:
    count = _launch_count(result)
    return f"{fmt.count(count, 'launch')} {'takes' if count == 1 else 'take'} {LAUNCH_TIME} of host time"


def _under_launches(result: Forecast) -> str:
    """Say that a floor below the launches' time is not reached alone, as far as that is certain; else empty."""
    if result.regime != "overhead":
        return ""
    is_sure = result.t_lower_s < _launch_count(result) * _SHORTEST_LAUNCH_S
    return f": {'out of reach alone' if is_sure else 'hardly reached alone'}, as {_launch_words(result)}"


def is_bound_by_others(result: Forecast) -> bool:
    """Return whether a simple operation is bounded by something other than FLOPs, DRAM and links."""
    return result.longest in {"t_vector_s", "t_special_s", "t_issue_s", "t_l2_s"}


def _other_times_words(result: Forecast) -> str:
    if result.longest == "t_l2_s":
        over = fmt.factor(result.l2_s / result.t_memory_s)
        moved = fmt.si(result.moved_bytes, "B")
        return f"{fmt.si(result.l2_bytes, 'B')} through L2 take {over} as long as {moved} through DRAM"
    amount, time_s, what = {
        "t_vector_s": (result.vector_flop, result.vector_s, "FLOPs on CUDA cores"),
        "t_special_s": (result.special, result.special_s, "special functions"),
    }.get(result.longest or "", (result.issued, result.issue_s, "instructions that unpack weights"))
    rest = "its products" if result.vector_flop else "its FLOPs"
    return f"{fmt.si(amount, '').strip()} {what} take {fmt.factor(time_s / result.t_math_s)} as long as {rest}"


def _against_ridge(result: Forecast) -> str:
    if not result.moved_bytes:
        return "no bytes to move"
    factor = result.intensity / result.ridge
    apart = f"{fmt.factor(factor)} the ridge" if factor >= 1 else f"{fmt.factor(1 / factor)} below the ridge"
    return f"{fmt.intensity(result.intensity)}, {apart} of {fmt.significant(result.ridge)}"


def _from_to(low: float, high: float) -> str:
    return fmt.span(fmt.significant(low), fmt.significant(high))


def peak_words(row: ForecastRow) -> tuple[str, str]:
    """Say which peak was used and why, and which peak was not."""
    result = row.steps[-1][1]
    pipe, peak = result.peak, result.peak_flop_per_s
    clock = f"at {clock_words(row.gpu)}" if result.above_boost > 1 else "at boost clock"
    used = (
        f"{resource_label(pipe)} at {fmt.si(peak, 'FLOP/s')}, dense, from the datasheet {clock}: "
        f"{_why_pipe(row, pipe)}."
    )
    return f"{used[0].upper()}{used[1:]}", of_products(row) or _not_used(row.gpu, pipe, result)


def clock_words(gpu: Datasheet) -> str:
    """Name the clock of floors: `2.82 GHz, the highest seen`."""
    clock = gpu.fastest_clock
    return f"{fmt.si(clock.value, 'Hz')}, {ASSUMED if clock.source.startswith(ASSUMED) else 'the highest seen'}"


def _why_pipe(row: ForecastRow, pipe: str) -> str:
    if pipe.startswith("tensor"):
        stored, _, sums = row.dtype.partition(":")
        added = f" with sums in {sums}" if sums else ""
        return f"products of {stored}{added} run on the tensor cores"
    if row.operation.unit == "counted" and row.dtype == "fp64":
        return "FLOPs that were counted elsewhere are taken to be no products, which alone run on tensor cores"
    if row.operation.unit != "vector":
        return f"products of {row.dtype} run on the CUDA cores unless tf32 is chosen"
    return f"the operation has no matrix products, so it runs on the CUDA cores in {resource_label(pipe)}"


def _not_used(gpu: Datasheet, pipe: str, result: Forecast) -> str:
    major = int(gpu.compute_capability.partition(".")[0])
    if not pipe.startswith("tensor"):
        return "Tensor cores are faster but only do matrix products: their peak does not apply here."
    if major < SPARSE_FROM or pipe == "tensor_fp64":
        return "This pipe has no faster rate for sparse operands."
    if pipe in TWICE:
        sparse = fmt.si(2 * result.peak_flop_per_s, "FLOP/s")
        return (
            f"The headline figure of {sparse} assumes that half of the weights are zero (2:4 sparsity): with dense "
            f"operands it is out of reach, and its ridge of {fmt.intensity(2 * result.ridge)} is too far right."
        )
    return "Headline figures assume that half of the weights are zero (2:4 sparsity): out of reach with dense operands."


def sources(row: ForecastRow) -> list[tuple[str, str, str]]:
    """List name, value and published source of each roof that was used."""
    gpu, result = row.gpu, row.steps[-1][1]
    pipes = dict.fromkeys(part.peak for part in (result, *result.parts) if part.flop or part is result)
    pipes |= dict.fromkeys(part.rates.vector for part in (result, *result.parts) if part.vector_flop)
    peaks = [(key, peak) for key in pipes if (peak := gpu.peak(key))]
    found = [(resource_label(key), fmt.si(peak.value, "FLOP/s"), peak.source) for key, peak in peaks]
    if result.above_boost > 1:
        found.append(("clock of floors", fmt.si(gpu.fastest_clock.value, "Hz"), gpu.fastest_clock.source))
        found.append(("clock of these peaks", fmt.si(gpu.boost_clock.value, "Hz"), gpu.boost_clock.source))
    found.append(("DRAM", fmt.si(gpu.dram_bandwidth.value, "B/s"), gpu.dram_bandwidth.source))
    if through_l2(result) and gpu.l2_bandwidth:
        found.append(("L2", fmt.si(gpu.l2_bandwidth.value, "B/s"), gpu.l2_bandwidth.source))
    if gpu.special_rate and not result.parts and result.special_s:
        found.append(("special functions", fmt.si(gpu.special_rate.value, "/s"), gpu.special_rate.source))
    if gpu.issue_rate and not result.parts and result.issue_s:
        found.append(("instructions", fmt.si(gpu.issue_rate.value, "/s"), gpu.issue_rate.source))
    if link := _link_of(row, result):
        found.append((link.name, f"{fmt.si(link.bytes_per_s_per_direction, 'B/s')} in one direction", link.source))
    return found


def counted(row: ForecastRow) -> list[Operation]:
    """List what says how FLOPs and bytes are counted: the operation, and each kind of its parts."""
    operation = row.operation
    parts = operation.parts(row.steps[-1][0]) if operation.parts else ()
    return [
        OPERATIONS.get(name, operation) for name in dict.fromkeys([operation.name, *(one.operation for one in parts)])
    ]


def derivation(row: ForecastRow, at: int = -1) -> list[tuple[str, str]]:
    """Calculate a step with its numbers, by default the last step."""
    sizes, result = row.steps[at]
    lower = "the longest of them" if not result.parts else "the longest of them for each part, added up"
    sending = f"{fmt.si(result.sent_bytes, 'B')} / {fmt.si(result.link_bytes_per_s, 'B/s')}"
    comms = [("T comms", f"{sending} = {fmt.duration(result.t_comms_s * 1e9)}")] if result.link else []
    intensity = f"{fmt.si(result.flop, 'FLOP')} / {fmt.si(result.moved_bytes, 'B')}"
    rates = fmt.si(result.peak_flop_per_s, "FLOP/s"), fmt.si(result.bandwidth_bytes_per_s, "B/s")
    products = result.flop - result.vector_flop * bool(result.vector_s)
    math = "each part on its own pipe" if result.parts else f"{fmt.si(products, 'FLOP')} / {rates[0]}"
    fused_s, fused = result.t_fused_s, row.operation.fused
    one = [("fused", f"{fused} = {fmt.duration(fused_s * 1e9)}: no kernel is faster")] if fused_s is not None else []
    upper = f"one after the other, nothing overlaps = {fmt.duration(result.t_upper_s * 1e9)}"
    warm_s = result.t_lower_warm_s
    without = f"{fmt.si(result.data_bytes, 'B')} fit in {fmt.si(result.l2_size_bytes, 'B')} of L2, so without T memory"
    warm = [("warm floor", f"{without} = {fmt.duration(warm_s * 1e9)}")] if warm_s is not None else []
    return [
        ("at", sizes_text(row, sizes)),
        ("intensity", f"{intensity} = {fmt.intensity(result.intensity)}"),
        ("ridge", f"{rates[0]} / {rates[1]} = {fmt.intensity(result.ridge)}"),
        ("T math", f"{math} = {fmt.duration(result.t_math_s * 1e9)}"),
        ("T memory", f"{fmt.si(result.moved_bytes, 'B')} / {rates[1]} = {fmt.duration(result.t_memory_s * 1e9)}"),
        *_derived_others(result),
        *comms,
        ("floor", f"{lower} = {fmt.duration(result.t_lower_s * 1e9)}"),
        *one,
        *warm,
        ("at most", upper),
    ]


def _derived_others(result: Forecast) -> list[tuple[str, str]]:
    """Calculate the times of special functions, of instructions and of L2, if they are counted and known."""
    counted_ones = (
        ("T vector", result.vector_flop, "FLOP", result.rates.vector_flop_per_s, result.vector_s),
        ("T MUFU", result.special, "", result.rates.special_per_s, result.special_s),
        ("T issue", result.issued, "", result.rates.issued_per_s, result.issue_s),
        ("T L2", result.l2_bytes * through_l2(result), "B", result.rates.l2_bytes_per_s, result.l2_s),
    )
    return [
        (name, f"{_quotient(amount, unit, rate, result)} = {fmt.duration(time_s * 1e9)}")
        for name, amount, unit, rate, time_s in counted_ones
        if amount and time_s
    ]


def _quotient(amount: float, unit: str, rate_per_s: float, result: Forecast) -> str:
    each = "each part at its own rate" if result.parts else fmt.si(rate_per_s, f"{unit}/s")
    return f"{fmt.si(amount, unit).strip()} / {each}"


def published(rows: Sequence[ForecastRow]) -> list[tuple[str, str]]:
    """List who published kernels of these operations, and how many."""
    sources = dict.fromkeys(
        source for row in rows if (found := row.steps[-1][1].attainable) is not None for source in found.sources
    )
    return [
        (source, fmt.count(sum(point.source == source for point in published_points()), "time")) for source in sources
    ]


def sizes(row: ForecastRow) -> list[tuple[str, str, str]]:
    """List each size with its meaning and its values."""
    steps = [(size, [step[size.name] for step, _ in row.steps]) for size in row.operation.sizes]
    return [
        (size.name, size.meaning, fmt.span(*(size_text(size.name, end(values)) for end in (min, max))))
        for size, values in steps
    ]


def element_words(rows: Sequence[ForecastRow]) -> str:
    """Give the bytes of an element of the operands, and of the results."""
    dtypes = [dtype for row in rows for dtype in (row.dtype, row.result_dtype)]
    return ", ".join(f"{name}: {ELEMENT_BYTES[name]:g} B" for name in dict.fromkeys(map(stored_type, dtypes)))


_OF_A_LINK = ("sent", "FLOP/link B", "T comms")


def columns_of(row: ForecastRow) -> tuple[str, ...]:
    """Name the columns of a row's table, with those of a link if GPUs share it, and further times if counted."""
    return tuple(_forecast_cells(row, "", row.steps[0][1]))


def _forecast_cells(row: ForecastRow, sizes: str, result: Forecast) -> dict[str, str]:
    cells = {
        "sizes": sizes,
        "FLOP": si(result.flop, "FLOP"),
        "bytes": si(result.moved_bytes, "B"),
        "FLOP/B": significant(result.intensity),
        "ridge": significant(result.ridge),
        "sent": si(result.sent_bytes, "B"),
        "FLOP/link B": significant(result.link_intensity) if result.link_intensity else MISSING,
        "regime": f"{result.regime}-bound",
        "T math": duration(result.t_math_s * 1e9),
        "T memory": duration(result.t_memory_s * 1e9),
        "T comms": duration(result.t_comms_s * 1e9),
        "T vector": _seconds_words(result.t_vector_s),
        "T MUFU": _seconds_words(result.t_special_s),
        "T issue": _seconds_words(result.t_issue_s),
        "T L2": _seconds_words(result.t_l2_s),
        "floor": duration(result.t_lower_s * 1e9),
        "fused": _seconds_words(result.t_fused_s),
        "warm floor": _seconds_words(result.t_lower_warm_s),
        "at most": duration(result.t_upper_s * 1e9),
        "attainable FLOP/s": si(result.roof_flop_per_s, "FLOP/s") if result.roof_flop_per_s else MISSING,
        "of peak": percent(result.share_of_peak),
    }
    steps = [step for _, step in row.steps]
    shown = dict.fromkeys(_OF_A_LINK, any(step.link for step in steps))
    shown |= {
        "T vector": any(_tells(step.vector_s, step) for step in steps),
        "T MUFU": any(_tells(step.special_s, step) for step in steps),
        "T issue": any(_tells(step.issue_s, step) for step in steps),
        "T L2": any(through_l2(step) for step in steps),
        "fused": any(step.t_fused_s is not None for step in steps),
        "warm floor": any(step.t_lower_warm_s is not None for step in steps),
        "attainable FLOP/s": any(step.flop for step in steps),
    }
    return {name: cell for name, cell in cells.items() if shown.get(name, True)}


_TELLS_FROM = 0.01
"""Part of the floor from which a time beside the usual ones has a column, and an uneven split a note."""


def _tells(time_s: float, result: Forecast) -> bool:
    return time_s > _TELLS_FROM * result.t_lower_s


def _seconds_words(seconds: float | None) -> str:
    return MISSING if seconds is None else duration(seconds * 1e9)


def through_l2(result: Forecast) -> bool:
    """Return whether more bytes pass between the SMs and L2 than must come from DRAM."""
    return result.l2_bytes > result.moved_bytes


def crossing_words(row: ForecastRow, sizes: Mapping[str, int], regime: Regime) -> str:
    """Give the size from which another regime is the limit: `compute-bound from n = 887`."""
    return f"{regime}-bound from {sizes_text(row, sizes)}"


def sizes_text(row: ForecastRow, sizes: Mapping[str, int], *, brief: bool = False) -> str:
    """Write the sizes that distinguish a step: `m = n = k = 4,096`; in brief with prefixes, as pages do."""
    names = moving(row)
    written = {name: size_text(name, sizes[name]) if brief else f"{sizes[name]:,}" for name in names}
    if len(names) > 1 and len({sizes[name] for name in names}) == 1:
        return f"{' = '.join(names)} = {written[names[0]]}"
    return ", ".join(f"{name} {written[name]}" for name in names) or "usual sizes"


def size_text(name: str, value: int) -> str:
    """Write a size: `4,096`, and with a prefix from a million on: `16.8 M`, bytes as `16.8 MB`."""
    if value < PREFIXED:
        return f"{value:,}"
    return si(value, "B" if name == "bytes" else "").strip()


def fastest_words(rows: Sequence[ForecastRow]) -> str:
    """Give the minimum and typical time of the last size, and the fastest of several GPUs and types."""
    best = min(rows, key=lambda row: row.steps[-1][1].floor_s)
    sizes, result = best.steps[-1]
    typical = f", typically {duration(result.attainable.typical_s * 1e9)}" if result.attainable else ""
    which = [best.gpu.name.removeprefix("NVIDIA ")] if len({row.gpu.name for row in rows}) > 1 else []
    which += [best.dtype] if len({row.dtype for row in rows}) > 1 else []
    fused = " fused" if best.operation.fused else ""
    least = f"at least {duration(result.floor_s * 1e9)}{fused}{typical}"
    if which:
        return f"{', '.join(which)} is the fastest: {least}, at {sizes_text(best, sizes, brief=True)}."
    return f"{sizes_text(best, sizes, brief=True)}: {least}."


def heading(row: ForecastRow) -> str:
    """Name operation, type and GPU."""
    return f"{row.operation.name}, {row.dtype}, on {row.gpu.name}"


def notes(row: ForecastRow) -> list[str]:
    """Say which roofs were used, where the regime changes, and what was reached."""
    last = row.steps[-1][1]
    compute, memory = si(last.peak_flop_per_s, "FLOP/s"), si(last.bandwidth_bytes_per_s, "B/s")
    said = [
        f"roofs: {resource_label(last.peak)} {compute}, DRAM {memory}",
        *_clock_notes(row),
        *filter(None, [of_products(row)]),
        *([f"results in {row.result_dtype}"] if row.result_dtype != stored_type(row.dtype) else []),
        *_fit_notes(row),
        *_link_notes(row),
        *_uneven_notes(row),
    ]
    if any(sizes.get("tile") and "l2_tile" in sizes for sizes, _ in row.steps):
        said.append(TILES)
    said += [crossing_words(row, sizes, regime) for sizes, regime in row.crossings]
    if last.regime != "overhead" and any(result.regime == "overhead" for _, result in row.steps):
        said.append(f"overhead-bound: the floor is shorter than a launch, {LAUNCH_TIME} of host time")
    if row.operation.fused:
        said.append(f"fused: {row.operation.fused}")
    if last.attainable or last.t_lower_warm_s is not None or last.regime == "overhead":
        at = f"{sizes_text(row, row.steps[-1][0])}: " if len(row.steps) > 1 else ""
        floors = floor_words(last.t_lower_s, last.attainable, last.t_lower_warm_s, last.t_fused_s)
        said.append(f"{at}{floors}{_under_launches(last)}")
    if last.tokens_per_s and len(row.steps) == 1:
        said.append(f"at best {significant(last.tokens_per_s)} tokens/s")
    return said


def _clock_notes(row: ForecastRow) -> list[str]:
    """Say which clock the floors are for, and the per cents, where the card may run above its rated clock."""
    last = row.steps[-1][1]
    if last.above_boost == 1:
        return []
    rated = f"{si(last.rated_flop_per_s, 'FLOP/s')} at the rated {si(row.gpu.boost_clock.value, 'Hz')}"
    return [f"floors at {clock_words(row.gpu)}; per cents of {rated}"]


def of_products(row: ForecastRow) -> str:
    """Give the peak of counted FLOPs if they are matrix products; empty if that peak is used or unknown."""
    known = ((name, row.gpu.peak(name)) for name in pipes_for("matrix", row.dtype))
    pipe, peak = next(((name, peak) for name, peak in known if peak), (row.steps[-1][1].peak, None))
    if row.operation.unit != "counted" or pipe == row.steps[-1][1].peak or peak is None:
        return ""
    found = si(peak.value * row.gpu.above_boost, "FLOP/s")
    return f"matrix products could use tensor cores: {resource_label(pipe)} {found}"


def _fit_notes(row: ForecastRow) -> list[str]:
    """Say how much memory the largest step needs that does not fit, and how many GPUs would hold it."""
    size = row.gpu.dram_size
    held = [
        (held_bytes(row.operation, sizes, row.dtype, row.options.out_dtype) or 0.0, sizes) for sizes, _ in row.steps
    ]
    most, sizes = max(held, key=lambda step: step[0])
    if size is None or most <= size.value:
        return []
    what = "operands" if row.operation.parts is None else "weights and cache alone"
    needed = gpus_to_hold(row.operation, sizes, row.dtype, row.gpu, row.options.out_dtype)
    at = f" ({sizes_text(row, sizes)})" if len(row.steps) > 1 else ""
    taken = f"{what} take {si(most, 'B')} of a GPU's {si(size.value, 'B')}"
    return [f"does not fit{at}: {taken}; it takes {needed} such GPUs or more to hold them"]


def _link_of(row: ForecastRow, result: Forecast) -> Link | None:
    """Return the link over which GPUs share a step; None for one GPU, and for a network."""
    return next((link for link in row.gpu.links.values() if link.kind == result.link), None)


def _link_notes(row: ForecastRow) -> list[str]:
    """Name each link over which GPUs share the work, the largest number of GPUs, and where T math equals T comms."""
    over = {result.link: (row.operation.group(sizes), result) for sizes, result in row.steps if result.link}
    said = []
    for gpus, result in over.values():
        rate = si(result.link_bytes_per_s, "B/s")
        named = f"a network of {rate} each way, as given"
        if link := _link_of(row, result):
            named = f"{link.name}, {rate} each way, {si(link.bytes_per_s_total, 'B/s')} both ways"
        ridge = f"; ridge {significant(result.link_ridge)} FLOP/link B" if result.flop and result.link_ridge else ""
        said.append(f"link of {gpus} GPUs: {named}{ridge}")
    if not said:
        return []
    return [*said, "T comms counts the bytes that are sent, not the latency of each exchange", *_algorithm_notes(row)]


def _algorithm_notes(row: ForecastRow) -> list[str]:
    """Say what the algorithms of libraries take for a collective at its last size, and what was measured."""
    sizes, last = row.steps[-1]
    at = f"{sizes_text(row, sizes)}: " if len(row.steps) > 1 else ""
    taken = [f"{one.name} {duration(one.time_s * 1e9)} ({si(one.bus_bytes_per_s, 'B/s')})" for one in last.algorithms]
    said = [f"{at}algorithms take (bus bandwidth of nccl-tests): {', '.join(taken)}"] if taken else []
    if last.bus_bytes_per_s is not None:
        rates = si(last.algorithm_bytes_per_s, "B/s"), si(last.bus_bytes_per_s, "B/s")
        said.append(f"measured: algorithm bandwidth {rates[0]}, bus bandwidth {rates[1]}")
    return said


def _uneven_notes(row: ForecastRow) -> list[str]:
    """Say for each number of GPUs which sizes they cannot split evenly, and what that costs."""
    found = dict.fromkeys(one for sizes, _ in row.steps for one in uneven(sizes))
    return [
        f"{one.gpus} GPUs do not divide {one.amount:,} {one.what}: the one with most has {one.most:,}, as if "
        f"there were {percent(one.extra)} more"
        for one in found
        if one.extra >= _TELLS_FROM
    ]


def table_rows(row: ForecastRow) -> list[tuple[str, ...]]:
    """Write the steps as cells; a single composite operation shows its parts and their sum."""
    if len(row.steps) > 1 or not row.steps[0][1].parts:
        named = [(sizes_text(row, sizes), result) for sizes, result in row.steps]
    else:
        whole = row.steps[0][1]
        named = [(f"{part.count} x {part.label}" if part.count > 1 else part.label, part) for part in whole.parts]
        named.append(("all", whole))
    return [tuple(_forecast_cells(row, name, result).values()) for name, result in named]
