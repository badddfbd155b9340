"""NVIDIA's `ncu_report` module: whole reports, and the text of instructions.

Nothing else imports it. The module may crash on damaged input and keeps most of what it reads in memory, so this code
runs in a child process.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import tempfile
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.metrics.code import gather, read_code
from rooflens.ingest.metrics.series import read_series
from rooflens.ingest.metrics.stored import Stored, opcode_tables
from rooflens.ingest.reports.container import Origin, inspect
from rooflens.ingest.reports.jobs import CHANGED, CHANGED_HINT
from rooflens.ingest.reports.report import make_report, raw_table
from rooflens.ingest.reports.results import RawResult, is_wanted, sort_values, speedups, thread_opcodes
from rooflens.ingest.reports.texts import TextsAndCode
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX, RERECORD_HINT
from rooflens.model.records import Rule, SourceFile

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from rooflens.ingest.metrics.code import Code
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.metrics.stored import Kind, Value
    from rooflens.ingest.reports.report import ReadOptions, ReadReport
    from rooflens.ingest.reports.texts import TextsRequest

_READER_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError, SystemError, AttributeError)
"""What NVIDIA's bindings raise for damaged strings and values; a missing metric is None, hence AttributeError."""


def read_with_nvidia(path: Path, source: str, options: ReadOptions) -> ReadReport:
    """Read one uncompressed report.

    Args:
        path: The file.
        source: The path as the user gave it: what records and messages show.
        options: What to read.

    Raises:
        InputError: The file is not a report, is damaged, or not all of its results can be read.
    """
    found = inspect(path)
    raw = raw_table(found.digest, options)
    results = _results(path, found.origins, raw)
    report = make_report(results, "ncu-report", found, source, raw, reads_code=options.reads_code)
    return replace(report, untold={}, unlisted={})


def _results(path: Path, origins: Sequence[Origin], raw: RawTable | None) -> Iterator[RawResult]:
    for (index, action), origin in zip(actions(path), chain(origins, repeat(Origin())), strict=False):
        try:
            result = _raw_result(action, index, origin, raw)
        except _READER_ERRORS as error:
            raise InputError(f"damaged: result {index} cannot be read: {error}", RERECORD_HINT) from error
        yield result


def tell(asked: Sequence[TextsRequest]) -> list[TextsAndCode | InputError]:
    """Read what only this module knows about the code of reports; a damaged report does not affect the others."""
    return [_texts_and_code(one) for one in asked]


def _texts_and_code(asked: TextsRequest) -> TextsAndCode | InputError:
    try:
        with asked.path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != asked.digest:
                return InputError(CHANGED, CHANGED_HINT)
        texts: dict[int, dict[int, str]] = {}
        codes: dict[int, Code] = {}
        for index, action in actions(asked.path, {*asked.addresses, *asked.unlisted}):
            texts[index] = dict(_sass_texts(action, asked.addresses.get(index, ())))
            if index in asked.unlisted:
                codes[index] = read_code(asked.unlisted[index], _Texts(action))
        return TextsAndCode(texts, codes)
    except (OSError, *_READER_ERRORS) as error:
        return InputError(f"damaged: {error}", RERECORD_HINT)
    except InputError as error:
        return error


def _sass_texts(action: Any, addresses: Sequence[int]) -> Iterator[tuple[int, str]]:
    for address in addresses:
        text = action.sass_by_pc(address)
        if text is not None:
            yield address, as_unicode(text)


def actions(path: Path, wanted: Container[int] | None = None) -> Iterator[tuple[int, Any]]:
    """Yield results with their indices: all, or those in `wanted`.

    Raises:
        InputError: The module finds no results.
    """
    import ncu_report  # noqa: PLC0415 - 50 ms and a native library: only where it is asked

    # The module reopens the file for each result, so a link for an odd name must last.
    with _plain_path(path) as plain:
        with contextlib.redirect_stdout(io.StringIO()):
            context = ncu_report.load_report(plain)
        if context is None or context.num_ranges() == 0:
            raise InputError("damaged: no results can be read", RERECORD_HINT)
        ranges = (context.range_by_idx(index) for index in range(context.num_ranges()))
        places = ((found, index) for found in ranges for index in range(found.num_actions()))
        for number, (found, index) in enumerate(places):
            if wanted is None or number in wanted:
                yield number, found.action_by_idx(index)


@contextlib.contextmanager
def _plain_path(path: Path) -> Iterator[str]:
    """Give NVIDIA's reader a path that it accepts: a link if the name is not UTF-8 or has a compressed file's ending.

    Where links are not allowed, as for most Windows users, the file is copied.
    """
    if _is_taken(path):
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="rooflens-") as folder:
        link = Path(folder) / f"report{PLAIN_SUFFIX}"
        try:
            link.symlink_to(path.resolve())
        except OSError:
            shutil.copyfile(path, link)
        yield str(link)


def _is_taken(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return path.suffix != PACKED_SUFFIX


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

    has_sass = True

    def __init__(self, action: Any) -> None:
        self._action = action

    def kind(self, address: int) -> Kind | None:  # noqa: ARG002 - the module does not give encodings
        """Return None: only the text tells."""
        return None

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
        process=origin.process,
        nvtx_range=origin.nvtx_range,
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
