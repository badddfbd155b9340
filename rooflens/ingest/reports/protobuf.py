"""Read a report's results from its bytes: protocol buffers decode them, one loop walks their metrics.

Unknown content is never guessed. A field unknown to our definitions is named once for the whole report; if a metric's
value is in such a field, the metric is not read, and its kernel says so.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from rooflens.ingest.messages.messages import SCALARS, decode, text_of, unknown_fields
from rooflens.ingest.messages.sessions import range_path
from rooflens.ingest.metrics import code, series
from rooflens.ingest.metrics.stored import OPCODE_TABLES, Stored, opcode_tables
from rooflens.ingest.reports.container import COMMAND_LIST, GRAPH, RANGE, bare_result, check_names, damaged_result
from rooflens.ingest.reports.results import RawResult, is_wanted, sort_values, speedups, thread_opcodes
from rooflens.model.records import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.ingest.cubin.modules import Listing, Modules
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.metrics.stored import Value
    from rooflens.ingest.reports.container import Bytes, Outline, ResultSpan

T = TypeVar("T", bytes, int)

_NAMELESS = {RANGE: "range", COMMAND_LIST: "cmdlist", GRAPH: "graph"}
"""The name that NVIDIA's module gives to unnamed results."""

_LAST_FIELD = 36
"""The highest field of a result up to ncu 2025.4; lower fields missing from our definitions are known to be useless."""

_PLAIN, _SAMPLED = 0, 1
"""Kinds of a metric: a sampled metric has doubles by time stamp, and no value without them."""

_WIRE_TYPES = {"bytes": 2, "float": 5, "double": 1, "uint32": 0, "uint64": 0}
_FIRST_BYTES = {number << 3 | _WIRE_TYPES[kind]: field for kind, field, number in SCALARS}
"""First byte of an encoded value -> its field."""

_TEXT = 1 << 3 | 2
"""The first byte of an encoded text."""

_MARK, _NO_KIND = b"\0", 127
"""A first byte that no value has, and a kind that does not exist."""
_MARKED = bytes([2 << 3 | 2, len(_MARK), *_MARK, 4 << 3, _NO_KIND])
"""The two markers, encoded as fields of a metric."""

_MOST_NAMES, _MOST_RULES = 1 << 14, 1 << 10
"""Sizes of the caches of names and rules, which a report's kernels share."""

_NOT_TEXT = "\N{REPLACEMENT CHARACTER}"
"""A placeholder that reveals damage: names of metrics are ASCII."""

_ODD: Any = object()
"""Placeholder for a metric that is not exactly one value."""


class _UnreadError(Exception):
    """The value of a metric is in a field, or has a form, that our definitions lack."""


class ResultReader:
    """Read the results of a report.

    Args:
        data: The whole report.
        found: The outline of its container.
        raw: Receives every stored value; None to read only the values that kernel records need.

    Attributes:
        unknown: Fields missing from our definitions: `field 38 of a result`.
    """

    def __init__(self, data: Bytes, outline: Outline, raw: RawTable | None = None) -> None:
        self._data = data
        self._outline = outline
        self._raw = raw
        self._names = _Names(outline.strings)
        self.unknown = set(outline.unknown)
        self._beside: set[int] = set()
        """Unknown fields of metrics that have a value: without a value, the unknown field may be the value."""

    def results(self) -> Iterator[RawResult]:
        """Read all results in file order.

        Raises:
            InputError: A result is damaged.
        """
        return map(self.result, range(self._outline.result_count))

    def result(self, index: int) -> RawResult:
        """Read a result.

        Raises:
            InputError: The result is damaged.
        """
        place = self._outline.places[index]
        message = bare_result(self._data, index, place)
        self._note_unknown("a result", message, beyond=_LAST_FIELD)
        metrics, unread = self._walk_metrics(message, index, place)
        if self._raw is not None:
            self._raw.add(index, metrics.values | metrics.others, metrics.instances)
        tables = opcode_tables(metrics)
        numbers, texts, nan_count = sort_values(metrics.values)
        name = text_of(getattr(message, "KernelFunctionName", b"")) or _NAMELESS.get(place.kind, "")
        source, mangled_name = getattr(message, "Source", b""), getattr(message, "KernelMangledName", b"")
        return RawResult(
            index=index,
            function_name=name,
            signature=text_of(getattr(message, "KernelDemangledName", b"")) or name,
            workload=place.kind,
            numbers=numbers,
            texts=texts,
            tables=tables,
            nan_count=nan_count,
            rules=tuple(rule for encoded in message.RuleResults for rule in _rules(index, place, encoded)),
            series=series.read_series(metrics) if metrics.instances else None,
            process=self._outline.labels.get(place.process_id),
            nvtx_range=range_path(message.Nvtx, message.ThreadID),
            instructions=code.gather(metrics, thread_opcodes(tables), name) if metrics.by_instance else None,
            listing=lambda start: self._listing(source, mangled_name, name, start),
            unread=tuple(unread),
        )

    def _walk_metrics(self, message: Any, index: int, place: ResultSpan) -> tuple[_ResultMetrics, list[str]]:
        """Walk the metrics of a result; return the wanted ones, and the names of those whose values cannot be read."""
        known, keeps_all = self._names, self._raw is not None
        keeps_instances = self._raw is not None and self._raw.with_instances
        known.index = index
        metrics, unread = _ResultMetrics(), list[str]()
        used, others = metrics.values, metrics.others
        entries = message.MetricResults[:]
        name_ids, values = _values_at_once(entries) or self._values_one_by_one(entries, index, place)
        for name_id, value, entry in zip(name_ids, values, entries, strict=True):
            name, is_used, has_instances = known[name_id]
            if value is not _ODD and not has_instances and not keeps_instances:
                if is_used:
                    used[name] = value
                elif keeps_all:
                    others[name] = value
                continue
            # A name may be stored twice: the last value counts, whatever form the first had.
            metrics.drop(name)
            if _NOT_TEXT in name:
                unread.append(name)
                continue
            if has_instances:
                metrics.by_instance.add(name)
            try:
                stored = self._stored(entry, is_wanted=has_instances or keeps_instances)
            except _UnreadError:
                unread.append(name)
            else:
                if stored is not None and (is_used or keeps_all):
                    metrics.put(name, stored, is_used=is_used)
        return metrics, unread

    def _values_one_by_one(
        self, entries: Sequence[bytes], index: int, place: ResultSpan
    ) -> tuple[list[int], list[Any]]:
        """Return the names and values of metrics; the value is `_ODD` for a metric that is not exactly one value.

        Raises:
            InputError: A metric is damaged.
        """
        name_ids, values = [], []
        for entry in entries:
            metric = decode("MergedMetricResult", entry)
            if metric is None:
                raise damaged_result(index, place)
            self._note_unknown("a metric", metric)
            self._note_unknown("a value", metric.MetricValue)
            fields = metric.MetricValue.ListFields()
            is_plain = len(fields) == 1 and metric.Kind == _PLAIN
            if is_plain:
                self._beside |= unknown_fields(metric)
            name_ids.append(metric.NameId)
            values.append(_as_value(fields[0][1]) if is_plain else _ODD)
        return name_ids, values

    def _stored(self, entry: bytes, *, is_wanted: bool) -> Stored | None:
        """Read a metric that is not exactly one value, with its instances if they are wanted.

        Returns:
            None if the metric has only instances, and these are not wanted.

        Raises:
            _UnreadError: Its value cannot be read.
        """
        metric = decode("MergedMetricResult", entry)
        own = _scalar(metric.MetricValue)
        if metric.Kind not in {_PLAIN, _SAMPLED}:
            raise _UnreadError
        if not metric.HasField("MetricValueList"):
            if own is None and unknown_fields(metric) - self._beside:
                raise _UnreadError
            if metric.Kind == _SAMPLED and metric.HasField("MetricValue"):
                raise _UnreadError  # NVIDIA's module drops it
            return Stored(own)
        if not is_wanted:
            return None if own is None else Stored(own)
        pairs = metric.MetricValueList
        for what, part in (("an instance", pairs), ("a value", pairs.CorrelationId), ("a value", pairs.ElementValue)):
            self._note_unknown(what, part)
        keys, values = _merged_values(pairs, "CorrelationId"), _merged_values(pairs, "ElementValue")
        # Keys or values of mixed kinds lose their pairing when merged: decode the pairs again, one message each.
        if keys is None or not values or len(keys) not in {0, len(values)}:
            return _one_by_one(entry)
        if metric.Kind == _SAMPLED and not (
            len(pairs.CorrelationId.Uint64Value) == len(pairs.ElementValue.DoubleValue) == len(values)
            and not isinstance(own, (int, str))
        ):
            raise _UnreadError
        return Stored(own, keys or None, values)

    def _note_unknown(self, what: str, message: Any, beyond: int = 0) -> None:
        """Note the fields of a message that our definitions lack."""
        if unknown := unknown_fields(message):
            self.unknown |= {f"field {number} of {what}" for number in unknown if number > beyond}

    @property
    def code_notes(self) -> Sequence[str]:
        """The reasons why code could not be read so far."""
        return self._modules.notes if "_modules" in vars(self) else ()

    def _listing(self, source: bytes, mangled_name: bytes, name: str, start: int | None) -> Listing | None:
        """List the instructions of a result's code; None if the code's form is unknown, or the result is no kernel."""
        module = self._modules.module(source, name) if source else None
        return module.listing(mangled_name, start) if module else None

    @cached_property
    def _modules(self) -> Modules:
        from rooflens.ingest.cubin.modules import Modules  # noqa: PLC0415 - only for what is stored by instruction

        return Modules(self._data, self._outline.sources)


class _Names(dict[int, tuple[str, bool, bool]]):
    """Name of a metric by index, with two flags: a kernel record needs its value; its instances are read.

    Attributes:
        index: Index of the result that refers to the names, for messages.
    """

    def __init__(self, strings: Sequence[bytes]) -> None:
        super().__init__()
        self._strings = strings
        self.index = 0

    def __missing__(self, name_id: int) -> tuple[str, bool, bool]:
        check_names([name_id], self.index, self._strings)
        found = self[name_id] = _use_of(text_of(self._strings[name_id]))
        return found


@lru_cache(maxsize=_MOST_NAMES)
def _use_of(name: str) -> tuple[str, bool, bool]:
    has_instances = (
        code.uses(name) or series.uses(name) or name == code.FUNCTIONS or name in OPCODE_TABLES or _NOT_TEXT in name
    )
    return name, has_instances or is_wanted(name) or code.needs(name), has_instances


class _ResultMetrics:
    """The metrics of a result (`rooflens.ingest.metrics.stored.Metrics`).

    Attributes:
        values: Values of the metrics that a kernel record needs, by name; None for a metric without an own value.
        others: The same for metrics that are stored but not used.
        instances: Metrics with instances by name.
        by_instance: Names in `values` that have instances which are read.
    """

    def __init__(self) -> None:
        self.values: dict[str, Value | None] = {}
        self.others: dict[str, Value | None] = {}
        self.instances: dict[str, Stored] = {}
        self.by_instance: set[str] = set()

    def drop(self, name: str) -> None:
        """Forget a metric that is stored again: the last counts."""
        for kept in (self.values, self.others, self.instances):
            kept.pop(name, None)

    def put(self, name: str, stored: Stored, *, is_used: bool) -> None:
        """Add a metric that may have instances."""
        (self.values if is_used else self.others)[name] = stored.value
        if stored.values:
            self.instances[name] = stored

    def names(self) -> list[str]:
        """Return the names of metrics that may have instances, sorted."""
        return sorted(self.by_instance.intersection(self.values))

    def metric(self, name: str) -> Stored | None:
        """Return the value stored under a name; None without one."""
        if name in self.instances:
            return self.instances[name]
        return Stored(self.values[name]) if name in self.values else None


def _values_at_once(entries: Sequence[bytes]) -> tuple[Sequence[int], list[Any]] | None:
    """Return names and values of metrics, `_ODD` where `_stored` must read; None if they must be read one by one.

    Protocol buffers merge joined messages and append their lists in order. So all metrics together give one list of
    names and one list of encoded values, where a mark precedes each metric. The values then give one list per kind; the
    first byte of a value tells its kind.
    """
    merged = decode("MergedMetricResults", _MARKED.join([b"", *entries]))
    # An unknown field could be the value itself, so look at each metric instead of guessing.
    if merged is None or unknown_fields(merged):
        return None
    encoded, kinds = _last_after(_MARK, merged.MetricValue), merged.Kind[:]
    # Missing optional fields shift the lists against each other; each metric is then decoded alone.
    if not len(merged.NameId) == len(encoded) == kinds.count(_NO_KIND) == len(entries):
        return None
    plain = {_PLAIN, _NO_KIND}
    if not plain.issuperset(kinds):
        of_each = zip(_last_after(_NO_KIND, kinds), encoded, strict=True)
        encoded = [value if kind in plain else _MARK for kind, value in of_each]
    own = [value for value in encoded if value != _MARK]
    scalars = decode("MergedValues", b"".join(own))
    if scalars is None or b"" in own or unknown_fields(scalars):
        return None
    lists = {first: getattr(scalars, field) for first, field in _FIRST_BYTES.items()}
    # A metric with two values, or without one: the streams below would fall out of step.
    if sum(map(len, lists.values())) != len(own):
        return None
    streams = {first: iter(found) for first, found in lists.items()}
    streams[_TEXT] = map(text_of, lists[_TEXT])
    streams[_MARK[0]] = repeat(_ODD)
    return merged.NameId, [next(streams[value[0]]) for value in encoded]


def _last_after(mark: T, parts: Iterable[T]) -> list[T]:
    """Return the last part after each mark, or the mark itself if no part follows."""
    found: list[T] = []
    for part in parts:
        if part == mark:
            found.append(part)
        else:
            found[-1] = part
    return found


def _as_value(scalar: float | bytes) -> Value:
    return text_of(scalar) if isinstance(scalar, bytes) else scalar


def _scalar(value: Any) -> Value | None:
    fields = value.ListFields()
    if len(fields) > 1 or (not fields and unknown_fields(value)):
        raise _UnreadError
    if not fields:
        return None
    return _as_value(fields[0][1])


def _merged_values(pairs: Any, what: str) -> Sequence[Value] | None:
    """Return the merged keys or values of all instances; None if their kinds differ or are unknown."""
    kinds = getattr(pairs, what).ListFields()
    if not kinds:
        return None if pairs.HasField(what) else ()
    if len(kinds) > 1:
        return None
    scalars = kinds[0][1]
    return [text_of(text) for text in scalars] if isinstance(scalars[0], bytes) else scalars[:]


def _one_by_one(entry: bytes) -> Stored:
    """Decode a metric whose instances differ in kind."""
    metric = decode("MetricResult", entry)
    if metric is None:
        raise _UnreadError
    values = [_scalar(pair.ElementValue) for pair in metric.MetricValueList]
    keys = [_scalar(pair.CorrelationId) for pair in metric.MetricValueList if pair.HasField("CorrelationId")]
    if metric.Kind == _SAMPLED or not _are_alike(values) or not _are_alike(keys) or len(keys) not in {0, len(values)}:
        raise _UnreadError
    return Stored(_scalar(metric.MetricValue), keys or None, values)  # type: ignore[arg-type]  # none is missing


def _are_alike(values: Sequence[Value | None]) -> bool:
    """Return whether the values are all strings, or all numbers."""
    return None not in values and len({isinstance(value, str) for value in values}) <= 1


def _rules(index: int, place: ResultSpan, encoded: bytes) -> tuple[Rule, ...]:
    rules = _decoded_rules(encoded)
    if rules is None:
        raise damaged_result(index, place)
    return rules


@lru_cache(maxsize=_MOST_RULES)
def _decoded_rules(encoded: bytes) -> tuple[Rule, ...] | None:
    """Decode the message of one of NVIDIA's rules, which launches often share; None if it is damaged."""
    result = decode("RuleResult", encoded)
    if result is None:
        return None
    return tuple(
        Rule(
            identifier=text_of(result.Identifier),
            section=text_of(result.SectionIdentifier),
            title=text_of(item.Message.Title),
            message=text_of(item.Message.Text),
            **speedups(item.Speedup.Kind, item.Speedup.Value),
        )
        for item in result.Body.Items
    )
