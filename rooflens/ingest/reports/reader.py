"""Read one report with NVIDIA's `ncu_report` module: the only place that imports it.

The module can end the process on damaged input, so this code runs in supervised children (`rooflens.ingest.supervise`).
"""

from __future__ import annotations

import contextlib
import io
import math
import tempfile
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError
from rooflens.ingest.reports.code import read_code
from rooflens.ingest.reports.container import Origin, inspect
from rooflens.ingest.reports.results import RawResult, is_measured, is_wanted, thread_opcodes, to_kernel
from rooflens.ingest.reports.series import read_series
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX, unpacked
from rooflens.model.records import Rule, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from rooflens.ingest.reports.container import Container
    from rooflens.ingest.reports.raw import RawTable
    from rooflens.model.records import Kernel

OPCODE_TABLES = (
    "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
    "sass__inst_executed_per_opcode_with_modifier_all",
    "sass__thread_inst_executed_true_per_opcode",
)
"""Instanced metrics the model needs: opcode -> count."""

_OF_UNIT, _OF_KERNEL = 1, 2
"""Types of an estimated speed-up: that of the unit which the rule looks at, and that of the kernel."""

_READER_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError, SystemError, AttributeError)
"""What NVIDIA's bindings raise on damaged strings and values; a missing metric is an attribute of None."""

_RERECORD = "record the report again, or copy it again from where it was made"


@dataclass(slots=True)
class _Values:
    """The values of one result, sorted by kind."""

    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    nan_count: int = 0

    def add(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            self.texts[name] = _clean(value)
        elif value is None:
            return
        elif math.isnan(value):
            self.nan_count += is_measured(name)
        elif math.isfinite(value):
            self.numbers[name] = float(value)


@dataclass(frozen=True, slots=True)
class Report:
    """One report, read.

    Attributes:
        raw: All stored values, rows of the table `metrics`; None when they were not asked for.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    raw: pa.Table | None


def read_report(path: Path, source: str, *, with_raw: bool) -> Report:
    """Read one report file.

    Args:
        path: The file, plain or compressed.
        source: The path as the user gave it: what records and messages show.
        with_raw: Also return every stored value, for the table `metrics`.

    Raises:
        InputError: The file is no report, is damaged, or reads back with fewer results than it holds.
    """
    with unpacked(path) as plain:
        container = inspect(plain)
        raw = _raw_table(container.digest) if with_raw else None
        kernels = tuple(_kernels(plain, source, container, raw))
    if len(kernels) != container.result_count:
        message = f"damaged: {len(kernels)} of {container.result_count} results can be read"
        raise InputError(message, _RERECORD)
    return Report(_run(container, source, len(kernels)), kernels, raw.finish() if raw else None)


def _raw_table(digest: str) -> RawTable:
    from rooflens.ingest.reports.raw import RawTable  # noqa: PLC0415 - pyarrow: only where every value is kept

    return RawTable(digest, _clean)


def _run(container: Container, source: str, kernel_count: int) -> Run:
    session = container.sessions[0] if container.sessions else None
    return Run(
        digest=container.digest,
        source=_clean(source),
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


def _kernels(path: Path, source: str, container: Container, raw: RawTable | None) -> Iterator[Kernel]:
    origins = chain(container.origins, repeat(Origin()))
    for index, (action, origin) in enumerate(zip(_actions(path), origins, strict=False)):
        try:
            result = _raw_result(action, index, origin, raw)
        except _READER_ERRORS as error:
            raise InputError(f"damaged: result {index} cannot be read: {error}", _RERECORD) from error
        yield to_kernel(result, container.digest, _clean(source), synthetic=container.synthetic)


def _actions(path: Path) -> Iterator[Any]:
    import ncu_report  # noqa: PLC0415 - 50 ms and a native library: only where a report is read

    # The link of an odd name must last: the reader opens the file again for each result.
    with _plain_path(path) as plain:
        with contextlib.redirect_stdout(io.StringIO()):
            context = ncu_report.load_report(plain)
        if context is None or context.num_ranges() == 0:
            raise InputError("damaged: no results can be read", _RERECORD)
        for range_index in range(context.num_ranges()):
            profiled_range = context.range_by_idx(range_index)
            for action_index in range(profiled_range.num_actions()):
                yield profiled_range.action_by_idx(action_index)


@contextlib.contextmanager
def _plain_path(path: Path) -> Iterator[str]:
    """Give NVIDIA's reader a name it takes: one that is no UTF-8 or promises a compressed file is reached by a link."""
    if _is_taken(path):
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="rooflens-") as folder:
        link = Path(folder) / f"report{PLAIN_SUFFIX}"
        link.symlink_to(path.resolve())
        yield str(link)


def _is_taken(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return path.suffix != PACKED_SUFFIX


def _clean(text: str) -> str:
    """Replace what is no UTF-8: names and values come from whatever the profiled program was called."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _raw_result(action: Any, index: int, origin: Origin, raw: RawTable | None) -> RawResult:
    name = action.name()
    if name is None:
        raise InputError(f"damaged: result {index} has no name", _RERECORD)
    values = _Values()
    for metric_name in action.metric_names():
        if raw is None and not is_wanted(metric_name):
            continue
        metric = action.metric_by_name(metric_name)
        value = metric.value() if metric.has_value() else None  # without one `value` gives 0, which nobody measured
        if raw is not None:
            _keep(raw, index, metric_name, metric, value)
        if metric_name in OPCODE_TABLES:
            values.tables[metric_name] = _table(metric)
        values.add(metric_name, value)
    return RawResult(
        index=index,
        function_name=_clean(name),
        signature=_clean(action.name(action.NameBase_DEMANGLED) or name),
        workload=_workload(action),
        numbers=values.numbers,
        texts=values.texts,
        tables=values.tables,
        nan_count=values.nan_count,
        rules=_rules(action),
        series=read_series(action),
        process=origin.process,
        nvtx_range=origin.nvtx_range,
        code=read_code(action, thread_opcodes(values.tables), _clean),
    )


def _keep(raw: RawTable, index: int, name: str, metric: Any, value: Any) -> None:
    if value is not None or not metric.num_instances():
        raw.add(index, name, value)
    keys = metric.correlation_ids() if metric.has_correlation_ids() else None
    for instance in range(metric.num_instances()):
        raw.add(index, name, metric.value(instance), instance, keys.value(instance) if keys else None)


def _table(metric: Any) -> dict[str, int]:
    if not metric.has_correlation_ids():
        return {}
    keys = metric.correlation_ids()
    return {_clean(str(keys.value(i))): int(metric.as_uint64(i)) for i in range(metric.num_instances())}


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
        message, estimation = result.get("rule_message") or {}, result.get("speedup_estimation") or {}
        rules.append(
            Rule(
                identifier=_clean(result.get("rule_identifier", "")),
                section=_clean(result.get("section_identifier", "")),
                title=_clean(message.get("title", "")),
                message=_clean(message.get("message", "")),
                speedup_pct=_speedup_pct(estimation, _OF_KERNEL),
                unit_speedup_pct=_speedup_pct(estimation, _OF_UNIT),
            )
        )
    return tuple(rules)


def _speedup_pct(estimation: Mapping[str, Any], of: int) -> float | None:
    """Return an estimated speed-up of the type asked for; there are others, of nothing named."""
    value = estimation.get("speedup")
    if estimation.get("type") != of or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None
