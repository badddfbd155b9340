"""Compare what a program was predicted to compute and move with what its kernels did."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.model.predict.compared import Compared, compared_times
from rooflens.model.predict.forecast import LAUNCH_FLOOR_S, rereads_of, whole_of
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.published import PublishedTimes, attainable
from rooflens.model.predict.rows import Widths, pipes_for
from rooflens.model.records import (
    LEVELS,
    AmountVerdict,
    Analysis,
    Kernel,
    Pipe,
    PredictedQuantity,
    PredictedVerdict,
    Run,
    ratio,
    timed,
)
from rooflens.model.roofline.datasheets import Datasheet, datasheet_of
from rooflens.model.verdict_classes import Bound, bound_of

Limiter = tuple[str, str | None]
"""Class as it is shown (`latency?` if it is open), and resource."""

_ONE_OF_EACH = re.compile(r"(?:^|\s)--filter-mode[ =]per-launch-config(?:\s|$)")
_IN_RANGE = re.compile(r"(?:^|\s)--nvtx-include[ =]\S")

SAME_AMOUNT = 0.02
"""Counted work within this of the predicted is the same: counters from several passes differ by as much."""

SAME_BYTES = 0.05
"""Bytes within this of the predicted are the same: metadata, partial sectors and write-backs of other data add some."""


class Prediction(Struct, frozen=True):
    """What a report's program must compute and move, by formula.

    Attributes:
        operation: Name of the workload or operation: `gemm`.
        case: Name of its case: `bf16_4096`.
        parameters: Sizes by name.
        dtype: Type of the operands: `bf16`.
        flop: FLOP of one iteration; None if none is defined.
        moved_bytes: Compulsory bytes to and from DRAM of one iteration.
        source: Where the formulas come from.
        bound: Class of the expected limiter.
        resource: Level or pipe of that limiter, if the class has one.
        why: Why that limiter is expected.
        iterations: How often the profiled program repeated its work; the amounts are those of one iteration.
        is_stated_once: Nobody said how often: launches of one kernel may each do all of it.
        parts: What one launch of each kernel does, if kernels are predicted separately; in the order of patterns.
    """

    operation: str
    case: str
    parameters: Mapping[str, int]
    dtype: str
    source: str
    flop: float | None = None
    moved_bytes: float | None = None
    bound: Bound | None = None
    resource: str | None = None
    why: str = ""
    iterations: int = 1
    is_stated_once: bool = False
    parts: tuple[PredictionRule, ...] = ()

    @property
    def unit(self) -> str:
        """`FLOP`, or `op` for integer operations, which are counted separately."""
        return "op" if self.dtype.startswith("int") else "FLOP"


class PredictionRule(Struct, frozen=True):
    """A prediction for kernels by name.

    Attributes:
        kernel: Pattern of the name, with `*` and `?` as in file names; it must match the whole name.
        prediction: What one launch does, or `iterations` launches together.
    """

    kernel: str
    prediction: Prediction


class Coverage(Struct, frozen=True):
    """How much of a program its report covers, by the profiler's command line.

    Attributes:
        once_each: Equal launches were profiled once, however often they ran.
        in_range: Only launches inside an NVTX range were profiled.
        caches_kept: The caches were not emptied before each kernel.
    """

    once_each: bool = False
    in_range: bool = False
    caches_kept: bool = False


class Measured(Struct, frozen=True):
    """What the kernels of a report did in one iteration, summed.

    Attributes:
        launches: Launches that the profiled kernels stand for, without failed ones.
        failed: Kernels that failed while they were profiled.
        work: FLOP, or integer operations if those were predicted; None if unknown for any kernel.
        work_of: The same work by pipe.
        level_bytes: Bytes by memory level; None if unknown for any kernel.
        limiter: Class and resource of the limiter of most of the time.
        limiter_share: Fraction of the time spent there, 0 to 1.
    """

    launches: int
    failed: int
    work: float | None
    work_of: Mapping[str, float]
    level_bytes: Mapping[str, float | None]
    time_ns: float | None
    limiter: Limiter | None
    limiter_share: float | None

    @property
    def moved_bytes(self) -> float | None:
        """Bytes to and from DRAM."""
        return self.level_bytes["dram"]

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Work over bytes at DRAM; None if either was not counted."""
        return ratio(self.work, self.moved_bytes)

    @property
    def flop_per_s(self) -> float | None:
        """Work over time; None if either is unknown."""
        per_ns = ratio(self.work, self.time_ns)
        return None if per_ns is None else per_ns * 1e9


class PredictedTimes(Struct, frozen=True):
    """How long the predicted work takes at the report's own peaks, or at published ones if it lacks them.

    Attributes:
        pipe: The pipe whose peak is used: the expected one, or else the one that did most.
        is_published: The peak is a published one, because that pipe is idle or uncounted in the report.
        attainable: The times of published kernels of the operation; None if there are none, or a launch takes longer.
    """

    pipe: str | None = None
    peak_per_s: float | None = None
    bandwidth_bytes_per_s: float | None = None
    math_ns: float | None = None
    memory_ns: float | None = None
    is_published: bool = False
    attainable: PublishedTimes | None = None

    @property
    def floor_ns(self) -> float | None:
        """The larger of the two, as far as known."""
        return max((time_ns for time_ns in (self.math_ns, self.memory_ns) if time_ns is not None), default=None)


class Checked(Struct, frozen=True):
    """A prediction with its measurement.

    Attributes:
        digest: The report that was measured.
        at_least: The measured amounts are lower bounds: equal launches were profiled once, and work is missing.
        gaps: Keys of what may explain the differences.
        kernel: Pattern of the kernels; None for a whole report.
    """

    digest: str
    prediction: Prediction
    measured: Measured
    times: PredictedTimes
    coverage: Coverage = field(default_factory=Coverage)
    at_least: bool = False
    gaps: tuple[str, ...] = ()
    kernel: str | None = None

    @property
    def rows(self) -> tuple[Compared, ...]:
        """Each predicted quantity beside the measured one."""
        measured = self.measured
        rows = compared(self.prediction, self.times, measured.work, measured.moved_bytes, measured.time_ns)
        return tuple(map(_as_lower_bound, rows)) if self.at_least else rows

    @property
    def work_ratio(self) -> float | None:
        """Measured work over predicted."""
        return ratio(self.measured.work, self.prediction.flop)

    @property
    def bytes_ratio(self) -> float | None:
        """Bytes moved at DRAM over the compulsory ones."""
        return ratio(self.measured.moved_bytes, self.prediction.moved_bytes)


def compared(
    prediction: Prediction,
    times: PredictedTimes,
    work: float | None,
    moved_bytes: float | None,
    time_ns: float | None,
) -> tuple[Compared, ...]:
    """Compare each measured quantity with the predicted one, and the time with the floor and with published kernels.

    Args:
        prediction: What must be computed and moved.
        times: What that takes at the report's peaks.
        work: FLOP, or integer operations where those were predicted.
        moved_bytes: Bytes to and from DRAM.
        time_ns: How long it took.
    """
    unit, flop, compulsory = prediction.unit, prediction.flop, prediction.moved_bytes
    reached = ratio(work or None, moved_bytes)
    amounts: tuple[tuple[PredictedQuantity, str, float | None, float | None, float], ...] = (
        ("work", unit, flop, work, SAME_AMOUNT),
        ("dram_bytes", "B", compulsory, moved_bytes, SAME_BYTES),
        ("intensity", "FLOP/B", ratio(flop, compulsory) if unit == "FLOP" else None, reached, SAME_BYTES),
    )
    rows = [
        Compared(name, of, predicted, measured, _amount_verdict(ratio(measured, predicted), same))
        for name, of, predicted, measured, same in amounts
        if predicted
    ]
    if times.floor_ns and time_ns:
        rows += compared_times(time_ns, times.floor_ns, times.attainable, times.math_ns or 0.0)
    return tuple(rows)


def _amount_verdict(ratio: float | None, same: float) -> AmountVerdict:
    if ratio is None:
        return "not measured"
    if is_same(ratio, same):
        return "as predicted"
    return "more" if ratio > 1 else "less"


_SURE: frozenset[PredictedVerdict] = frozenset({"more", "not measured", "above the floor", "slower than most"})
"""Verdicts that hold even if launches are missing, which could only add work, bytes and time."""


def _as_lower_bound(row: Compared) -> Compared:
    """Mark an amount as a lower bound, unless its verdict holds anyway."""
    return row if row.name == "intensity" or row.verdict in _SURE else replace(row, verdict="lower bound")


def is_same(ratio: float | None, tolerance: float) -> bool:
    """Return whether a ratio is 1 within a tolerance."""
    return ratio is not None and abs(ratio - 1) <= tolerance


def read_coverage(run: Run) -> Coverage:
    """Read from a report's command line how much of its program it covers."""
    command_line = run.command_line or ""
    return Coverage(
        once_each=bool(_ONE_OF_EACH.search(command_line)),
        in_range=bool(_IN_RANGE.search(command_line)),
        caches_kept=run.cache_control == "none",
    )


def measure(prediction: Prediction, analyses: Sequence[Analysis], coverage: Coverage) -> Measured:
    """Sum the kernels of a report, per iteration."""
    good = timed(analyses)
    is_whole = len(good) == len(analyses)
    share = 1.0 if coverage.once_each else 1.0 / prediction.iterations
    is_counted = is_whole and bool(good) and all(analysis.flop_total is not None for analysis in good)
    work_of = _work_of(prediction, good)
    limiter, limiter_share = _main_limiter(good)

    def total(amount_of: Callable[[Analysis], float | None]) -> float | None:
        amounts = [(amount_of(analysis), analysis.launches) for analysis in good]
        known = [amount * launches for amount, launches in amounts if amount is not None]
        return sum(known) * share if is_whole and known and len(known) == len(amounts) else None

    return Measured(
        launches=sum(analysis.launches for analysis in good),
        failed=len(analyses) - len(good),
        work=sum(work_of.values()) * share if is_counted else None,
        work_of={name: amount * share for name, amount in work_of.items()},
        level_bytes={name: total(_bytes_at(name)) for name in LEVELS},
        time_ns=total(lambda one: one.kernel.duration_ns),
        limiter=limiter,
        limiter_share=limiter_share,
    )


def _bytes_at(level: str) -> Callable[[Analysis], float | None]:
    return lambda analysis: analysis.levels[level].amount_bytes


def _work_of(prediction: Prediction, analyses: Iterable[Analysis]) -> dict[str, float]:
    """Add up the operations of the predicted kind by pipe."""
    work: defaultdict[str, float] = defaultdict(float)
    for analysis in analyses:
        for name, pipe in analysis.pipes.items():
            if pipe.unit == prediction.unit and pipe.amount:
                work[name] += pipe.amount * analysis.launches
    return dict(work)


def _main_limiter(analyses: Iterable[Analysis]) -> tuple[Limiter | None, float | None]:
    """Find the limiter of most of the time, and its share of the time."""
    times_ns: defaultdict[Limiter, float] = defaultdict(float)
    for analysis in analyses:
        times_ns[analysis.verdict.shown_class, analysis.verdict.resource] += analysis.gpu_time_ns or 0.0
    total_ns = sum(times_ns.values())
    if not total_ns:
        return None, None
    limiter = max(times_ns, key=lambda one: times_ns[one])
    return limiter, times_ns[limiter] / total_ns


def is_expected(limiter: Limiter, prediction: Prediction) -> bool:
    """Compare limiters: `tensor_bf16` includes `tensor_bf16_wgmma`; any resource will do if none is named."""
    bound, resource = bound_of(limiter[0]), limiter[1]
    if prediction.resource is None:
        return bound == prediction.bound
    return bound == prediction.bound and belongs(resource, prediction.resource)


def belongs(pipe: str | None, family: str) -> bool:
    """Return whether a pipe belongs to a family, as `tensor_bf16_wgmma` does to `tensor_bf16`."""
    return pipe is not None and f"{pipe}_".startswith(f"{family}_")


def predicted_times(prediction: Prediction, analyses: Sequence[Analysis]) -> PredictedTimes:
    """Compute the times of the predicted amounts, and those of published kernels.

    Peaks that the report lacks come from the GPU's datasheet, so that a report with nothing but times can be judged.
    """
    good = timed(analyses)
    published = _expected_peak(prediction, good)
    pipe, peak = (prediction.resource, published) if published else _math_peak(prediction, good)
    bandwidth = _bandwidth(good)
    gpu = datasheet_of(good[0].kernel.gpu) if good else None
    if gpu is not None:
        if peak is None:
            pipe, published = _datasheet_peak(prediction, gpu)
            peak = published
        bandwidth = bandwidth or gpu.dram_bandwidth.value
    flop, moved = prediction.flop, prediction.moved_bytes
    times = PredictedTimes(
        pipe=pipe,
        peak_per_s=peak,
        bandwidth_bytes_per_s=bandwidth,
        math_ns=flop / peak * 1e9 if flop and peak else None,
        memory_ns=moved / bandwidth * 1e9 if moved and bandwidth else None,
        is_published=bool(published),
    )
    floor_s = (times.floor_ns or 0.0) / 1e9
    if floor_s < LAUNCH_FLOOR_S:
        return times
    return replace(times, attainable=attainable(prediction.operation, floor_s, rereads=_rereads(prediction)))


def _rereads(prediction: Prediction) -> float:
    """Return by what kernels that read long rows twice move more than the floor allows for."""
    operation, sizes = OPERATIONS.get(prediction.operation), prediction.parameters
    if operation is None or operation.read_again is None or not {"rows", "width"} <= sizes.keys():
        return 1.0
    return rereads_of(whole_of(operation, sizes), Widths(1, 1))


def _datasheet_peak(prediction: Prediction, gpu: Datasheet) -> tuple[str | None, float | None]:
    """Choose the pipe for an operation's type, and its peak by the datasheet at the highest clock."""
    operation = OPERATIONS.get(prediction.operation)
    pipes = pipes_for(operation.unit if operation else "counted", prediction.dtype)
    known = ((name, gpu.peak(name)) for name in pipes)
    return next(((name, peak.value * gpu.above_boost) for name, peak in known if peak is not None), (None, None))


def _expected_peak(prediction: Prediction, analyses: Sequence[Analysis]) -> float | None:
    """Scale the published peak of the expected pipe to the profiled clock; None if the report counts its work."""
    family = prediction.resource
    if family is None or any(belongs(name, family) and pipe.amount for a in analyses for name, pipe in a.pipes.items()):
        return None
    kernel = max(analyses, key=lambda one: one.gpu_time_ns or 0.0).kernel if analyses else None
    return published_peak(kernel, family) if kernel else None


def published_peak(kernel: Kernel, pipe: str) -> float | None:
    """Return the published peak of a pipe at a kernel's clock; None if the GPU or the clock is unknown."""
    gpu, clock_hz = datasheet_of(kernel.gpu), kernel.counters.get("sm_clock_hz")
    return gpu.peak_at(clock_hz, pipe, kernel.counters.get("sm_count")) if gpu and clock_hz else None


def _math_peak(prediction: Prediction, analyses: Sequence[Analysis]) -> tuple[str | None, float | None]:
    """Choose the pipe whose peak bounds the math, with that peak."""
    busy: dict[str, list[Pipe]] = defaultdict(list)
    for analysis in analyses:
        for name, pipe in analysis.pipes.items():
            if pipe.unit == prediction.unit and pipe.amount and pipe.peak_per_s:
                busy[name].append(pipe)
    wanted = [prediction.resource or "", f"tensor_{prediction.dtype}", prediction.dtype]
    families = [{name: busy[name] for name in busy if belongs(name, family)} for family in wanted if family]
    for family in (*families, busy):
        if family:
            name = max(family, key=lambda one: sum(pipe.amount or 0.0 for pipe in family[one]))
            return name, max(pipe.peak_per_s or 0.0 for pipe in family[name])
    return None, None


def _bandwidth(analyses: Iterable[Analysis]) -> float | None:
    """Take the memory peak of the longest kernel that has one."""
    known = [(a.gpu_time_ns or 0.0, peak) for a in analyses if (peak := a.levels["dram"].peak_bytes_per_s)]
    return max(known)[1] if known else None
