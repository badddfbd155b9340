"""Predict a measured kernel on another GPU or in another type, from the lower bound of its time there.

T_math = sum(FLOP_i / peak_i), T_memory = DRAM bytes / bandwidth, lower bound = max of the two, as in the roofline.
Both GPUs have the dense peaks of their datasheets, at boost clock. FLOPs and bytes are measured.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError, RooflensError, UnknownNameError, UsageError
from rooflens.format import duration
from rooflens.model.predict.rows import ELEMENT_BYTES, TYPE_SYNONYMS
from rooflens.model.ranking import in_order
from rooflens.model.records import Analysis
from rooflens.model.roofline.datasheets import PEAK_KEYS, Datasheet, datasheet_of
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.summary import KernelSummary, summarize
from rooflens.model.verdict.narrower import (
    SCALAR,
    could_use_tensor_cores,
    is_product_on_cuda_cores,
    pipe_in_type,
)
from rooflens.model.verdict.thresholds import default_thresholds

Side = Literal["memory", "compute"]

SMALL_PART = 0.01
"""Pipes with less than this part of a kernel's operations need no peak: compilers load constants by fp16 pipes."""

_INSTRUCTION = re.compile(r"_(?:wgmma|tcgen05)$")


class Load(Struct, frozen=True):
    """The work and the traffic of a launch.

    Attributes:
        ops: Operations by pipe as `Datasheet.peaks` names them. Work with 2:4 sparsity keeps its own name, for which
            no file has a peak.
        moved_bytes: Bytes from and to DRAM.
    """

    ops: Mapping[str, float]
    moved_bytes: float

    @property
    def needed(self) -> tuple[str, ...]:
        """Pipes whose peaks are needed for a prediction."""
        least = SMALL_PART * sum(self.ops.values())
        return tuple(key for key, amount in self.ops.items() if amount >= least)


class GpuRoofs(Struct, frozen=True):
    """The DRAM slope and the flat roofs of one GPU: by datasheet, or a report's own at the profiled clock."""

    bandwidth_bytes_per_s: float
    peaks_per_s: Mapping[str, float]


class RoofTimes(Struct, frozen=True):
    """One launch under the roofs of one GPU."""

    math_s: float
    memory_s: float

    @property
    def lower_s(self) -> float:
        """Lower bound of the time: the longer of math and traffic."""
        return max(self.math_s, self.memory_s)

    @property
    def side(self) -> Side:
        """The side of the ridge: `memory` is left of it."""
        return "compute" if self.math_s > self.memory_s else "memory"


def peak_key(pipe: str) -> str:
    """Name a pipe as GPU files do, without the instruction that issues it."""
    return _INSTRUCTION.sub("", pipe)


def load_of(analysis: Analysis) -> Load | None:
    """Collect what a kernel computes and moves; None if the report lacks a part, or it does neither."""
    moved_bytes = analysis.levels["dram"].amount_bytes
    if analysis.flop_total is None or moved_bytes is None:
        return None
    ops: defaultdict[str, float] = defaultdict(float)
    for name, pipe in analysis.pipes.items():
        if pipe.unit in {"FLOP", "op"} and pipe.amount:
            ops[peak_key(name)] += pipe.amount
    return Load(MappingProxyType(dict(ops)), moved_bytes) if ops or moved_bytes else None


def gpu_roofs(gpu: Datasheet) -> GpuRoofs:
    """Return the roofs of a datasheet."""
    peaks = {key: peak.value for key in PEAK_KEYS if (peak := gpu.peak(key))}
    return GpuRoofs(gpu.dram_bandwidth.value, MappingProxyType(peaks))


def report_roofs(analysis: Analysis) -> GpuRoofs | None:
    """Return the roofs in a kernel's own report, at the profiled clock; None without a bandwidth."""
    bandwidth = analysis.levels["dram"].peak_bytes_per_s
    if not bandwidth:
        return None
    peaks: dict[str, float] = {}
    for name, pipe in analysis.pipes.items():
        if pipe.unit in {"FLOP", "op"} and pipe.peak_per_s:
            # Two instructions of one type have a peak each; the slower one is the careful choice here.
            peaks[peak_key(name)] = min(pipe.peak_per_s, peaks.get(peak_key(name), pipe.peak_per_s))
    return GpuRoofs(bandwidth, MappingProxyType(peaks))


def missing_peaks(load: Load, roofs: GpuRoofs) -> tuple[str, ...]:
    """Name the pipes of a load that a GPU has no peak for."""
    return tuple(key for key in load.needed if key not in roofs.peaks_per_s)


def place(load: Load, roofs: GpuRoofs) -> RoofTimes | None:
    """Place a load under the roofs of a GPU; None if a peak is missing."""
    if missing_peaks(load, roofs):
        return None
    math_s = sum(amount / roofs.peaks_per_s[key] for key, amount in load.ops.items() if key in roofs.peaks_per_s)
    return RoofTimes(math_s, load.moved_bytes / roofs.bandwidth_bytes_per_s)


def own_roofs(analysis: Analysis) -> GpuRoofs | None:
    """Return the roofs of a kernel's own GPU: by its datasheet, or those of its report if there is none."""
    gpu = datasheet_of(analysis.kernel.gpu)
    return report_roofs(analysis) if gpu is None else gpu_roofs(gpu)


def tells_time(analysis: Analysis) -> bool:
    """Return whether a kernel's limiter is DRAM or a pipe with FLOPs, so that the lower bound tells its time.

    It does not if latency, overhead or a cache limits it.
    """
    verdict = analysis.verdict
    at_a_limiter = verdict.bound in {"memory", "compute", "balanced"}
    return at_a_limiter and (verdict.resource == "dram" or peak_key(verdict.resource or "") in PEAK_KEYS)


class WhatIf(Struct, frozen=True):
    """A measured kernel on another GPU, in another type, or both.

    Attributes:
        kernel: All of its launches; the median one gives the factor.
        dtype: The other type; None for the types as measured.
        lower_ns: Lower bound of their time there; None if a peak is missing.
        about_ns: Their time there if each stays as far above the lower bound as here; None if that cannot be said.
        side: What takes longer there, `memory` or `compute`; None if there is no prediction.
        reason: Why there is no prediction; empty if there is one.
        pipe: Where its main arithmetic runs in the other type; None without another type.
    """

    kernel: KernelSummary
    gpu: Datasheet
    dtype: str | None
    lower_ns: float | None = None
    about_ns: float | None = None
    side: Side | None = None
    reason: str = ""
    pipe: str | None = None

    def __repr__(self) -> str:
        where = self.gpu.name + (f" in {self.dtype}" if self.dtype else "")
        times = f"{duration(self.measured_ns)} here, about {duration(self.about_ns)} there"
        return f"<WhatIf of {self.kernel.shown!r} on {where}: {self.reason or times}>"

    @property
    def worth(self) -> bool | None:
        """Whether the other type is worth it; None without one, or without a prediction."""
        return None if self.dtype is None or self.factor is None else self.factor > default_thresholds().limiter_gain

    @property
    def measured_ns(self) -> float | None:
        """Time of all its launches here."""
        return self.kernel.duration_ns

    @property
    def factor(self) -> float | None:
        """Estimated speed-up on the other GPU; over 1 is faster."""
        return self.measured_ns / self.about_ns if self.measured_ns and self.about_ns else None


def main_type(load: Load) -> tuple[str, str] | None:
    """Return the pipe and type of most of a kernel's floating-point work; None without such work."""
    flops = {key: amount for key, amount in load.ops.items() if _type_of(key) in _FLOATING}
    pipe = max(flops, key=lambda key: flops[key], default=None)
    return None if pipe is None or not flops[pipe] else (pipe, _type_of(pipe))


def next_type(analysis: Analysis) -> str:
    """Name the narrower type to try first: fp32 for a kernel in fp64, else fp16."""
    load = load_of(analysis)
    main = main_type(load) if load is not None else None
    return "fp32" if main is not None and main[1] == "fp64" else "fp16"


def type_answer(analysis: Analysis) -> WhatIf | None:
    """Say whether `next_type` is worth it for a kernel on its own GPU; every output gives this answer.

    None if it computes in that type already or not at all, or its GPU is unknown.
    """
    (kernel,) = summarize([analysis])
    try:
        return what_if(kernel, None, next_type(analysis))
    except RooflensError:
        return None


def _type_of(pipe: str) -> str:
    return pipe.removeprefix("tensor_").partition("_")[0]


_FLOATING = frozenset(name for name in ELEMENT_BYTES if not name.startswith("int"))


def retyped(load: Load, dtype: str, *, product: bool = False) -> Load:
    """Convert the main arithmetic of a load, and all its bytes, to another type: the best case.

    Products run on tensor cores then. Other work only stores narrow values, and computes in fp32.

    Raises:
        UsageError: The type has no effect on it.
    """
    main = main_type(load)
    if main is None:
        raise UsageError(f"`--dtype {dtype}` has no effect", "the kernel does no floating-point arithmetic")
    pipe, before = main
    if before == dtype:
        raise UsageError(f"`--dtype {dtype}` has no effect", f"most of its arithmetic is {dtype} already")
    after = pipe_in_type(pipe, dtype, product=product)
    ops: defaultdict[str, float] = defaultdict(float)
    for key, amount in load.ops.items():
        ops[after if key == pipe else key] += amount
    ratio = ELEMENT_BYTES[dtype] / ELEMENT_BYTES[before]
    return Load(MappingProxyType(dict(ops)), load.moved_bytes * ratio)


def what_if(kernel: KernelSummary, gpu: Datasheet | None, dtype: str | None) -> WhatIf:
    """Predict a measured kernel on another GPU, in another type, or both.

    Args:
        kernel: The kernel, with all its launches.
        gpu: The other GPU; None for its own.
        dtype: The other type; None for the types as measured.

    Raises:
        UsageError: The type has no effect on it.
        InputError: No other GPU was given, and there is no datasheet of its own.
    """
    analysis = kernel.analysis
    there = gpu or datasheet_of(analysis.kernel.gpu)
    if there is None and analysis.kernel.gpu is None:
        raise InputError(
            "the report does not name its GPU, and the type needs its peaks",
            "name it with --from-gpu, or another one to predict on with --gpu",
        )
    if there is None:
        raise InputError(
            f"no datasheet of {analysis.kernel.gpu} is known, and the type needs its peaks",
            "`--gpu NAME` predicts on a GPU that `rooflens gpus` lists",
        )
    counted, roofs = load_of(analysis), own_roofs(analysis)
    here = place(counted, roofs) if counted and roofs else None
    answer = WhatIf(kernel, there, dtype)
    if counted is None or here is None:
        return replace(answer, reason=_lacking_counts(analysis, counted, roofs))
    kernel_of, limits = analysis.kernel, default_thresholds()
    product = dtype is not None and is_product_on_cuda_cores(kernel_of, analysis.pipes, limits)
    load = counted if dtype is None else retyped(counted, dtype, product=product)
    to_tensor = product and could_use_tensor_cores(kernel_of, analysis.pipes, limits) and dtype not in SCALAR
    placed = place(load, gpu_roofs(there))
    if placed is None:
        missing = _pipe_names(missing_peaks(load, gpu_roofs(there)))
        return replace(answer, reason=f"no published peak of {missing} for {there.name}")
    launches: float = kernel.launch_count
    if median_ns := analysis.kernel.duration_ns:  # as many of the median launch as take the time of all
        times_ns = [(one.analysis.kernel.duration_ns or 0.0) * one.analysis.launches for one in kernel.launches]
        launches = sum(times_ns) / median_ns
    # A product that fills fp32 is rewritten for tensor cores: what limits its code today is not what counts.
    reason = "" if to_tensor and here.lower_s else _far_from_bound(analysis, here)
    pipe = main_type(load)
    found = replace(
        answer, lower_ns=placed.lower_s * launches * 1e9, reason=reason, pipe=pipe[0] if dtype and pipe else None
    )
    if found.reason or kernel.duration_ns is None:
        return replace(found, reason=found.reason or "time not measured")
    return replace(found, about_ns=kernel.duration_ns * placed.lower_s / here.lower_s, side=placed.side)


def _far_from_bound(analysis: Analysis, here: RoofTimes) -> str:
    """Say why the lower bound does not tell a kernel's time; empty if it does."""
    bound, resource = analysis.verdict.bound, analysis.verdict.resource
    limiter = bound if resource is None else resource_label(resource, analysis.kernel.gpu)
    if bound == "unknown":
        return "limiter not known"
    if not tells_time(analysis) or not here.lower_s:
        return f"limited by {limiter}, which datasheets do not cover"
    if (resource == "dram") != (here.side == "memory"):
        longer = "DRAM traffic" if here.side == "memory" else "arithmetic"
        return f"limited by {limiter}, though by datasheet {longer} takes longer"
    return ""


def check_change(gpus: Sequence[object], dtype: str | None, hint: str) -> None:
    """Check that a GPU or a known type was given; `hint` says what to give.

    Raises:
        UsageError: Neither was, or there is no such type.
    """
    if not gpus and dtype is None:
        raise UsageError("nothing to predict", hint)
    if dtype is not None and dtype not in ELEMENT_BYTES:
        raise UnknownNameError("type", dtype, ELEMENT_BYTES, synonyms=TYPE_SYNONYMS)


def elsewhere(
    analyses: Sequence[Analysis], gpus: Sequence[Datasheet], dtype: str | None
) -> tuple[list[WhatIf], dict[str, InputError | UsageError]]:
    """Predict what each kernel would take on other GPUs, in another type, or both; most to win here first.

    Args:
        analyses: All launches; failed ones are skipped.
        gpus: The other GPUs; if empty, each kernel stays on its own.
        dtype: The other type; None for the types as measured.

    Returns:
        The predictions, and why kernels are left out, by name.

    Raises:
        UsageError: The type has no effect on any of them.
        InputError: No kernel was measured; or no GPU was given, and there is no datasheet of theirs.
    """
    kernels = [kernel for kernel in in_order(summarize(analyses)) if not kernel.is_failed]
    if not kernels:
        raise InputError("no kernel of these reports was measured", "`rooflens analyze` says why")
    answers, left_out = [], {}
    places: Sequence[Datasheet | None] = gpus or [None]
    for kernel, gpu in product(kernels, places):
        try:
            answers.append(what_if(kernel, gpu, dtype))
        except (InputError, UsageError) as error:
            left_out[kernel.shown] = error
    if not answers and len({(str(why), why.hint) for why in left_out.values()}) == 1:
        raise next(iter(left_out.values()))
    return answers, left_out


def _pipe_names(pipes: Iterable[str]) -> str:
    return " and ".join(map(resource_label, pipes))


def _lacking_counts(analysis: Analysis, load: Load | None, roofs: GpuRoofs | None) -> str:
    """Say what is missing for a forecast on another GPU: counts, DRAM bytes, a published peak."""
    lacking = []
    if analysis.flop_total is None:
        lacking.append("some FLOPs not counted" if analysis.flop else "FLOPs not counted")
    if analysis.levels["dram"].amount_bytes is None:
        lacking.append("DRAM bytes not measured")
    if load is None:
        return ", ".join(lacking) or "neither operations nor DRAM bytes"
    if roofs is None:
        return "no known DRAM bandwidth of its GPU"
    gpu, missing = datasheet_of(analysis.kernel.gpu), _pipe_names(missing_peaks(load, roofs))
    return f"no published peak of {missing} for {gpu.name}" if gpu else f"no peak of {missing} in the report"
