"""Find from the counters why a measurement differs from its prediction: keys of `report/kernel/predicted.py`.

How large a difference is, the rows of the comparison say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.predict.measured import (
    SAME_AMOUNT,
    SAME_BYTES,
    Checked,
    Coverage,
    Prediction,
    belongs,
    is_same,
    measure,
    predicted_times,
)
from rooflens.model.records import LEVELS, Analysis, ratio, timed
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.roofline.opcodes import executed

REREAD_FROM = 1.5
"""Operands are said to be read again from this multiple of the compulsory bytes between the SMs and L2 on."""

WRONG_TYPE_FROM = 0.1
"""The type counts as wrong if another pipe did at least this part of the predicted work."""

_TILE = 64
"""Typical tile of a matrix kernel: other sizes leave tiles partly empty."""

_MATRIX_TYPES = frozenset({"bf16", "fp16", "tf32", "fp8", "fp6", "fp4", "int8"})
_COUNTED_LOW = frozenset({"sparse_tensor_work", "tensor_work_not_measured", "fp16_not_measured"})
_COUNTED_HIGH = frozenset({"tensor_flop_estimated", "fp16_is_upper_bound"})


class _CheckedFacts(Struct, frozen=True):
    """A checked prediction with its kernels that did not fail."""

    checked: Checked
    analyses: Sequence[Analysis]

    @property
    def prediction(self) -> Prediction:
        return self.checked.prediction

    def has_flag(self, names: frozenset[str]) -> bool:
        return any(names & {*analysis.flags} for analysis in self.analyses)


def check(prediction: Prediction, analyses: Sequence[Analysis], coverage: Coverage | None = None) -> Checked:
    """Compare the kernels of one report with its prediction, and find what explains the difference."""
    coverage = coverage or Coverage()
    measured = measure(prediction, analyses, coverage)
    times = predicted_times(prediction, analyses)
    digest = next((analysis.kernel.digest for analysis in analyses), "")
    bare = Checked(digest, prediction, measured, times, coverage)
    bare = replace(bare, at_least=_is_lower_bound(bare))
    facts = _CheckedFacts(bare, timed(analyses))
    reasons = chain.from_iterable(topic(facts) for topic in (_scope, _work, _type, _bytes_gaps, _time_gaps))
    return replace(bare, gaps=tuple(reasons))


def _is_lower_bound(checked: Checked) -> bool:
    """Return whether launches may be missing. Only an amount equal to the predicted one proves that none is."""
    if not checked.coverage.once_each:
        return False
    if checked.prediction.flop:
        return not is_same(checked.work_ratio, SAME_AMOUNT)
    return not is_same(checked.bytes_ratio, SAME_BYTES)


def _scope(facts: _CheckedFacts) -> Iterator[str]:
    checked = facts.checked
    if checked.measured.failed:
        yield "failed"
    if checked.at_least:
        yield "launches_profiled_once"
    over = max((factor for factor in (checked.work_ratio, checked.bytes_ratio) if factor), default=0.0)
    if not checked.coverage.in_range and over > 1 + SAME_BYTES:
        yield "whole_program_profiled"


def _work(facts: _CheckedFacts) -> Iterator[str]:
    predicted, factor = facts.prediction.flop, facts.checked.work_ratio
    if not predicted:
        return
    if factor is None:
        yield "work_not_counted"
    elif not is_same(factor, SAME_AMOUNT):
        yield from _more_work(facts, predicted) if factor > 1 else _less_work(facts)


def _more_work(facts: _CheckedFacts, predicted: float) -> Iterator[str]:
    work_of = facts.checked.measured.work_of
    on_tensor = sum(amount for pipe, amount in work_of.items() if pipe.startswith("tensor"))
    if is_same(ratio(on_tensor, predicted), SAME_AMOUNT) and any(not pipe.startswith("tensor") for pipe in work_of):
        yield "work_beside_tensor"
    elif on_tensor > predicted:
        yield _tile_reason(facts.prediction.parameters)
    elif _special_functions(facts):
        yield "several_instructions"
    if facts.has_flag(_COUNTED_HIGH):
        yield "counted_high"


def _tile_reason(parameters: Mapping[str, int]) -> str:
    """Name why tiles may do more work than the formula: padding, masks, recomputation."""
    if any(name in {"m", "n", "k"} and value % _TILE for name, value in parameters.items()):
        return "uneven_tiles"
    return "edge_of_mask" if parameters.get("causal") else "padded_or_repeated"


def _special_functions(facts: _CheckedFacts) -> float:
    return sum(executed(a.kernel.thread_opcodes, ("MUFU",)) * a.launches for a in facts.analyses)


def _less_work(facts: _CheckedFacts) -> Iterator[str]:
    measured = facts.checked.measured.work
    if _special_functions(facts):
        yield "special_not_counted"
    elif not measured:
        yield "comparisons_not_counted"
    if measured and facts.prediction.parameters.get("causal"):
        yield "masked_tiles_skipped"
    if facts.has_flag(_COUNTED_LOW):
        yield "counted_low"


def _type(facts: _CheckedFacts) -> Iterator[str]:
    """Find predicted work that ran on pipes of another type."""
    checked, predicted = facts.checked, facts.prediction.flop
    family = _expected_family(facts.prediction)
    work_of = checked.measured.work_of
    others = {pipe: amount for pipe, amount in work_of.items() if not belongs(pipe, family)}
    if not predicted or not others or facts.has_flag(frozenset({"tensor_flop_estimated"})):
        return
    missing = predicted - (sum(work_of.values()) - sum(others.values()))
    other = max(others, key=lambda pipe: others[pipe])
    if missing < WRONG_TYPE_FROM * predicted or others[other] < missing / 2 or not _matters(facts, other):
        return
    # The instruction and the accumulator are no part of the type: `tensor_bf16_wgmma` is `tensor_bf16`.
    types = (family, "_".join(other.split("_")[:2]))
    tf32 = {("tensor_tf32", "fp32"): "tf32_disabled", ("fp32", "tensor_tf32"): "rounded_to_tf32"}
    yield tf32.get(types, "another_type")


def _expected_family(prediction: Prediction) -> str:
    if prediction.resource is not None and prediction.resource not in LEVELS:
        return prediction.resource
    return f"tensor_{prediction.dtype}" if prediction.dtype in _MATRIX_TYPES else prediction.dtype


def _matters(facts: _CheckedFacts, pipe: str) -> bool:
    """Return whether another pipe matters: vector work of narrow types is meant to run on FP32."""
    resource = facts.prediction.resource
    if resource is not None and resource not in LEVELS:
        return True
    peaks = [one.pipes[pipe].peak_per_s for one in facts.analyses if pipe in one.pipes]
    peak = max((peak for peak in peaks if peak), default=None)
    memory_ns = facts.checked.times.memory_ns
    return bool(peak and memory_ns and facts.prediction.flop and facts.prediction.flop / peak * 1e9 > memory_ns)


def _bytes_gaps(facts: _CheckedFacts) -> Iterator[str]:
    predicted = facts.prediction.moved_bytes
    moved, factor = facts.checked.measured.moved_bytes, facts.checked.bytes_ratio
    if not predicted:
        return
    if moved is None or factor is None:
        yield "bytes_not_measured"
    elif factor < 1 - SAME_BYTES:
        yield from _fewer_bytes(facts, predicted)
    else:
        yield from _more_bytes(facts, moved, predicted)


def _more_bytes(facts: _CheckedFacts, moved: float, predicted: float) -> Iterator[str]:
    """Name what more bytes come from; re-reads are named even where L2 serves them all."""
    l2, size, launches = facts.checked.measured.level_bytes["l2"], _l2_bytes(facts), facts.checked.measured.launches
    is_more = moved > predicted * (1 + SAME_BYTES)
    if is_more and l2 is not None and moved > l2 * (1 + SAME_BYTES):
        yield "larger_pieces"
    if l2 is not None and l2 > REREAD_FROM * predicted and l2 > moved:
        yield "read_again"
    if is_more and size is not None and predicted > size:
        yield "larger_than_l2"
    if is_more and launches > facts.prediction.iterations:
        yield "passed_between_launches"


def _fewer_bytes(facts: _CheckedFacts, predicted: float) -> Iterator[str]:
    if facts.checked.at_least:
        return
    stayed = facts.has_flag(frozenset({"dram_writes_stay_in_l2"}))
    if stayed:
        yield "output_stayed_in_l2"
    if facts.checked.coverage.caches_kept:
        yield "caches_kept"
    size = _l2_bytes(facts)
    if not stayed and size is not None and predicted < size:
        yield "fits_l2"


def _l2_bytes(facts: _CheckedFacts) -> float | None:
    gpu = datasheet_of(facts.analyses[0].kernel.gpu) if facts.analyses else None
    return gpu.l2_size.value if gpu and gpu.l2_size else None


def _time_gaps(facts: _CheckedFacts) -> Iterator[str]:
    floor_ns, time_ns = facts.checked.times.floor_ns, facts.checked.measured.time_ns
    if floor_ns and time_ns and time_ns < floor_ns and not facts.checked.at_least:
        yield "too_fast"
