"""Read reports with NVIDIA's module, an oracle for our reader; in a child process, as damage may take it along."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.messages.sessions import range_path
from rooflens.ingest.metrics.code import gather
from rooflens.ingest.metrics.series import read_series
from rooflens.ingest.metrics.stored import Kind, Stored, Value, opcode_tables
from rooflens.ingest.reports.container import Outline, bare_result, inspect, mapped
from rooflens.ingest.reports.nvidia import READER_ERRORS, actions
from rooflens.ingest.reports.report import ReadOptions, ReadReport, make_report, raw_table
from rooflens.ingest.reports.results import RawResult, is_wanted, sort_values, speedups, thread_opcodes
from rooflens.ingest.reports.unpacking import RERECORD_HINT, unpacked
from rooflens.model.records import Rule, SourceFile

if TYPE_CHECKING:
    from rooflens.ingest.metrics.raw import RawTable

Origin: TypeAlias = tuple[str | None, str | None]

_PACKED_FMA = "HFMA2"
_CONSTANT_LOAD = re.compile(r"HFMA2\S*\s+\w+,(?:[^,]*,)?\s*[-|]*RZ\b")
"""A packed multiply-add with the zero register as a factor: it computes nothing; compilers load constants with it."""
_LOAD = re.compile(r"(?:^|\s)LD")


def read_all(files: Sequence[Path], options: ReadOptions) -> list[ReadReport | InputError]:
    """Read each file, plain or compressed."""
    return [_read(file, options) for file in files]


def _read(file: Path, options: ReadOptions) -> ReadReport | InputError:
    try:
        with unpacked(file) as plain:
            return read_with_nvidia(plain, file.name, options)
    except InputError as error:
        return error


def read_with_nvidia(path: Path, source: str, options: ReadOptions) -> ReadReport:
    """Read one uncompressed report.

    Raises:
        InputError: The file is not a report, is damaged, or not all of its results can be read.
    """
    found = inspect(path)
    raw = raw_table(found.digest, options)
    results = _results(path, _origins(path, found), raw)
    return replace(make_report(results, found, source, raw, reads_code=options.reads_code), untold={})


def _origins(path: Path, found: Outline) -> list[Origin]:
    """Return process and NVTX ranges of each result."""
    with mapped(path) as data:
        results = [(one, bare_result(data, number, one)) for number, one in enumerate(found.places)]
    return [(found.labels.get(one.process_id), range_path(told.Nvtx, told.ThreadID)) for one, told in results]


def _results(path: Path, origins: Sequence[Origin], raw: RawTable | None) -> Iterator[RawResult]:
    for index, action in actions(path):
        try:
            yield _raw_result(action, index, origins[index] if index < len(origins) else (None, None), raw)
        except READER_ERRORS as error:
            raise InputError(f"damaged: result {index} cannot be read: {error}", RERECORD_HINT) from error


class _NvidiaMetrics:
    """The metrics of a result, read by NVIDIA's module."""

    def __init__(self, action: Any) -> None:
        self._action = action
        self._names = tuple(action.metric_names())

    def names(self) -> tuple[str, ...]:
        """Return the names of all metrics, sorted."""
        return self._names

    def metric(self, name: str) -> Stored | None:
        """Return the value stored under a name; None without one."""
        metric = self._action.metric_by_name(name)
        if metric is None:
            return None
        count = metric.num_instances()
        keys = metric.correlation_ids() if count and metric.has_correlation_ids() else None
        return Stored(_scalar_value(metric), _instances(keys, count) if keys else None, _instances(metric, count))


def _scalar_value(metric: Any) -> Value | None:
    """Return a metric's own value; None if it has none, where the module returns 0."""
    value = metric.value() if metric.has_value() else None
    return as_unicode(value) if isinstance(value, str) else value


def _instances(metric: Any, count: int) -> list[Value]:
    if not count:
        return []
    kind = metric.kind(0)
    if kind == metric.ValueKind_STRING:
        return [as_unicode(metric.as_string(instance)) for instance in range(count)]
    read = metric.as_double if kind in {metric.ValueKind_DOUBLE, metric.ValueKind_FLOAT} else metric.as_uint64
    return [read(instance) for instance in range(count)]


class _Texts:
    """NVIDIA's disassembly of a result's instructions."""

    def __init__(self, action: Any) -> None:
        self._action = action

    def kind(self, address: int) -> Kind | None:
        """Return the kind of an instruction as its text tells it; None where there is none."""
        text = self.sass(address)
        if text in {None, "", "???"}:
            return None
        if _PACKED_FMA in text:
            return "constant" if _CONSTANT_LOAD.search(text) else "computes"
        return "load" if _LOAD.search(text) else "other"

    def sass(self, address: int) -> str | None:
        """Return the text of the instruction at an address."""
        text = self._action.sass_by_pc(address)
        return None if text is None else as_unicode(text)

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the file and the line that an instruction was compiled from."""
        info = self._action.source_info(address)
        return None if info is None else (as_unicode(info.file_name()), info.line())

    def source(self, file: str) -> SourceFile:
        """Return the text of a source file if it is embedded."""
        return SourceFile(self._source_files.get(file))

    @cached_property
    def _source_files(self) -> dict[str, str]:
        return {as_unicode(name): text for name, text in self._action.source_files().items()}


def _raw_result(action: Any, index: int, origin: Origin, raw: RawTable | None) -> RawResult:
    name = action.name()
    if name is None:
        raise InputError(f"damaged: result {index} has no name", RERECORD_HINT)
    metrics = _NvidiaMetrics(action)
    tables = opcode_tables(metrics)
    numbers, texts, nan_count = sort_values(_values(action, metrics, index, raw))
    return RawResult(
        index=index,
        function_name=as_unicode(name),
        signature=as_unicode(action.name(action.NameBase_DEMANGLED) or name),
        workload=_workload(action),
        numbers=numbers,
        texts=texts,
        tables=tables,
        nan_count=nan_count,
        rules=_rules(action),
        series=read_series(metrics),
        process=origin[0],
        nvtx_range=origin[1],
        instructions=gather(metrics, thread_opcodes(tables), as_unicode(name)),
        listing=lambda _: _Texts(action),
    )


def _values(action: Any, metrics: _NvidiaMetrics, index: int, raw: RawTable | None) -> dict[str, Value | None]:
    """Read the values of a result by name: all of them with their instances if there is a table, else those wanted."""
    values: dict[str, Value | None] = {}
    instances: dict[str, Stored] = {}
    for name in metrics.names():
        if raw is None and is_wanted(name):
            values[as_unicode(name)] = _scalar_value(action.metric_by_name(name))
        elif raw is not None and (stored := metrics.metric(name)) is not None:
            values[as_unicode(name)] = stored.value
            if stored.values:
                instances[as_unicode(name)] = stored
    if raw is not None:
        raw.add(index, values, instances)
    return values


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
                identifier=as_unicode(result.get("rule_identifier", "")),
                section=as_unicode(result.get("section_identifier", "")),
                title=as_unicode(message.get("title", "")),
                message=as_unicode(message.get("message", "")),
                **speedups(estimation.get("type"), estimation.get("speedup")),
            )
        )
    return tuple(rules)
