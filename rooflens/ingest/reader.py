"""Read one report with NVIDIA's `ncu_report` module: the only place that imports it.

The module can end the process on damaged input, so this code runs in supervised children (`rooflens.ingest.supervise`).
"""

from __future__ import annotations

import contextlib
import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError
from rooflens.ingest.container import inspect
from rooflens.ingest.kernels import RawResult, to_kernel
from rooflens.model.records import Rule, Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rooflens.ingest.container import Container
    from rooflens.model.records import Kernel

OPCODE_TABLES = (
    "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
    "sass__inst_executed_per_opcode_with_modifier_all",
    "sass__thread_inst_executed_true_per_opcode",
)
"""Instanced metrics the model needs: opcode -> count."""

TIMELINES = "pmsampling:"
"""Metrics sampled over time: NaN there means no sample, and nothing of the kernel."""

_READER_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError, SystemError, AttributeError)
"""What NVIDIA's bindings raise on damaged strings and values; a missing metric is an attribute of None."""

_RERECORD = "record the report again, or copy it again from where it was made"


@dataclass(slots=True)
class RawColumns:
    """Columns of the table `metrics`: every stored value as it was, one list item a value.

    `instance` is -1 for a metric's own value and counts from 0 for its instances.
    """

    kernel_index: list[int] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    instance: list[int] = field(default_factory=list)
    instance_key: list[str | None] = field(default_factory=list)
    value_double: list[float | None] = field(default_factory=list)
    value_uint64: list[int | None] = field(default_factory=list)
    value_string: list[str | None] = field(default_factory=list)

    def add(self, kernel_index: int, name: str, value: Any, instance: int = -1, key: Any = None) -> None:
        """Append one value under the column of its type."""
        self.kernel_index.append(kernel_index)
        self.name.append(name)
        self.instance.append(instance)
        self.instance_key.append(None if key is None else str(key))
        self.value_double.append(value if isinstance(value, float) else None)
        self.value_uint64.append(value if isinstance(value, int) else None)
        self.value_string.append(value if isinstance(value, str) else None)


@dataclass(frozen=True, slots=True)
class Report:
    """One report, read.

    Attributes:
        raw: All stored values; None when they were not asked for.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    raw: RawColumns | None


def read_report(path: Path, source: str, *, with_raw: bool) -> Report:
    """Read one report file.

    Args:
        path: The file.
        source: The path as the user gave it: what records and messages show.
        with_raw: Also return every stored value, for the table `metrics`.

    Raises:
        InputError: The file is no report, is damaged, or reads back with fewer results than it holds.
    """
    container = inspect(path)
    raw = RawColumns() if with_raw else None
    kernels = tuple(_kernels(path, source, container, raw))
    if len(kernels) != container.result_count:
        message = f"damaged: {len(kernels)} of {container.result_count} results can be read"
        raise InputError(message, _RERECORD)
    return Report(_run(container, source, len(kernels)), kernels, raw)


def _run(container: Container, source: str, kernel_count: int) -> Run:
    session = container.sessions[0] if container.sessions else None
    return Run(
        digest=container.digest,
        source=source,
        file_bytes=container.file_bytes,
        kernel_count=kernel_count,
        synthetic=container.synthetic,
        ncu_version=session.ncu_version if session else None,
        command_line=session.command_line if session else None,
        host=session.host if session else None,
        process_name=session.process_name if session else None,
        clock_control=session.clock_control if session else None,
        cache_control=session.cache_control if session else None,
        replay_mode=session.replay_mode if session else None,
        created_unix_s=session.created_unix_s if session else None,
    )


def _kernels(path: Path, source: str, container: Container, raw: RawColumns | None) -> Iterator[Kernel]:
    for index, action in enumerate(_actions(path)):
        try:
            result = _raw_result(action, index, raw)
        except _READER_ERRORS as error:
            raise InputError(f"damaged: result {index} cannot be read: {error}", _RERECORD) from error
        yield to_kernel(result, container.digest, source, synthetic=container.synthetic)


def _actions(path: Path) -> Iterator[Any]:
    import ncu_report  # noqa: PLC0415 - 50 ms and a native library: only where a report is read

    with contextlib.redirect_stdout(io.StringIO()):
        context = ncu_report.load_report(str(path))
    if context is None or context.num_ranges() == 0:
        raise InputError("damaged: no results can be read", _RERECORD)
    for range_index in range(context.num_ranges()):
        profiled_range = context.range_by_idx(range_index)
        for action_index in range(profiled_range.num_actions()):
            yield profiled_range.action_by_idx(action_index)


def _raw_result(action: Any, index: int, raw: RawColumns | None) -> RawResult:
    name = action.name()
    if name is None:
        raise InputError(f"damaged: result {index} has no name", _RERECORD)
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    tables: dict[str, dict[str, int]] = {}
    nan_count = 0
    for metric_name in action.metric_names():
        metric = action.metric_by_name(metric_name)
        value = metric.value()
        if raw is not None:
            _keep(raw, index, metric_name, metric, value)
        if metric_name in OPCODE_TABLES:
            tables[metric_name] = _table(metric)
        if isinstance(value, str):
            texts[metric_name] = value
        elif value is None:
            continue
        elif math.isnan(value):
            nan_count += not metric_name.startswith(TIMELINES)
        else:
            numbers[metric_name] = float(value)
    return RawResult(
        index=index,
        function_name=name,
        signature=action.name(action.NameBase_DEMANGLED) or name,
        workload=_workload(action),
        numbers=numbers,
        texts=texts,
        tables=tables,
        nan_count=nan_count,
        rules=_rules(action),
    )


def _keep(raw: RawColumns, index: int, name: str, metric: Any, value: Any) -> None:
    if value is not None or not metric.num_instances():
        raw.add(index, name, value)
    keys = metric.correlation_ids() if metric.has_correlation_ids() else None
    for instance in range(metric.num_instances()):
        raw.add(index, name, metric.value(instance), instance, keys.value(instance) if keys else None)


def _table(metric: Any) -> dict[str, int]:
    if not metric.has_correlation_ids():
        return {}
    keys = metric.correlation_ids()
    return {str(keys.value(i)): int(metric.as_uint64(i)) for i in range(metric.num_instances())}


def _workload(action: Any) -> str:
    kinds = {
        action.WorkloadType_KERNEL: "kernel",
        action.WorkloadType_RANGE: "range",
        action.WorkloadType_CMDLIST: "command list",
        action.WorkloadType_GRAPH: "graph",
    }
    return kinds.get(action.workload_type(), "other")


def _rules(action: Any) -> tuple[Rule, ...]:
    rules = []
    for result in action.rule_results_as_dicts():
        message = result.get("rule_message") or {}
        rules.append(
            Rule(
                identifier=result.get("rule_identifier", ""),
                section=result.get("section_identifier", ""),
                title=message.get("title", ""),
                message=message.get("message", ""),
            )
        )
    return tuple(rules)
