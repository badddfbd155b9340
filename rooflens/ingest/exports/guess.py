"""Guess the GPU of launches that do not name it: the only GPU of our data files that fits all their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from msgspec import Struct

from rooflens.format import si
from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.model.counters.memory import SM_COUNTS
from rooflens.model.roofline.datasheets import Datasheet, load_datasheets

_CC = "device__attribute_compute_capability"
_BANDWIDTH = "dram__bytes.sum.per_second"
_SM_CLOCK = "gpc__cycles_elapsed.avg.per_second"
_DRAM_SHARE = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM_CYCLES, _TIME = "dram__cycles_elapsed.sum", "gpu__time_duration.sum"
_BYTES_A_CYCLE = {"HBM": 32, "GDDR": 8}
"""Kind of memory -> bytes per cycle and channel, as measured in reports of GPUs whose memory is known."""

_RATIO = re.compile(r"peak float \(FP32\) to double \(FP64\) performance on this device is (\d+):1", re.IGNORECASE)

_LEAST_SHARE_PCT = 5.0
_BANDWIDTH_BELOW, _BANDWIDTH_ABOVE, _RATIO_APART, _CLOCK_ABOVE = 0.1, 0.07, 0.3, 0.03
"""Tolerance against the datasheet: memory clocks deviate a little from nominal, and ratios are rounded."""

_LIMITS = 4
"""What limits the blocks of an SM: registers, shared memory, warps and blocks."""

_PRINTED_STEP, _LEAST_WAVES = 0.005, 0.1
"""Half of the last digit of `Waves Per SM`, and the fewest waves from which the SM count can be told."""


class Clue(Struct, frozen=True):
    """A clue to the GPU of some launches, in words, and the GPUs that it fits."""

    words: str
    fits: Callable[[Datasheet], bool]


class Guess(Struct, frozen=True):
    """The GPUs that some launches may have run on.

    Attributes:
        likely: GPUs of their compute capability, the best fit first.
        clues: What the guess rests on, in words.
        is_sure: Only the first GPU fits all clues, and there are clues besides the capability.
        sm_count: SMs of each GPU that fits all clues; None if they differ.
    """

    likely: tuple[Datasheet, ...] = ()
    clues: tuple[str, ...] = ()
    is_sure: bool = False
    sm_count: int | None = None

    @property
    def words(self) -> str:
        """What the guess rests on: `CC 9.0 and 132 SMs`."""
        *others, last = self.clues
        return f"{', '.join(others)} and {last}" if others else last


def capability_of(kernel: ExportedKernel) -> str | None:
    """Return the compute capability of a launch's GPU; None if it is not stated."""
    major, minor = kernel.numbers.get(f"{_CC}_major"), kernel.numbers.get(f"{_CC}_minor")
    return None if major is None or minor is None else f"{major:.0f}.{minor:.0f}"


def guess_gpu(kernels: Sequence[ExportedKernel]) -> Guess:
    """Guess the GPU of launches on one device."""
    capabilities = {capability for kernel in kernels if (capability := capability_of(kernel))}
    if len(capabilities) != 1:
        return Guess()
    (capability,) = capabilities
    same = [gpu for gpu in load_datasheets() if gpu.compute_capability == capability]
    clues = [
        clue for tell in (_sms, _bandwidth, _least_bandwidth, _ratio, _clock) if (clue := tell(kernels)) is not None
    ]
    misses = {gpu.id: sum(not clue.fits(gpu) for clue in clues) for gpu in same}
    likely = sorted(same, key=lambda gpu: misses[gpu.id])
    fitting = [gpu for gpu in same if not misses[gpu.id]]
    telling = (clue.words for clue in clues if clue.words and not all(map(clue.fits, same)))
    words = (f"CC {capability}", *telling)
    sizes = {round(gpu.sm_count.value) for gpu in fitting}
    sm_count = next(iter(sizes)) if len(sizes) == 1 else None
    return Guess(tuple(likely), words, is_sure=len(fitting) == 1 and len(words) > 1, sm_count=sm_count)


def _sms(kernels: Sequence[ExportedKernel]) -> Clue | None:
    """Use the number of SMs, or the waves of blocks, which depend on it."""
    counts = {round(value) for kernel in kernels for name in SM_COUNTS if (value := kernel.numbers.get(name))}
    if len(counts) == 1:
        (count,) = counts
        return Clue(f"{count} SMs", lambda gpu: gpu.sm_count.value == count)
    ranges = [found for kernel in kernels if (found := _sms_of_waves(kernel.numbers))]
    least, most = max((low for low, _ in ranges), default=0.0), min((high for _, high in ranges), default=0.0)
    if counts or not 0 < least <= most:
        return None
    first, last = math.ceil(least), math.floor(most)
    named = f"{first}" if first == last else f"{first} to {last}"
    return Clue(f"{named} SMs by its waves", lambda gpu: least <= gpu.sm_count.value <= most)


def _sms_of_waves(numbers: Mapping[str, float]) -> tuple[float, float] | None:
    """Return the range of SM counts that would give these waves; a cluster occupies several SMs at once."""
    waves, grid = numbers.get("launch__waves_per_multiprocessor"), numbers.get("launch__grid_size")
    limits = [value for name, value in numbers.items() if name.startswith("launch__occupancy_limit_")]
    is_clustered = numbers.get("launch__cluster_size", 0) > 1
    if not waves or waves < _LEAST_WAVES or not grid or len(limits) < _LIMITS or min(limits) < 1 or is_clustered:
        return None
    resident = grid / min(limits)
    return resident / (waves + _PRINTED_STEP), resident / (waves - _PRINTED_STEP)


def _bandwidth(kernels: Sequence[ExportedKernel]) -> Clue | None:
    """Use peak memory bandwidth: what all channels can move in the cycles they counted."""
    rates = []
    for numbers in (kernel.numbers for kernel in kernels):
        cycles, time_ns = numbers.get(_DRAM_CYCLES), numbers.get(_TIME)
        if cycles and time_ns:
            rates.append(cycles / time_ns * 1e9)
    if not rates:
        return None
    rate = median(rates)

    def fits(gpu: Datasheet) -> bool:
        kind = gpu.memory_kind or ""
        width = next((width for start, width in _BYTES_A_CYCLE.items() if kind.startswith(start)), None)
        return width is None or -_BANDWIDTH_BELOW <= rate * width / gpu.dram_bandwidth.value - 1 <= _BANDWIDTH_ABOVE

    return Clue("the rate of its DRAM", fits)


def _least_bandwidth(kernels: Sequence[ExportedKernel]) -> Clue | None:
    """Use a lower bound of peak bandwidth: bytes moved, over the busiest part's share of its peak."""
    least = 0.0
    for numbers in (kernel.numbers for kernel in kernels):
        moved, share = numbers.get(_BANDWIDTH), numbers.get(_DRAM_SHARE, 0.0)
        if moved and share >= _LEAST_SHARE_PCT:
            least = max(least, 100 * moved / share)
    if not least:
        return None
    is_told = any(_DRAM_CYCLES in kernel.numbers for kernel in kernels)
    words = "" if is_told else f"DRAM of {si(least, 'B/s')} or more"
    return Clue(words, lambda gpu: gpu.dram_bandwidth.value >= least / (1 + _BANDWIDTH_ABOVE))


def _ratio(kernels: Sequence[ExportedKernel]) -> Clue | None:
    """Use the ratio of fp32 to fp64 throughput, which NVIDIA's roofline rule prints."""
    said = {float(found[1]) for kernel in kernels for rule in kernel.rules if (found := _RATIO.search(rule.message))}
    if len(said) != 1:
        return None
    (ratio,) = said

    def fits(gpu: Datasheet) -> bool:
        fp32, fp64 = gpu.peaks.get("fp32"), gpu.peaks.get("fp64")
        return not fp32 or not fp64 or not fp64.value or abs(fp32.value / fp64.value / ratio - 1) <= _RATIO_APART

    return Clue(f"an FP32:FP64 ratio of {ratio:.0f}:1", fits)


def _clock(kernels: Sequence[ExportedKernel]) -> Clue | None:
    """Use the SM clock, which cannot exceed the datasheet's; it says no more."""
    fastest = max((kernel.numbers.get(_SM_CLOCK, 0.0) for kernel in kernels), default=0.0)
    return Clue("", lambda gpu: fastest <= gpu.boost_clock.value * (1 + _CLOCK_ABOVE)) if fastest else None
