"""Explain from the counters why a measurement differs from its prediction, in sentences with numbers.

A sentence with `may` gives a likely reason that the counters cannot show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import duration, percent, si, significant
from rooflens.model.knowledge.items import find_item
from rooflens.model.predict.compared import time_words
from rooflens.model.predict.measured import (
    SAME_AMOUNT,
    SAME_BYTES,
    Checked,
    Coverage,
    Gap,
    Limiter,
    Prediction,
    belongs,
    is_expected,
    is_same,
    measure,
    predicted_times,
)
from rooflens.model.records import LEVELS, Analysis, ratio, timed
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.roofline.opcodes import executed
from rooflens.model.roofline.unit_names import limiter_words, resource_label
from rooflens.model.verdict.thresholds import default_thresholds

REREAD_FROM = 1.5
"""Traffic between the SMs and L2 is mentioned from this multiple of the compulsory bytes on."""

WRONG_TYPE_FROM = 0.1
"""The type counts as wrong if another pipe did at least this part of the predicted work."""

_TILE = 64
"""Typical tile of a matrix kernel: other sizes leave tiles partly empty."""

_MATRIX_TYPES = frozenset({"bf16", "fp16", "tf32", "fp8", "fp6", "fp4", "int8"})
_UNCOUNTED = (
    "no_flop_counters",
    "sol_pair_only",
    "tensor_flop_unknown",
    "tensor_counter_reads_zero",
    "tcgen05_without_operation_counters",
)
_COUNTED_LOW = ("sparse_tensor_work", "tensor_work_not_measured", "fp16_not_measured")
_COUNTED_HIGH = ("tensor_flop_estimated", "fp16_is_upper_bound")
_IN_L2 = "dram_writes_stay_in_l2"


class _Facts(Struct, frozen=True):
    """A checked prediction with its kernels that did not fail."""

    checked: Checked
    analyses: Sequence[Analysis]

    @property
    def prediction(self) -> Prediction:
        return self.checked.prediction

    def amount(self, value: float) -> str:
        """Write an amount of work."""
        return si(value, self.prediction.unit)

    def flags_of(self, names: Sequence[str]) -> list[str]:
        """List the meanings of the flags that are set on any kernel."""
        present = {flag for analysis in self.analyses for flag in analysis.flags}
        items = (find_item("flags", name) for name in names if name in present)
        return [item.sentence for item in items if item]


def check(prediction: Prediction, analyses: Sequence[Analysis], coverage: Coverage | None = None) -> Checked:
    """Compare the kernels of one report with its prediction, and say what explains the difference."""
    coverage = coverage or Coverage()
    measured = measure(prediction, analyses, coverage)
    times = predicted_times(prediction, analyses)
    digest = next((analysis.kernel.digest for analysis in analyses), "")
    bare = Checked(digest, prediction, measured, times, coverage)
    bare = replace(bare, at_least=_is_lower_bound(bare))
    facts = _Facts(bare, timed(analyses))
    topics = (_scope, _work, _type, _bytes, _time, _limiter)
    return replace(bare, gaps=tuple(chain.from_iterable(topic(facts) for topic in topics)))


def _is_lower_bound(checked: Checked) -> bool:
    """Return whether launches may be missing. Only an amount equal to the predicted one proves that none is."""
    if not checked.coverage.once_each:
        return False
    if checked.prediction.flop:
        return not is_same(checked.work_ratio, SAME_AMOUNT)
    return not is_same(checked.bytes_ratio, SAME_BYTES)


def _times(factor: float) -> str:
    return f"{significant(factor)}x"


def _scope(facts: _Facts) -> Iterator[Gap]:
    checked = facts.checked
    if failed := checked.measured.failed:
        subject = "1 kernel" if failed == 1 else f"{failed} kernels"
        yield Gap("scope", f"{subject} failed while being profiled: nothing can be compared.")
    if checked.at_least:
        text = (
            "Each distinct launch was profiled once: if a kernel ran more often, the measured amounts are lower bounds."
        )
        yield Gap("scope", text)
    over = max((found for found in (checked.work_ratio, checked.bytes_ratio) if found), default=0.0)
    if not checked.coverage.in_range and over > 1 + SAME_BYTES:
        text = "The profile is not limited to an NVTX range, so it may include set-up and checks."
        yield Gap("scope", text)


def _work(facts: _Facts) -> Iterator[Gap]:
    checked, predicted = facts.checked, facts.prediction.flop
    measured, found = checked.measured.work, checked.work_ratio
    if not predicted:
        return
    if measured is None or found is None:
        reasons = facts.flags_of(_UNCOUNTED)
        yield Gap("work", f"This report does not count all {facts.prediction.unit}.", tuple(reasons[:1]))
    elif is_same(found, SAME_AMOUNT):
        yield Gap("work", f"The work is as predicted: {facts.amount(measured)}.", as_predicted=True)
    else:
        head = f"{facts.amount(measured)} were counted, {_times(found)} the predicted {facts.amount(predicted)}."
        explained = _more_work(facts, predicted) if found > 1 else _less_work(facts, measured)
        yield Gap("work", head, tuple(explained))


def _more_work(facts: _Facts, predicted: float) -> Iterator[str]:
    work_of = facts.checked.measured.work_of
    on_tensor = sum(amount for pipe, amount in work_of.items() if pipe.startswith("tensor"))
    beside = {pipe: amount for pipe, amount in work_of.items() if not pipe.startswith("tensor")}
    if is_same(ratio(on_tensor, predicted), SAME_AMOUNT) and beside:
        pipe = max(beside, key=lambda name: beside[name])
        extra = facts.amount(beside[pipe])
        yield f"The tensor pipes did what the formula counts; {extra} more ran on {resource_label(pipe)}."
    elif on_tensor > predicted:
        reason = _tile_reason(facts.prediction.parameters)
        yield f"The tensor pipes alone did {_times(on_tensor / predicted)} that: {reason}."
    elif special := _special_functions(facts):
        yield (
            f"{si(special, '').strip()} special functions (MUFU) ran too: what the formula counts once, such as "
            "a square root or a division, may take several instructions."
        )
    yield from facts.flags_of(_COUNTED_HIGH)


def _tile_reason(parameters: Mapping[str, int]) -> str:
    """Say why tiles may do more work than the formula: padding, masks, recomputation."""
    uneven = [f"{name} = {value}" for name, value in parameters.items() if name in {"m", "n", "k"} and value % _TILE]
    if uneven:
        are = "is not a multiple" if len(uneven) == 1 else "are not multiples"
        return f"{' and '.join(uneven)} {are} of {_TILE}, so padded tiles may be part of it"
    if parameters.get("causal"):
        return "tiles on the edge of the mask may be computed in full"
    return "padded tiles, masked tiles or recomputation may be the reason"


def _special_functions(facts: _Facts) -> float:
    """Count the special functions that threads executed, over all launches."""
    return sum(executed(a.kernel.thread_opcodes, ("MUFU",)) * a.launches for a in facts.analyses)


def _less_work(facts: _Facts, measured: float) -> Iterator[str]:
    special = _special_functions(facts)
    if special:
        yield f"{si(special, '').strip()} special functions (MUFU) ran, which do not count as FLOPs."
    elif not measured:
        yield "Comparisons, selects and conversions do not count as FLOPs."
    if measured and facts.prediction.parameters.get("causal"):
        yield "Fully masked tiles may have been skipped."
    yield from facts.flags_of(_COUNTED_LOW)


def _type(facts: _Facts) -> Iterator[Gap]:
    """Find predicted work that ran on pipes of another type."""
    checked, predicted = facts.checked, facts.prediction.flop
    family = _expected_family(facts.prediction)
    work_of = checked.measured.work_of
    others = {pipe: amount for pipe, amount in work_of.items() if not belongs(pipe, family)}
    is_guessed = any("tensor_flop_estimated" in analysis.flags for analysis in facts.analyses)
    if not predicted or not others or is_guessed:
        return
    missing = predicted - (sum(work_of.values()) - sum(others.values()))
    other = max(others, key=lambda pipe: others[pipe])
    if missing < WRONG_TYPE_FROM * predicted or others[other] < missing / 2 or not _matters(facts, other):
        return
    part = percent(others[other] / sum(work_of.values()))
    head = f"Predicted for {resource_label(family)}, but {resource_label(other)} did {part} of the work."
    yield Gap("type", head, (*_published(facts, family, other), *_tf32_words(family, other)))


def _expected_family(prediction: Prediction) -> str:
    """Name the pipe that the prediction was made for."""
    if prediction.resource is not None and prediction.resource not in LEVELS:
        return prediction.resource
    return f"tensor_{prediction.dtype}" if prediction.dtype in _MATRIX_TYPES else prediction.dtype


def _matters(facts: _Facts, pipe: str) -> bool:
    """Return whether another pipe matters: vector work of narrow types is meant to run on FP32."""
    resource = facts.prediction.resource
    if resource is not None and resource not in LEVELS:
        return True
    peaks = [one.pipes[pipe].peak_per_s for one in facts.analyses if pipe in one.pipes]
    peak = max((peak for peak in peaks if peak), default=None)
    memory_ns = facts.checked.times.memory_ns
    return bool(peak and memory_ns and facts.prediction.flop and facts.prediction.flop / peak * 1e9 > memory_ns)


def _published(facts: _Facts, family: str, other: str) -> Iterator[str]:
    gpu = datasheet_of(facts.analyses[0].kernel.gpu)
    expected, found = (gpu.peaks.get(key) if gpu else None for key in (family, _type_of(other)))
    if expected is not None and found is not None:
        yield f"Their published peaks are {si(found.value, 'FLOP/s')} and {si(expected.value, 'FLOP/s')}."


def _type_of(pipe: str) -> str:
    """Drop instruction and accumulator from a pipe's name: `tensor_bf16_wgmma` gives `tensor_bf16`."""
    return "_".join(pipe.split("_")[:2])


def _tf32_words(family: str, other: str) -> Iterator[str]:
    if (family, _type_of(other)) == ("tensor_tf32", "fp32"):
        yield "TF32 may be disabled."
    if (family, _type_of(other)) == ("fp32", "tensor_tf32"):
        yield "Operands were rounded to TF32."


def _bytes(facts: _Facts) -> Iterator[Gap]:
    checked, predicted = facts.checked, facts.prediction.moved_bytes
    moved, found = checked.measured.moved_bytes, checked.bytes_ratio
    if not predicted:
        return
    if moved is None or found is None:
        yield Gap("bytes", "The bytes at DRAM were not measured.")
    elif is_same(found, SAME_BYTES):
        text = f"DRAM moved the compulsory bytes: {si(moved, 'B')}."
        yield Gap("bytes", text, tuple(_rereads(facts, moved, predicted)), as_predicted=True)
    else:
        head = f"DRAM moved {si(moved, 'B')}, {_times(found)} the compulsory {si(predicted, 'B')}{_directions(facts)}."
        reasons = _more_bytes(facts, moved, predicted) if found > 1 else _fewer_bytes(facts, predicted)
        yield Gap("bytes", head, tuple(reasons))


def _directions(facts: _Facts) -> str:
    read, written = facts.checked.measured.read_bytes, facts.checked.measured.written_bytes
    return "" if read is None or written is None else f": {si(read, 'B')} read, {si(written, 'B')} written"


def _rereads(facts: _Facts, moved: float, predicted: float) -> Iterator[str]:
    """Say how often the SMs read the data from L2 again."""
    l2 = facts.checked.measured.level_bytes["l2"]
    if l2 is not None and l2 > REREAD_FROM * predicted and l2 > moved:
        again = f"Between the SMs and L2 {si(l2, 'B')} moved, {_times(l2 / predicted)} the compulsory bytes"
        yield f"{again}: operands are read again, and {percent(moved / l2)} of that reaches DRAM."


def _more_bytes(facts: _Facts, moved: float, predicted: float) -> Iterator[str]:
    l2, size = facts.checked.measured.level_bytes["l2"], _l2_bytes(facts)
    if l2 is not None and moved > l2 * (1 + SAME_BYTES):
        asked = f"Only {si(l2, 'B')} passed between the SMs and L2, {_times(moved / l2)} of that at DRAM"
        yield f"{asked}: memory may be fetched in larger pieces than requested."
    yield from _rereads(facts, moved, predicted)
    if size is not None and predicted > size:
        yield f"The compulsory bytes do not fit in the {si(size, 'B')} of L2."
    launches = facts.checked.measured.launches
    if launches > facts.prediction.iterations:
        yield f"Data passed between the {launches} launches may go through DRAM."


def _fewer_bytes(facts: _Facts, predicted: float) -> Iterator[str]:
    if facts.checked.at_least:
        return
    resident = [analysis for analysis in facts.analyses if _IN_L2 in analysis.flags]
    if resident:
        to_l2, to_dram = (
            sum(one.kernel.counters.get(name, 0.0) * one.launches for one in resident)
            for name in ("l2_write_bytes", "dram_write_bytes")
        )
        yield f"The output stayed in L2: {si(to_l2, 'B')} were written to it, but only {si(to_dram, 'B')} on to DRAM."
    if facts.checked.coverage.caches_kept:
        yield "Caches were not flushed before each kernel: inputs may have been in L2 already."
    size = _l2_bytes(facts)
    if not resident and size is not None and predicted < size:
        yield f"All of it fits in the {si(size, 'B')} of L2, where some of it may have stayed."


def _l2_bytes(facts: _Facts) -> float | None:
    """Return the published size of L2; None if unknown."""
    gpu = datasheet_of(facts.analyses[0].kernel.gpu) if facts.analyses else None
    return gpu.l2_size.value if gpu and gpu.l2_size else None


def _time(facts: _Facts) -> Iterator[Gap]:
    times, time_ns = facts.checked.times, facts.checked.measured.time_ns
    floor_ns = times.floor_ns
    if not floor_ns or not time_ns or (time_ns < floor_ns and facts.checked.at_least):
        return
    text = f"{time_words(time_ns / 1e9, floor_ns / 1e9, times.attainable, (times.math_ns or 0.0) / 1e9)}."
    usual_ns = times.attainable.high_s * 1e9 if times.attainable else floor_ns / default_thresholds().at_roof_share
    if floor_ns <= time_ns <= usual_ns:
        yield Gap("time", text, as_predicted=True)
    else:
        yield Gap("time", text, tuple(_time_reasons(facts, time_ns - floor_ns)))


def _time_reasons(facts: _Facts, beyond_ns: float) -> Iterator[str]:
    """Say what may explain the time beyond the floor."""
    if beyond_ns < 0:
        yield "Not everything was profiled, or less work was done than predicted."
        return
    checked = facts.checked
    more_work = (checked.work_ratio or 0.0) > 1 + SAME_AMOUNT
    more_bytes = (checked.bytes_ratio or 0.0) > 1 + SAME_BYTES
    extra = " and ".join([*(["work"] if more_work else []), *(["bytes"] if more_bytes else [])])
    limiter = checked.measured.limiter
    if limiter is not None and limiter[1] not in {None, "dram", checked.times.pipe}:
        causes = f"Their limiter, {limiter_words(*limiter)},{f' and the extra {extra}' if extra else ''}"
    else:
        causes = f"The extra {extra}, or latency," if extra else "Latency or launch overhead"
    yield f"{causes} may explain the {duration(beyond_ns)} beyond it."


def _limiter(facts: _Facts) -> Iterator[Gap]:
    prediction, limiter = facts.prediction, facts.checked.measured.limiter
    if prediction.bound is None or limiter is None:
        return
    part = percent(facts.checked.measured.limiter_share or 0.0)
    if is_expected(limiter, prediction):
        text = f"It is limited, as expected, by {limiter_words(*limiter)} for {part} of the time."
        yield Gap("limiter", text, as_predicted=True)
        return
    found = f"It is limited by {limiter_words(*limiter)} for {part} of the time{_cause(facts, limiter)}."
    why = f": {prediction.why}" if prediction.why else ""
    yield Gap("limiter", found, (f"The prediction was {limiter_words(prediction.bound, prediction.resource)}{why}.",))


def _cause(facts: _Facts, limiter: Limiter) -> str:
    """Return `: CAUSE` of the longest kernel at a limiter; empty without a cause."""
    at_limiter = [one for one in facts.analyses if (one.verdict.shown_class, one.verdict.resource) == limiter]
    longest = max(at_limiter, key=lambda one: one.gpu_time_ns or 0.0)
    return f": {longest.verdict.cause}" if longest.verdict.cause else ""
