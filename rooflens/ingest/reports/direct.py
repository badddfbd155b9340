"""Read the results of a report straight from its bytes: no path, no process, nothing of NVIDIA's.

A kernel holds some 250 metrics, nearly all of them one number, and thousands of kernels differ in nothing but those
numbers. So metrics come undecoded. A double is told by the exact length of its metric and the bytes before it, which
are those of every kernel that has this metric; other scalars repeat, and are looked up whole. Only what is new, and
what has instances, is decoded: there one array of keys and one of values are left, because protocol buffers merge the
occurrences of what is declared as one message (`rooflens.ingest.messages.messages`).

What the definitions do not know is not guessed at: `UnknownContentError` says what it was, for another reader may know.
"""

from __future__ import annotations

import math
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeGuard

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import decode, unknown_fields
from rooflens.ingest.metrics import code, series
from rooflens.ingest.metrics.stored import OPCODE_TABLES, Stored, opcode_table
from rooflens.ingest.reports.container import COMMAND_LIST, GRAPH, KERNEL, RANGE, check_names, damaged_result
from rooflens.ingest.reports.results import RawResult, is_wanted, sort_values, thread_opcodes
from rooflens.ingest.reports.unpacking import INTACT_HINT
from rooflens.model.records import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.metrics.stored import Value
    from rooflens.ingest.reports.container import Bytes, Outline, Place

_NAME, _VALUE, _INSTANCES, _KIND = 1, 2, 3, 4
"""Fields of a metric."""

_PLAIN, _SAMPLED = 0, 1
"""Kinds of a metric: one of the second has doubles by time stamp, and no value without them."""

_TAIL = bytes([_KIND << 3, _PLAIN])
"""What stands behind a plain metric, in reports of newer versions of ncu."""

_DOUBLE_BYTES = 8
_BEFORE_DOUBLE = bytes([_VALUE << 3 | 2, 1 + _DOUBLE_BYTES, 3 << 3 | 1])
"""What stands between the number of a metric's name and its double: two tags, and the length of the value."""

_DOUBLE = Struct("<d")
_CUT = {
    start + _DOUBLE_BYTES + len(tail): -_DOUBLE_BYTES - len(tail)
    for tail, starts in ((b"", (5, 6)), (_TAIL, (5, 6, 7)))
    for start in starts
}
"""Length of an encoded metric that may be one double -> where that starts, from the end.

The number of its name has one to three bytes."""

_LONGEST_SCALAR_BYTES = 64
"""Longer metrics are texts or have instances: they are not looked up whole."""

_MOST_KNOWN = 1 << 16
"""So many encoded scalars are remembered, some 15 MB, before all are forgotten."""

_DAMAGED_METRIC = ("damaged: a metric cannot be decoded", INTACT_HINT)

_MESSAGES = {
    KERNEL: "FastResult",
    RANGE: "FastRangeResult",
    COMMAND_LIST: "FastCommandListResult",
    GRAPH: "FastGraphResult",
}
_NAMELESS = {RANGE: "range", COMMAND_LIST: "cmdlist", GRAPH: "graph"}
"""What NVIDIA's module calls results that have no name."""

_LAST_FIELD = 36
"""The highest field of a result that an ncu until 2025.4 writes."""

_OF_UNIT, _OF_KERNEL = 1, 2
"""Types of an estimated speed-up: that of the unit which the rule looks at, and that of the kernel."""

_SCALARS = ("StringValue", "FloatValue", "DoubleValue", "Uint32Value", "Uint64Value")


class UnknownContentError(Exception):
    """Says what in a report nobody here knows; another reader may."""


class Direct:
    """Reads the results of one report.

    Args:
        data: The whole report.
        found: What its container says.
        raw: Takes every stored value; None where only those are wanted that kernel records are made of.
        first: Number in the report of the first result of the outline, where that is of a part of the report.

    Raises:
        UnknownContentError: The container holds something unknown.
    """

    def __init__(self, data: Bytes, found: Outline, raw: RawTable | None = None, first: int = 0) -> None:
        if found.unknown:
            raise UnknownContentError(found.unknown)
        self._data = data
        self._outline = found
        self._first = first
        self._raw = raw
        self._names: dict[int, str] = {}
        self._used: set[str] = set()
        self._doubles: dict[bytes, str] = {}
        self._scalars: dict[bytes, tuple[str, Value | None]] = {}

    def results(self) -> Iterator[RawResult]:
        """Read all results, in the order of the file.

        Raises:
            InputError: One is damaged.
            UnknownContentError: One holds something unknown.
        """
        for index in range(self._first, self._first + len(self._outline.places)):
            yield self._result(index)

    def instructions(self, index: int) -> code.Instructions | None:
        """Read what a result stores by instruction; errors as `results`."""
        message = self._message(index)
        metrics = self._metrics(message, index)
        name = self._function_name(message, index)
        return code.gather(metrics, thread_opcodes(_tables(metrics)), name)

    def _function_name(self, message: Any, index: int) -> str:
        return _text(getattr(message, "KernelFunctionName", b"")) or _NAMELESS.get(self._place(index).kind, "")

    def _place(self, index: int) -> Place:
        return self._outline.places[index - self._first]

    def _message(self, index: int) -> Any:
        place = self._place(index)
        encoded = self._data[place.start : place.end]
        message = decode(_MESSAGES[place.kind], encoded)
        if message is None:
            raise damaged_result(index, place)
        _check_known(message, "a result", _LAST_FIELD)
        return message

    def _result(self, index: int) -> RawResult:
        place = self._place(index)
        message = self._message(index)
        metrics = self._metrics(message, index)
        if self._raw is not None:
            metrics.keep(self._raw, index)
        numbers, texts, nan_count = sort_values(metrics.values)
        tables = _tables(metrics)
        has_instances = not self._used.isdisjoint(metrics.values)
        name = self._function_name(message, index)
        stored = code.gather(metrics, thread_opcodes(tables), name) if has_instances else None
        origin = self._outline.origin(place, message)
        return RawResult(
            index=index,
            function_name=name,
            signature=_text(getattr(message, "KernelDemangledName", b"")) or name,
            workload=place.kind,
            numbers=numbers,
            texts=texts,
            tables=tables,
            nan_count=nan_count,
            rules=tuple(_rules(message)),
            series=series.read_series(metrics) if has_instances else None,
            process=origin.process,
            nvtx_range=origin.nvtx_range,
            code=code.read_code(stored, None) if stored else code.Code(),
        )

    def _metrics(self, message: Any, index: int) -> _Metrics:
        """Find the values of a result by name; long ones, and what has instances, stay encoded."""
        values: dict[str, Any] = {}
        cut_of, doubles, scalars, double_at = _CUT.get, self._doubles, self._scalars, _DOUBLE.unpack_from
        for entry in message.MetricResults:
            cut = cut_of(len(entry))
            if cut is not None and (name := doubles.get(entry[:cut])) is not None:
                if not name:
                    continue
                if cut == -_DOUBLE_BYTES or entry.endswith(_TAIL):
                    values[name] = double_at(entry, len(entry) + cut)[0]
                    continue
            name, value = scalars.get(entry) or self._look(entry, index)
            if name:
                values[name] = value
        if self._raw is None or not self._raw.with_instances:
            self._drop_instances(values)
        return _Metrics(values, self._used)

    def _drop_instances(self, values: dict[str, Any]) -> None:
        """Leave only a metric's own value where nothing is read of its instances."""
        needed = {*OPCODE_TABLES, *self._used}
        if not self._used.isdisjoint(values):
            needed.add(code.FUNCTIONS)  # of no use without instructions
        for name in [name for name, value in values.items() if isinstance(value, bytes) and name not in needed]:
            own = _own_of(values[name])
            if own is None:
                del values[name]
            else:
                values[name] = own

    def _look(self, entry: bytes, index: int) -> tuple[str, Any]:
        """Return name and value of a metric that was not met before; no name where it is not wanted."""
        if len(entry) > _LONGEST_SCALAR_BYTES and (name := self._names.get(_name_id(entry))) is not None:
            return name, entry
        head = decode("MetricHead", entry)
        if head is None:
            raise damaged_result(index, self._place(index))
        name = self._name(head.NameId, index)
        _check_known(head, "a metric", _INSTANCES)
        if len(entry) > _LONGEST_SCALAR_BYTES:
            return name, entry
        value: Any = entry
        if _INSTANCES not in unknown_fields(head):
            value = _own(head)
            _check_kind(head.Kind, fits=value is None)
        start = _start_of_double(head.NameId)
        if isinstance(value, float) and entry.startswith(start) and entry[len(start) + _DOUBLE_BYTES :] in {b"", _TAIL}:
            self._doubles[start] = name
            return name, value
        if len(self._scalars) >= _MOST_KNOWN:
            self._scalars.clear()
        self._scalars[entry] = name, value
        return name, value

    def _name(self, name_id: int, index: int) -> str:
        """Return the name of a metric, empty where it is not wanted."""
        name = self._names.get(name_id)
        if name is None:
            check_names((name_id,), index, self._outline.strings)
            name = _text(self._outline.strings[name_id])
            if code.uses(name) or series.uses(name):
                self._used.add(name)
            elif self._raw is None and not is_wanted(name) and not code.needs(name):
                name = ""
            self._names[name_id] = name
        return name


class _Metrics:
    """What one result stores, decoded where it is asked for.

    Args:
        values: By name; bytes are a metric that may have instances, encoded.
        used: Names of which something is read of the instances.
    """

    def __init__(self, values: dict[str, Any], used: set[str]) -> None:
        self._stored = {name: _decoded(value) for name, value in values.items() if isinstance(value, bytes)}
        self.values: dict[str, Value | None] = values
        for name, stored in self._stored.items():
            values[name] = stored.value
        self._used = used

    def names(self) -> list[str]:
        """Return the names of what may have instances, sorted."""
        return sorted(self._used.intersection(self.values))

    def metric(self, name: str) -> Stored | None:
        """Return what is stored under a name; None where nothing is."""
        if name in self._stored:
            return self._stored[name]
        return Stored(self.values[name]) if name in self.values else None

    def keep(self, raw: RawTable, index: int) -> None:
        """Put every value into the table of them."""
        raw.add(index, self.values, self._stored)


def _merged_metric(entry: bytes) -> Any:
    metric = decode("MergedMetric", entry)
    if metric is None:
        raise InputError(*_DAMAGED_METRIC)
    _check_known(metric, "a metric", 0)
    return metric


def _own_of(entry: bytes) -> Value | None:
    """Return the own value of a metric that is long, or has instances."""
    metric = _merged_metric(entry)
    _check_kind(metric.Kind, fits=metric.HasField("MetricValueList") or not metric.HasField("MetricValue"))
    return _own(metric)


def _decoded(entry: bytes) -> Stored:
    """Decode a metric with its instances."""
    metric = _merged_metric(entry)
    if not metric.HasField("MetricValueList"):
        _check_kind(metric.Kind, fits=not metric.HasField("MetricValue"))
        return Stored(_own(metric))
    pairs = metric.MetricValueList
    _check_known(pairs, "an instance", 0)
    keys, values = _merged(pairs.CorrelationId), _merged(pairs.ElementValue)
    if values is None or keys is None or len(keys) not in {0, len(values)}:
        return _slowly_decoded(entry)
    times, samples = pairs.CorrelationId.Uint64Value, pairs.ElementValue.DoubleValue
    own = _own(metric)
    are_samples = len(times) == len(samples) == len(values) and not isinstance(own, (int, str))
    _check_kind(metric.Kind, fits=are_samples)
    return Stored(own, keys or None, values)


def _merged(value: Any) -> Sequence[Value] | None:
    """Return the merged scalars of all instances; None where they are not of one kind, for then their order is lost."""
    _check_known(value, "a value", 0)
    found: list[Sequence[Any]] = [scalars for name in _SCALARS if (scalars := getattr(value, name))]
    if len(found) != 1:
        return None if found else ()
    return [_text(text) for text in found[0]] if isinstance(found[0][0], bytes) else list(found[0])


def _slowly_decoded(entry: bytes) -> Stored:
    """Decode a metric whose instances are not all alike, one by one."""
    metric = decode("MetricResult", entry)
    if metric is None:
        raise InputError(*_DAMAGED_METRIC)
    pairs = metric.MetricValueList
    values = [_scalar(pair.ElementValue) for pair in pairs]
    keys = [_scalar(pair.CorrelationId) for pair in pairs] if any(map(_has_key, pairs)) else None
    _check_kind(metric.Kind, fits=False)
    if not _are_alike(values) or not (keys is None or _are_alike(keys)):
        raise UnknownContentError("instances that are not alike")
    return Stored(_own(metric), keys, values)


def _has_key(pair: Any) -> bool:
    return bool(pair.HasField("CorrelationId"))


def _are_alike(values: Sequence[Value | None]) -> TypeGuard[Sequence[Value]]:
    """Return whether all are texts, or all numbers."""
    return None not in values and len({isinstance(value, str) for value in values}) == 1


def _check_kind(kind: int, *, fits: bool) -> None:
    """Raise where a metric is of an unknown kind, or of sampled ones and does not look like it: readers drop that."""
    if kind not in {_PLAIN, _SAMPLED} or (kind == _SAMPLED and not fits):
        raise UnknownContentError(f"{'a metric' if fits else 'an odd metric'} of kind {kind}")


def _own(metric: Any) -> Value | None:
    """Return a metric's own value; None where it has none."""
    return _scalar(metric.MetricValue) if metric.HasField("MetricValue") else None


def _scalar(value: Any) -> Value | None:
    _check_known(value, "a value", 0)
    present = [name for name in _SCALARS if value.HasField(name)]
    if len(present) > 1:
        raise UnknownContentError("a value of two kinds")
    if not present:
        return None
    found = getattr(value, present[0])
    return _text(found) if isinstance(found, bytes) else found


def _check_known(message: Any, what: str, highest: int) -> None:
    """Raise where a message has fields that are not in its definition, above those that are known and not needed."""
    unknown = [number for number in unknown_fields(message) if number > highest]
    if unknown:
        raise UnknownContentError(f"field {min(unknown)} of {what}")


def _name_id(entry: bytes) -> int:
    """Return the number of a metric's name where that stands first, else -1."""
    if entry[0] != _NAME << 3:
        return -1
    number = 0
    for place, byte in enumerate(entry[1:4]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number
    return -1


def _start_of_double(name_id: int) -> bytes:
    """Return what stands before the double of a metric."""
    number = bytearray()
    while name_id >= 0x80:
        number.append(name_id & 0x7F | 0x80)
        name_id >>= 7
    return bytes([_NAME << 3, *number, name_id]) + _BEFORE_DOUBLE


def _tables(metrics: _Metrics) -> dict[str, dict[str, int]]:
    return {name: opcode_table(stored) for name in OPCODE_TABLES if (stored := metrics.metric(name)) is not None}


def _rules(message: Any) -> Iterator[Rule]:
    """Yield what NVIDIA's rules say, each item of theirs as one."""
    for result in message.RuleResults:
        for item in result.Body.Items:
            yield Rule(
                identifier=_text(result.Identifier),
                section=_text(result.SectionIdentifier),
                title=_text(item.Message.Title),
                message=_text(item.Message.Text),
                speedup_pct=_speedup_pct(item.Speedup, _OF_KERNEL),
                unit_speedup_pct=_speedup_pct(item.Speedup, _OF_UNIT),
            )


def _speedup_pct(estimate: Any, of: int) -> float | None:
    """Return an estimated speed-up of the type asked for; there are others, of nothing named."""
    if estimate.Kind != of or not math.isfinite(estimate.Value):
        return None
    return float(estimate.Value)


def _text(encoded: bytes) -> str:
    """Decode text of whatever code page the program had."""
    return encoded.decode("utf-8", errors="replace")
