"""Read the results of a report straight from its bytes: no path, no other process, nothing of NVIDIA's.

A kernel holds some 250 metrics, nearly all of them one number, and thousands of kernels differ in nothing but those
numbers. So most metrics are not decoded. A double is recognized by the exact length of its metric and the bytes before
it, which are the same in every kernel that has the metric; other scalars repeat, and are looked up whole. Only what is
new, and what has instances, is decoded: instances become one array of keys and one of values, because protocol buffers
merge the occurrences of what is declared as one message (`rooflens.ingest.messages.messages`).

What the definitions do not know is not guessed: `UnknownContentError` says what it was, as another reader may know it.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import compress
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflens.ingest.messages.messages import decode
from rooflens.ingest.metrics import code, series
from rooflens.ingest.metrics.layouts import DOUBLE_BYTES, ENCODED, Layouts
from rooflens.ingest.metrics.stored import OPCODE_TABLES, opcode_table
from rooflens.ingest.reports.container import COMMAND_LIST, GRAPH, KERNEL, RANGE, check_names, damaged_result
from rooflens.ingest.reports.encoded import (
    TAIL,
    DamagedMetricError,
    EncodedMetrics,
    Packed,
    UnknownContentError,
    before_value,
    check_kind,
    check_known,
    id_before_double,
    name_id_of,
    own_of,
    own_value,
    text_of,
    whole_number,
)
from rooflens.ingest.reports.results import RawResult, checked_rule, is_wanted, rules_of, sort_values, thread_opcodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rooflens.ingest.cubin.modules import Listing, Modules
    from rooflens.ingest.metrics.layouts import Layout
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.metrics.stored import Value
    from rooflens.ingest.reports.container import Bytes, Outline, Place
    from rooflens.model.records import Rule

_DOUBLE = Struct("<d")
_CUT = {
    start + DOUBLE_BYTES + len(tail): -DOUBLE_BYTES - len(tail)
    for tail, starts in ((b"", (5, 6)), (TAIL, (5, 6, 7)))
    for start in starts
}
"""Length of an encoded metric that may be one double -> where the double starts, from the end.

The index of its name takes one to three bytes."""

_LONGEST_SCALAR_BYTES = 64
"""Longer metrics are texts or have instances: they are not looked up whole."""

_MOST_KNOWN = 1 << 16
"""How many encoded scalars are remembered, some 15 MB, before all are forgotten."""

_LONGEST_KNOWN_BYTES, _MOST_OWNS = 1 << 13, 1 << 10
"""Longest metric with instances whose own value is remembered, and how many are, some 4 MB."""

_MOST_NAMES = 1 << 12
"""For how many metrics it is remembered what they are used for: reports share most of them."""

_MESSAGES = {
    KERNEL: "FastResult",
    RANGE: "FastRangeResult",
    COMMAND_LIST: "FastCommandListResult",
    GRAPH: "FastGraphResult",
}
_NAMELESS = {RANGE: "range", COMMAND_LIST: "cmdlist", GRAPH: "graph"}
"""What NVIDIA's module calls results that have no name."""

METRICS_FIELD = 13
"""The field of a kernel that holds a metric."""

_LAST_FIELD = 36
"""The highest field of a result that ncu up to 2025.4 writes."""


class _Known(NamedTuple):
    """A metric that was seen before.

    Attributes:
        row: Its index in the table of stored values; `ENCODED` where it is not decoded.
    """

    name: str
    value: Any
    row: int


class Own(NamedTuple):
    """A metric without its instances.

    Attributes:
        is_stored: It has a value of its own, or neither value nor instances.
        is_apart: It comes encoded, because it is long or has instances.
    """

    name: str
    value: Value | None
    is_stored: bool
    is_apart: bool


class Head(NamedTuple):
    """What a result holds beside its metrics."""

    function_name: str
    signature: str
    process: str | None
    nvtx_range: str | None
    rules: tuple[Rule, ...]


class _Scalars(dict[bytes, _Known]):
    """Metrics by their bytes; new ones are looked up."""

    def __init__(self, look: Callable[[bytes], _Known]) -> None:
        super().__init__()
        self._look = look

    def __missing__(self, entry: bytes) -> _Known:
        return self._look(entry)


class Direct:
    """Reads the results of one report.

    Args:
        data: The whole report.
        found: What its container says.
        raw: Takes every stored value; None where only those are wanted that kernel records need.
        first: Index in the report of the outline's first result, where that covers a part of the report.
        with_lines: Read instructions with their source lines at once, as all will be wanted so.

    Raises:
        UnknownContentError: The container holds something unknown.
    """

    def __init__(
        self, data: Bytes, found: Outline, raw: RawTable | None = None, first: int = 0, *, with_lines: bool = False
    ) -> None:
        if found.unknown:
            raise UnknownContentError(found.unknown)
        self._data = data
        self._outline = found
        self._first = first
        self._raw = raw
        self._with_lines = with_lines
        self._codes: dict[int, code.Code] = {}
        self._names: dict[int, str] = {}
        self._used: set[str] = set()
        self._doubles: dict[bytes, str] = {}
        self._counts: dict[bytes, str] = {}
        self._scalars = _Scalars(self._look)
        self._index = 0
        self._owns: dict[bytes, Value | None] = {}
        self._rules: dict[bytes, tuple[Rule, ...]] = {}
        self._layouts = Layouts()

    def results(self) -> Iterator[RawResult]:
        """Read all results, in the order of the file.

        Raises:
            InputError: One is damaged.
            UnknownContentError: One holds something unknown.
        """
        yield from map(self.result, self.indices)

    @property
    def indices(self) -> range:
        """The indices of the results in the report."""
        return range(self._first, self._first + len(self._outline.places))

    @property
    def by_instance(self) -> set[str]:
        """Names of the metrics seen so far whose instances are read."""
        return self._used

    def encoded(self, indices: range, padding: int = 0) -> bytes:
        """Return the bytes of consecutive results, followed by so many bytes of anything."""
        start, end = self.place(indices[0]).start, self.place(indices[-1]).end + padding
        found = self._data[start:end]
        return found if len(found) == end - start else found.ljust(end - start, b"\0")

    def head(self, index: int, encoded: bytes) -> Head:
        """Return what a result holds beside its metrics, given its bytes without them.

        Raises:
            InputError: It is damaged.
            UnknownContentError: It holds something unknown, or metrics.
        """
        message = self._decoded_message(index, encoded)
        if message.MetricResults:
            raise UnknownContentError("metrics between other fields")
        return self._head(message, index)

    def own(self, entry: bytes) -> Own:
        """Return a metric without its instances; errors as `results`."""
        if len(self._scalars) >= _MOST_KNOWN:
            self._forget()
        name, value, row = self._scalars[entry]
        if row != ENCODED:
            return Own(name, value, is_stored=True, is_apart=False)
        own = self._own_of(entry)
        return Own(name, own, is_stored=own is not None, is_apart=True)

    def instructions(self, index: int) -> code.Instructions | None:
        """Read what a result stores by instruction; errors as `results`."""
        message = self.message(index)
        metrics = self._metrics(message, index)
        name = self._function_name(message, index)
        return code.gather(metrics, thread_opcodes(_tables(metrics)), name)

    def lined_code(self, index: int, stored: code.Instructions) -> code.Code | None:
        """Return what the report says of a result's code, without its text; None where its form is not known.

        Args:
            index: Index of the result.
            stored: What it stores by instruction.
        """
        return self._lined_code(index, self.message(index), stored)

    def known_code(self, index: int) -> code.Code | None:
        """Return the code of a result that was read with lines at once and lacks nothing; None for all others."""
        return self._codes.get(index)

    def listing(self, index: int, stored: code.Instructions, message: Any = None) -> Listing | None:
        """List the instructions of a result's code; None where its form is not known, or it is not a kernel."""
        message = message or self.message(index)
        module = self._modules.module(message.Source) if self.place(index).kind == KERNEL else None
        return module.listing(message.KernelMangledName, stored.start) if module else None

    def _lined_code(self, index: int, message: Any, stored: code.Instructions) -> code.Code | None:
        listing = self.listing(index, stored, message)
        return code.read_code(stored, listing) if listing else None

    def _first_code(self, index: int, message: Any, stored: code.Instructions | None) -> code.Code:
        """Return the code of a result as it is read first: with lines if all are wanted so."""
        if stored is None:
            return code.Code()
        if self._with_lines and stored.figures is None:
            found = self._lined_code(index, message, stored)
            if found is not None and not found.needs_texts:
                self._codes[index] = found
                return found
        return code.read_code(stored, None)

    @cached_property
    def _modules(self) -> Modules:
        from rooflens.ingest.cubin.modules import Modules  # noqa: PLC0415 - only for what is stored by instruction

        return Modules(self._data[start:end] for start, end in self._outline.sources)

    def _function_name(self, message: Any, index: int) -> str:
        return text_of(getattr(message, "KernelFunctionName", b"")) or _NAMELESS.get(self.place(index).kind, "")

    def place(self, index: int) -> Place:
        """Return where a result is in the report."""
        return self._outline.places[index - self._first]

    def message(self, index: int) -> Any:
        """Decode a result except its metrics and rules; errors as `results`."""
        return self._decoded_message(index, self.encoded(range(index, index + 1)))

    def _decoded_message(self, index: int, encoded: bytes) -> Any:
        place = self.place(index)
        message = decode(_MESSAGES[place.kind], encoded)
        if message is None:
            raise damaged_result(index, place)
        check_known(message, "a result", _LAST_FIELD)
        return message

    def _head(self, message: Any, index: int) -> Head:
        name = self._function_name(message, index)
        origin = self._outline.origin(self.place(index), message)
        return Head(
            function_name=name,
            signature=text_of(getattr(message, "KernelDemangledName", b"")) or name,
            process=origin.process,
            nvtx_range=origin.nvtx_range,
            rules=tuple(rule for encoded in message.RuleResults for rule in self._rules_of(index, encoded)),
        )

    def _rules_of(self, index: int, encoded: bytes) -> tuple[Rule, ...]:
        """Return what one of NVIDIA's rules says; launches of one kernel share many of them."""
        if encoded not in self._rules:
            result = decode("RuleResult", encoded)
            if result is None:
                raise damaged_result(index, self.place(index))
            if len(self._rules) >= _MOST_OWNS:
                self._rules.clear()
            self._rules[encoded] = tuple(map(checked_rule, rules_of(result)))
        return self._rules[encoded]

    def result(self, index: int) -> RawResult:
        """Read one result; errors as `results`."""
        message = self.message(index)
        metrics = self._metrics(message, index)
        if self._raw is not None:
            metrics.keep(self._raw, index)
        numbers, texts, nan_count = sort_values(metrics.values)
        tables = _tables(metrics)
        has_instances = not self._used.isdisjoint(metrics.values)
        head = self._head(message, index)
        stored = code.gather(metrics, thread_opcodes(tables), head.function_name) if has_instances else None
        return RawResult(
            index=index,
            function_name=head.function_name,
            signature=head.signature,
            workload=self.place(index).kind,
            numbers=numbers,
            texts=texts,
            tables=tables,
            nan_count=nan_count,
            rules=head.rules,
            series=series.read_series(metrics) if has_instances else None,
            process=head.process,
            nvtx_range=head.nvtx_range,
            code=self._first_code(index, message, stored),
        )

    def _metrics(self, message: Any, index: int) -> EncodedMetrics:
        """Find the values of a result by name; long ones, and those with instances, stay encoded."""
        if len(self._scalars) >= _MOST_KNOWN:
            self._forget()
        self._index = index
        entries = message.MetricResults[:]
        found = self._layouts.find(entries)
        if found is not None and (metrics := self._laid_out(entries, *found)) is not None:
            return metrics
        values: dict[str, Any] = {}
        cut_of, doubles, scalars, double_at = _CUT.get, self._doubles, self._scalars, _DOUBLE.unpack_from
        for entry in entries:
            cut = cut_of(len(entry))
            if cut is not None and (name := doubles.get(entry[:cut])) is not None:
                if not name:
                    continue
                if cut == -DOUBLE_BYTES or entry.endswith(TAIL):
                    values[name] = double_at(entry, len(entry) + cut)[0]
                    continue
            name, value, _ = scalars[entry]
            if name:
                values[name] = value
        if self._layouts.may_learn and len(self._outline.places) > 1:
            self._layouts.learn(entries, [self._plain(entry) for entry in entries], _is_used)
        encoded = [name for name, value in values.items() if isinstance(value, bytes)]
        return self._decoded(values, encoded)

    def _plain(self, entry: bytes) -> tuple[int | None, str]:
        """Return where the double of a metric begins, None if it is not just one double, and the metric's name."""
        cut = _CUT.get(len(entry))
        if cut is not None and (cut == -DOUBLE_BYTES or entry.endswith(TAIL)):
            name = self._doubles.get(entry[:cut])
            if name is not None:
                return len(entry) + cut, name
        return None, self._scalars[entry].name

    def _laid_out(self, entries: Sequence[bytes], layout: Layout, doubles: tuple[float, ...]) -> EncodedMetrics | None:
        """Find the values that are used, given the doubles of a layout; None where the other metrics differ from it."""
        known = list(map(self._scalars.__getitem__, layout.others(entries)))
        names, rows = [name for name, _, _ in known], [row for _, _, row in known]
        if names != layout.other_names:
            return None
        values: dict[str, Any] = dict(zip(layout.used_names, compress(doubles, layout.used), strict=True))
        values |= {name: value for name, value, _ in compress(known, layout.others_used)}
        encoded = []
        place = -1
        for _ in range(rows.count(ENCODED)):
            place = rows.index(ENCODED, place + 1)
            name, value, _ = known[place]
            if name:
                encoded.append(name)
                values[name] = value
        return self._decoded(values, encoded, Packed(layout, doubles, rows))

    def _decoded(self, values: dict[str, Any], encoded: list[str], packed: Packed | None = None) -> EncodedMetrics:
        """Decode what has instances; where those are not read, keep only the metric's own value."""
        try:
            if encoded and (self._raw is None or not self._raw.with_instances):
                self._leave_own(values, encoded)
            return EncodedMetrics(values, encoded, self._used, packed)
        except DamagedMetricError:
            raise damaged_result(self._index, self.place(self._index)) from None

    def _leave_own(self, values: dict[str, Any], encoded: Sequence[str]) -> None:
        """Keep only the own value of metrics whose instances are not read."""
        needed = {*OPCODE_TABLES, *self._used}
        if not self._used.isdisjoint(values):
            needed.add(code.FUNCTIONS)  # of no use without instructions
        for name in encoded:
            if name not in needed:
                own = self._own_of(values[name])
                if own is None:
                    del values[name]
                else:
                    values[name] = own

    def _own_of(self, entry: bytes) -> Value | None:
        """Return a metric's own value; launches of one kernel share many of them."""
        if entry in self._owns:
            return self._owns[entry]
        own = own_of(entry)
        if len(entry) <= _LONGEST_KNOWN_BYTES:
            if len(self._owns) >= _MOST_OWNS:
                self._owns.clear()
            self._owns[entry] = own
        return own

    def _forget(self) -> None:
        """Forget the scalars seen so far: new ones come all the time."""
        self._scalars.clear()
        if self._raw is not None:
            self._raw.forget()

    def _look(self, entry: bytes) -> _Known:
        """Return a metric that was not seen before; without a name where it is not wanted."""
        if (double := self._double(entry)) is not None:
            return double
        if len(entry) > _LONGEST_SCALAR_BYTES:
            if (name := self._names.get(name_id_of(entry))) is not None:
                return _Known(name, entry, ENCODED)
        elif (count := whole_number(entry, self._counts)) is not None:
            return self._remember(entry, *count)
        head = decode("MetricHead", entry)
        if head is None:
            raise damaged_result(self._index, self.place(self._index))
        name = self.name(head.NameId)
        check_known(head, "a metric", 0)
        if len(entry) > _LONGEST_SCALAR_BYTES:
            return _Known(name, entry, ENCODED)
        value: Any = entry
        if not head.HasField("LastInstance"):
            value = own_value(head)
            check_kind(head.Kind, fits=value is None)
        if isinstance(value, int):
            self._counts[before_value(head.NameId)] = name
        return self._remember(entry, name, value)

    def _double(self, entry: bytes) -> _Known | None:
        """Return a metric that is just one double, without decoding it; None where it may be something else."""
        cut = _CUT.get(len(entry))
        if cut is None or (cut != -DOUBLE_BYTES and not entry.endswith(TAIL)):
            return None
        start = entry[:cut]
        name_id = id_before_double(start)
        if name_id < 0:
            return None
        name = self._doubles[start] = self.name(name_id)
        return self._remember(entry, name, _DOUBLE.unpack_from(entry, len(start))[0])

    def _remember(self, entry: bytes, name: str, value: Value | bytes | None) -> _Known:
        row = 0
        if isinstance(value, bytes):
            row = ENCODED
        elif self._raw is not None:
            row = self._raw.remember(name, value)
        known = self._scalars[entry] = _Known(name, value, row)
        return known

    def name(self, name_id: int) -> str:
        """Return the name of a metric, empty where it is not wanted; errors as `results`."""
        name = self._names.get(name_id)
        if name is None:
            check_names((name_id,), self._index, self._outline.strings)
            name = text_of(self._outline.strings[name_id])
            is_by_instance, is_used = _use_of(name)
            if is_by_instance:
                self._used.add(name)
            elif self._raw is None and not is_used:
                name = ""
            self._names[name_id] = name
        return name


@lru_cache(maxsize=_MOST_NAMES)
def _use_of(name: str) -> tuple[bool, bool]:
    """Return whether a metric's instances are read, and whether a kernel record needs the metric."""
    is_by_instance = code.uses(name) or series.uses(name)
    return is_by_instance, is_by_instance or is_wanted(name) or code.needs(name)


def _is_used(name: str) -> bool:
    return _use_of(name)[1]


def _tables(metrics: EncodedMetrics) -> dict[str, dict[str, int]]:
    return {name: opcode_table(stored) for name in OPCODE_TABLES if (stored := metrics.metric(name)) is not None}
