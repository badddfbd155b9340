"""Count replay passes: NVIDIA's scheduler says, without a GPU, how often a kernel must run for a list of metrics.

The scheduler is the host part of NVPW (`nvperf_host.h`, `nvperf_cuda_host.h`), a library in the wheels of `ncu-report`
and CUPTI. It knows hardware counters only: not what ncu computes itself (`launch__*`), samples (`smsp__pcsamp_*`) or
counts from instrumented code (`sass__*`). ncu may add up to three passes of its own.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.errors import EnvironmentMissingError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PACKAGES = ("ncu_report", "nvidia")
_LIBRARIES = ("libnvperf_host.so*", "nvperf_host.dll", "libnvperf_host.dylib")
_UPGRADE = "pip install --upgrade ncu-report"
_UNLISTED_CHIPS = ("gv100",)
"""Chips that the library supports but does not list."""

_PROFILER = 1
"""NVPA_ACTIVITY_KIND_PROFILER: counters of whole kernels, replayed."""
_METRIC_KINDS = range(3)
"""NVPW_METRIC_TYPE_COUNTER, _RATIO and _THROUGHPUT."""
_MAX_PASSES = 1000

_SIZE, _BYTE, _TEXT, _POINTER = ctypes.c_size_t, ctypes.c_uint8, ctypes.c_char_p, ctypes.c_void_p

_STRUCTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "NVPW_InitializeHost": (),
    "NVPW_GetSupportedChipNames": (("names", ctypes.POINTER(_TEXT)), ("count", _SIZE)),
    "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize": (
        ("chip", _TEXT),
        ("availability", _POINTER),
        ("size", _SIZE),
    ),
    "NVPW_CUDA_MetricsEvaluator_Initialize": (
        ("buffer", _POINTER),
        ("buffer_size", _SIZE),
        ("chip", _TEXT),
        ("availability", _POINTER),
        ("image", _POINTER),
        ("image_size", _SIZE),
        ("evaluator", _POINTER),
    ),
    "NVPW_MetricsEvaluator_GetMetricNames": (
        ("evaluator", _POINTER),
        ("kind", _BYTE),
        ("text", _POINTER),
        ("begins", ctypes.POINTER(_SIZE)),
        ("count", _SIZE),
    ),
    "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest": (
        ("evaluator", _POINTER),
        ("name", _TEXT),
        ("request", _POINTER),
        ("request_size", _SIZE),
    ),
    "NVPW_MetricsEvaluator_GetMetricRawDependencies": (
        ("evaluator", _POINTER),
        ("requests", _POINTER),
        ("request_count", _SIZE),
        ("request_size", _SIZE),
        ("request_stride", _SIZE),
        ("raw", _POINTER),
        ("raw_count", _SIZE),
        ("optional", _POINTER),
        ("optional_count", _SIZE),
    ),
    "NVPW_CUDA_RawMetricsConfig_Create_V2": (
        ("activity", ctypes.c_int),
        ("chip", _TEXT),
        ("availability", _POINTER),
        ("config", _POINTER),
    ),
    "NVPW_RawMetricsConfig_BeginPassGroup": (("config", _POINTER), ("max_passes", _SIZE)),
    "NVPW_RawMetricsConfig_AddMetrics": (("config", _POINTER), ("requests", _POINTER), ("request_count", _SIZE)),
    "NVPW_RawMetricsConfig_EndPassGroup": (("config", _POINTER),),
    "NVPW_RawMetricsConfig_GetNumPasses_V2": (("config", _POINTER), ("count", _SIZE)),
    "NVPW_RawMetricsConfig_Destroy": (("config", _POINTER),),
    "NVPA_RawMetricRequest": (("name", _TEXT), ("isolated", _BYTE), ("keep_instances", _BYTE)),
}
"""Function of the library, or a struct in its arrays -> fields after `structSize` and `pPriv`."""


class _EvalRequest(ctypes.Structure):
    """NVPW_MetricEvalRequest: one metric with its roll-up and sub-metric; the only struct without a size field."""

    _fields_ = (("index", _SIZE), ("kind", _BYTE), ("rollup", _BYTE), ("submetric", ctypes.c_uint16))


@dataclass(frozen=True, slots=True)
class Passes:
    """The scheduler's answer for a list of metrics on one chip.

    Attributes:
        unknown: Names that are no hardware counters of that chip.
        hardware_passes: Passes that one kernel needs for all the others together.
    """

    unknown: tuple[str, ...]
    hardware_passes: int


def list_chips() -> tuple[str, ...]:
    """List the chips that the library knows, as `gh100`.

    Raises:
        EnvironmentMissingError: The library is not installed, or does not start.
    """
    found = _call("NVPW_GetSupportedChipNames")
    return (*_UNLISTED_CHIPS, *(found.names[i].decode().lower() for i in range(found.count)))


@cache
def base_names(chip: str) -> frozenset[str]:
    """Return every metric of a chip, by base name: `dram__bytes`, without roll-up and sub-metric.

    Raises:
        EnvironmentMissingError: The library is not installed, or does not start.
        UsageError: The library does not know the chip.
    """
    return frozenset(name for kind in _METRIC_KINDS for name in _names_of_kind(chip, kind))


def count_passes(chip: str, names: Iterable[str]) -> Passes:
    """Count the hardware passes that metrics need together on one chip.

    The scheduler can be given metrics one by one or all at once, and the results may differ by a pass. Which of them
    ncu uses is unknown, so the larger count is returned.

    Args:
        chip: The chip, as `gh100`.
        names: Whole metric names: `dram__bytes.sum`.

    Raises:
        EnvironmentMissingError: The library is not installed, or does not start.
        UsageError: The library does not know the chip.
    """
    asked = {name: _raw_counters(chip, name) for name in names}
    known = {name: raw for name, raw in asked.items() if raw is not None}
    added, one_by_one = _schedule(chip, known.values())
    accepted = tuple(name for name, done in zip(known, added, strict=True) if done)
    _, at_once = _schedule(chip, [tuple(dict.fromkeys(raw for name in accepted for raw in known[name]))])
    return Passes(tuple(name for name in asked if name not in accepted), max(one_by_one, at_once))


def _schedule(chip: str, groups: Iterable[tuple[bytes, ...]]) -> tuple[list[bool], int]:
    """Add groups of raw counters to a new configuration; return which were accepted, and the passes."""
    config = _checked("NVPW_CUDA_RawMetricsConfig_Create_V2", activity=_PROFILER, chip=chip.encode()).config
    try:
        _checked("NVPW_RawMetricsConfig_BeginPassGroup", config=config, max_passes=_MAX_PASSES)
        added = [_add_metric(config, group) for group in groups]
        _checked("NVPW_RawMetricsConfig_EndPassGroup", config=config)
        return added, int(_checked("NVPW_RawMetricsConfig_GetNumPasses_V2", config=config).count)
    finally:
        _call("NVPW_RawMetricsConfig_Destroy", config=config)


def _add_metric(config: int, raw_counters: tuple[bytes, ...]) -> bool:
    """Add the raw counters of a metric to a configuration; False if the chip cannot count them."""
    requests = (_struct("NVPA_RawMetricRequest") * len(raw_counters))(
        *(_record("NVPA_RawMetricRequest", name=name, isolated=1, keep_instances=1) for name in raw_counters)
    )
    done = _call(
        "NVPW_RawMetricsConfig_AddMetrics",
        config=config,
        requests=ctypes.addressof(requests),
        request_count=len(raw_counters),
    )
    return done is not None


@cache
def _raw_counters(chip: str, name: str) -> tuple[bytes, ...] | None:
    """Return the raw counters behind one metric; None if the chip has no such metric."""
    evaluator, request = _evaluator(chip).handle, _EvalRequest()
    address, size = ctypes.addressof(request), _struct_bytes(_EvalRequest)
    converted = _call(
        "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
        evaluator=evaluator,
        name=name.encode(),
        request=address,
        request_size=size,
    )
    if converted is None:
        return None
    asked = {
        "evaluator": evaluator,
        "requests": address,
        "request_count": 1,
        "request_size": size,
        "request_stride": ctypes.sizeof(_EvalRequest),
    }
    function = "NVPW_MetricsEvaluator_GetMetricRawDependencies"
    sizes = _checked(function, **asked)
    raw, optional = (_TEXT * (sizes.raw_count + 1))(), (_TEXT * (sizes.optional_count + 1))()
    counts = {"raw_count": sizes.raw_count, "optional_count": sizes.optional_count}
    _checked(function, **asked, **counts, raw=ctypes.addressof(raw), optional=ctypes.addressof(optional))
    return tuple(text for text in raw[: sizes.raw_count] if text is not None)


def _names_of_kind(chip: str, kind: int) -> Iterator[str]:
    found = _checked("NVPW_MetricsEvaluator_GetMetricNames", evaluator=_evaluator(chip).handle, kind=kind)
    for index in range(found.count):
        yield ctypes.string_at(found.text + found.begins[index]).decode()


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """An evaluator of a chip's metrics, with the memory that it uses."""

    handle: int
    memory: Any


@cache
def _evaluator(chip: str) -> _Evaluator:
    sized = _call("NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", chip=chip.encode())
    if sized is None:
        raise UnknownNameError("GPU chip", chip, list_chips())
    memory = ctypes.create_string_buffer(sized.size)
    made = _checked(
        "NVPW_CUDA_MetricsEvaluator_Initialize",
        buffer=ctypes.addressof(memory),
        buffer_size=sized.size,
        chip=chip.encode(),
    )
    return _Evaluator(made.evaluator, memory)


def _checked(function: str, /, **values: Any) -> Any:
    """Call a function that cannot fail for a known chip; raise an error if it does."""
    done = _call(function, **values)
    if done is None:
        raise EnvironmentMissingError(f"NVIDIA's pass scheduler failed in `{function}`", _UPGRADE)
    return done


def _call(function: str, /, **values: Any) -> Any:
    """Call a function of the library; return its struct, filled in, or None if it fails."""
    record = _record(function, **values)
    status = getattr(_library(), function)(ctypes.byref(record))
    return None if status else record


@cache
def _library() -> ctypes.CDLL:
    path = next(_candidates(), None)
    if path is None:
        raise EnvironmentMissingError("counting passes needs NVIDIA's `libnvperf_host`", "pip install ncu-report")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EnvironmentMissingError(f"`{path.name}` cannot be loaded: {error}", _UPGRADE) from error
    if library.NVPW_InitializeHost(ctypes.byref(_record("NVPW_InitializeHost"))):
        raise EnvironmentMissingError(f"`{path.name}` does not start", _UPGRADE)
    return library


def _candidates() -> Iterator[Path]:
    """Find the library in the packages that carry it, without importing them."""
    for package in _PACKAGES:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for pattern in _LIBRARIES:
                yield from sorted(Path(folder).rglob(pattern))


@cache
def _struct(name: str) -> type[Any]:
    head = (("structSize", _SIZE), ("pPriv", _POINTER))
    return type(name, (ctypes.Structure,), {"_fields_": (*head, *_STRUCTS[name])})


def _record(name: str, /, **values: Any) -> Any:
    kind = _struct(name)
    return kind(structSize=_struct_bytes(kind), **values)


def _struct_bytes(kind: type[Any]) -> int:
    """Return the offset of the end of a struct's last field: the library does not count padding after it."""
    last = getattr(kind, kind._fields_[-1][0])
    return int(last.offset + last.size)
