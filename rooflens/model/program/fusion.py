"""Find operators that could be fused: one writes a tensor that only the next one reads.

A trace holds sizes and types, no addresses, so a pair is one that could be fused: on one stream, with no call between,
the first has a single result, and the second a single operand of that size and type. Both are elementwise functions,
norms or reductions that memory bounds by their formulas. Fused into one kernel, the tensor between them stays in
registers: it is neither written nor read. Where the program reads more tensors of that size and type than it writes,
another call may read it, too, such as a backward pass: then it must still be written, and only its read is saved. So
it is where the first operator changes a tensor in place, which may outlive both.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from rooflens.model.program.floors import limit_of
from rooflens.model.program.operators import OddOperandsError, operator_row, work_of_call

if TYPE_CHECKING:
    from rooflens.model.program.call import Tensor, Work
    from rooflens.model.program.floors import Floors
    from rooflens.model.program.launches import Launches
    from rooflens.model.program.timeline import KernelEvent
    from rooflens.model.roofline.datasheets import Datasheet

_FUSIBLE = frozenset({"elementwise", "norm", "reduction"})
_IDEMPOTENT = frozenset({"abs", "relu", "sign", "round", "floor", "ceil", "trunc", "neg"})
_NUMBER = re.compile(r"\d+")
LEAST_SHARE = 0.001
"""Pairs that save a smaller part of the program's time are counted, not listed."""

_LEAST_ELEMENTS = 1024
"""Smaller tensors are not worth a word: launches cost more than their bytes."""


class Fusion(Struct, frozen=True):
    """A pair of operators that could be one kernel, wherever it occurs.

    Attributes:
        first, second: The operators.
        first_kernel, second_kernel: Their kernels.
        module: The module whose forward pass launched most of them; None if unknown.
        shape, dtype: Sizes and type of the tensor between them.
        count: How often the pair occurs.
        tensor_bytes: Bytes of that tensor.
        is_kept: The tensor may be read by another call, or outlive both, so that it must still be written.
        saved_bytes: Bytes saved, of all occurrences.
        saved_ns: The time of these bytes, from DRAM, or from L2 where the tensor fits in it; at most that of the
            kernels.
        time_ns: What both take today.
        share: `saved_ns` over the program's time.
        fits_l2: Whether the tensor fits in L2.
    """

    first: str
    second: str
    first_kernel: str
    second_kernel: str
    module: str | None
    shape: str
    dtype: str
    count: int
    tensor_bytes: int
    is_kept: bool
    saved_bytes: int
    saved_ns: float
    time_ns: int
    share: float
    fits_l2: bool


class MinorFusions(Struct, frozen=True):
    """Pairs that are not worth a row, each below `LEAST_SHARE`: how many, and what they save together."""

    count: int = 0
    saved_ns: float = 0.0


_Size: TypeAlias = "tuple[int, str, int]"


class _Called:
    """An operator with its operands, and how often it was called with them."""

    __slots__ = ("count", "is_fusible", "operands", "operator", "work")

    def __init__(self, event: KernelEvent) -> None:
        self.operator, self.operands, self.work, self.count = event.operator, event.operands, _work_of(event), 0
        self.is_fusible = self.work is not None and _is_fusible(event.operator)


class _Made:
    """One call as its kernels run."""

    __slots__ = ("called", "kernel", "module", "time_ns")

    def __init__(self, event: KernelEvent, called: _Called, time_ns: int) -> None:
        self.kernel, self.module, self.called = event.name, event.module, called
        self.time_ns = time_ns


class _Stream:
    """The last call of a stream, and the one before it; None for those that cannot be fused."""

    __slots__ = ("before", "call", "last")

    def __init__(self) -> None:
        self.call = 0
        self.before: _Made | None = None
        self.last: _Made | None = None


class _Pair:
    """The occurrences of a pair of operators with one size between them."""

    def __init__(self, first: _Made, second: _Made, between: Tensor) -> None:
        self.first, self.second, self.between = first, second, between
        self.times_ns = array("q"), array("q")
        self.modules: Counter[str] = Counter()

    def add(self, first: _Made, second: _Made) -> None:
        """Count an occurrence."""
        self.times_ns[0].append(first.time_ns)
        self.times_ns[1].append(second.time_ns)
        if (module := second.module or first.module) is not None:
            self.modules[_NUMBER.sub("*", module)] += 1


class Fusing:
    """Looks through the launches of a timeline for pairs that could be fused."""

    def __init__(self, launches: Launches) -> None:
        self._called: dict[tuple[str | None, int], _Called] = {}
        self._pairs: dict[tuple[str | None, str | None, Tensor], _Pair] = {}
        self._looked: dict[tuple[_Called, _Called], _Pair | None] = {}
        called = [*map(self._called_by, launches.alike)]
        streams = [_Stream() for _ in launches.streams]
        columns = zip(launches.lanes, launches.calls, launches.kinds, launches.durations, strict=True)
        for lane, call, kind, time_ns in columns if self._called else ():
            stream = streams[lane]
            if call and call == stream.call:
                if stream.last is not None:
                    stream.last.time_ns += time_ns
                continue
            self._look(stream)
            one = called[kind]
            if one is None:
                stream.call, stream.last = 0, None
                continue
            one.count += 1
            stream.call = call
            stream.last = _Made(launches.alike[kind], one, time_ns) if one.is_fusible else None
        for stream in streams:
            self._look(stream)

    def _called_by(self, event: KernelEvent) -> _Called | None:
        """Return the operator that launched a kernel; None where its operands are unknown."""
        if not event.call or event.operands is None:
            return None
        key = event.operator, id(event.operands)
        return self._called.get(key) or self._called.setdefault(key, _Called(event))

    def _look(self, stream: _Stream) -> None:
        """Keep the last two calls of a stream if the second could take the first one in."""
        first, second, stream.before = stream.before, stream.last, stream.last
        if first is None or second is None:
            return
        key = first.called, second.called
        if key not in self._looked:
            between = _between(*key)
            self._looked[key] = None if between is None else self._pair_of_calls(first, second, between)
        if (pair := self._looked[key]) is not None:
            pair.add(first, second)

    def _pair_of_calls(self, first: _Made, second: _Made, between: Tensor) -> _Pair:
        key = first.called.operator, second.called.operator, between
        return self._pairs.get(key) or self._pairs.setdefault(key, _Pair(first, second, between))

    def fusions(
        self, gpu: Datasheet | None, floors: Floors, wall_ns: float | None
    ) -> tuple[tuple[Fusion, ...], MinorFusions]:
        """Return the pairs, most to save first, and those left out; none without a GPU, or the time of the program."""
        if gpu is None or not wall_ns:
            return (), MinorFusions()
        spare = self._spare()
        found = [
            _fusion(pair, gpu, wall_ns, is_kept=_is_state(pair) or spare[_tensor_size(pair.between)] > 0)
            for pair in self._pairs.values()
            if all(_is_memory_bound(one, floors) for one in (pair.first, pair.second))
        ]
        pairs = sorted((one for one in found if one.share >= LEAST_SHARE), key=lambda one: -one.saved_ns)
        minor = [one.saved_ns for one in found if one.share < LEAST_SHARE]
        return tuple(pairs), MinorFusions(len(minor), sum(minor))

    def _spare(self) -> Counter[_Size]:
        """Count how often more tensors of a size are read than written."""
        found: Counter[_Size] = Counter()
        for called in self._called.values():
            if called.work is not None:
                for one in called.work.read:
                    found[_tensor_size(one)] += called.count
                for one in called.work.written:
                    found[_tensor_size(one)] -= called.count
        return found


def _fusion(pair: _Pair, gpu: Datasheet, wall_ns: float, *, is_kept: bool) -> Fusion:
    between, tensor_bytes = pair.between, pair.between.moved_bytes
    fits_l2 = gpu.l2_size is not None and tensor_bytes <= gpu.l2_size.value
    rate = gpu.l2_bandwidth if fits_l2 and gpu.l2_bandwidth is not None else gpu.dram_bandwidth
    moved_ns = tensor_bytes / rate.value * 1e9
    writing, reading = pair.times_ns
    # A kernel cannot save more than it takes; one whose tensor is needed later still has to write it.
    saved_ns = sum(min(moved_ns, one) for one in reading)
    saved_ns += 0 if is_kept else sum(min(moved_ns, one) for one in writing)
    count = len(reading)
    return Fusion(
        first=pair.first.called.operator or "",
        second=pair.second.called.operator or "",
        first_kernel=pair.first.kernel,
        second_kernel=pair.second.kernel,
        module=pair.modules.most_common(1)[0][0] if pair.modules else None,
        shape=f"[{', '.join(map(str, between.dims))}]",
        dtype=between.dtype or f"{8 * between.element_bytes} bits",
        count=count,
        tensor_bytes=tensor_bytes,
        is_kept=is_kept,
        saved_bytes=tensor_bytes * count * (1 if is_kept else 2),
        saved_ns=saved_ns,
        time_ns=sum(writing) + sum(reading),
        share=saved_ns / wall_ns,
        fits_l2=fits_l2,
    )


def _between(first: _Called, second: _Called) -> Tensor | None:
    """Return the tensor that the second call could take in from the first one; None if it cannot."""
    if first.work is None or second.work is None or len(first.work.written) != 1:
        return None
    if _are_of_a_list(first, second):
        return None
    between = first.work.written[0]
    if between.elements < _LEAST_ELEMENTS:
        return None
    return between if sum(_tensor_size(one) == _tensor_size(between) for one in second.work.read) == 1 else None


def _are_of_a_list(first: _Called, second: _Called) -> bool:
    """Return whether two calls rather go through a list of equal tensors than one after the other over one.

    Two copies in a row do, and two equal calls that take a parameter, change their operand in place, or would do
    nothing the second time.
    """
    if first.work is None or second.work is None or not (first.work.computes or second.work.computes):
        return True
    if first.operator != second.operator or first.operands is not second.operands or first.operands is None:
        return False
    name = (first.operator or "").rpartition("::")[2]
    return len(first.operands.dims) > 1 or name.endswith("_") or name in _IDEMPOTENT


def _is_state(pair: _Pair) -> bool:
    """Return whether the first operator changes a tensor in place that the second one leaves as it is."""
    first, second = pair.first.called.operator or "", pair.second.called.operator or ""
    return first.endswith("_") and not second.endswith("_")


def _work_of(event: KernelEvent) -> Work | None:
    try:
        return work_of_call(event.operator, event.operands)
    except (OddOperandsError, ArithmeticError):
        return None


def _tensor_size(tensor: Tensor) -> _Size:
    """Return by what tensors are told apart: a view may have other dimensions."""
    return tensor.elements, tensor.dtype, tensor.element_bytes


def _is_fusible(operator: str | None) -> bool:
    row = operator_row(operator)
    return row is not None and row.kind in _FUSIBLE


def _is_memory_bound(made: _Made, floors: Floors) -> bool:
    if made.called.work is None:
        return False
    found = floors.of(made.called.work, made.kernel)
    return found is not None and limit_of(found) == "memory"
