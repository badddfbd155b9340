"""The metrics of a result as they are encoded: recognized without decoding where possible, and decoded otherwise."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import decode, unknown_fields
from rooflens.ingest.metrics.layouts import DOUBLE_BYTES
from rooflens.ingest.metrics.stored import Stored
from rooflens.ingest.reports.unpacking import INTACT_HINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.ingest.metrics.layouts import Layout
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.metrics.stored import Value

_NAME, _VALUE, _KIND = 1, 2, 4
"""Fields of a metric."""

_PLAIN, _SAMPLED = 0, 1
"""Kinds of a metric: a sampled one has doubles by time stamp, and no value without them."""

TAIL = bytes([_KIND << 3, _PLAIN])
"""The bytes after a plain metric, in reports of newer versions of ncu."""

BEFORE_DOUBLE = bytes([_VALUE << 3 | 2, 1 + DOUBLE_BYTES, 3 << 3 | 1])
"""The bytes between the index of a metric's name and its double: two tags, and the length of the value."""

_COUNT_TAG, _MOST_COUNT_BYTES = 5 << 3, 9
"""Tag of a whole number, and the most bytes of one that is read without decoding the message."""

_MOST_NAMES = 1 << 13
"""For how many indices of names it is remembered how they are encoded."""

_SCALARS = ("StringValue", "FloatValue", "DoubleValue", "Uint32Value", "Uint64Value")


class DamagedMetricError(InputError):
    """A metric cannot be decoded; the reader of its result knows which result that is."""

    def __init__(self) -> None:
        super().__init__("damaged: a metric cannot be decoded", INTACT_HINT)


class UnknownContentError(Exception):
    """A report holds something unknown here, which the text names; another reader may know it."""


def _merged_metric(entry: bytes) -> Any:
    metric = decode("MergedMetric", entry)
    if metric is None:
        raise DamagedMetricError
    check_known(metric, "a metric", 0)
    return metric


def own_of(entry: bytes) -> Value | None:
    """Return the own value of a metric that is long, or has instances, without decoding those: they cost most."""
    metric = decode("MetricHead", entry)
    if metric is None:
        raise DamagedMetricError
    check_known(metric, "a metric", 0)
    check_kind(metric.Kind, fits=metric.HasField("LastInstance") or not metric.HasField("MetricValue"))
    return own_value(metric)


def decoded(entry: bytes) -> Stored:
    """Decode a metric with its instances."""
    metric = _merged_metric(entry)
    if not metric.HasField("MetricValueList"):
        check_kind(metric.Kind, fits=not metric.HasField("MetricValue"))
        return Stored(own_value(metric))
    pairs = metric.MetricValueList
    check_known(pairs, "an instance", 0)
    keys, values = _merged(pairs.CorrelationId), _merged(pairs.ElementValue)
    if values is None or keys is None or len(keys) not in {0, len(values)}:
        return _slowly_decoded(entry)
    times, samples = pairs.CorrelationId.Uint64Value, pairs.ElementValue.DoubleValue
    own = own_value(metric)
    are_samples = len(times) == len(samples) == len(values) and not isinstance(own, (int, str))
    check_kind(metric.Kind, fits=are_samples)
    return Stored(own, keys or None, values)


def _merged(value: Any) -> Sequence[Value] | None:
    """Return the merged scalars of all instances; None where they are of several kinds, as their order is then lost."""
    check_known(value, "a value", 0)
    found: list[Sequence[Any]] = [scalars for name in _SCALARS if (scalars := getattr(value, name))]
    if len(found) != 1:
        return None if found else ()
    return [text_of(text) for text in found[0]] if isinstance(found[0][0], bytes) else list(found[0])


def _slowly_decoded(entry: bytes) -> Stored:
    """Decode a metric whose instances are not all alike, one by one."""
    metric = decode("MetricResult", entry)
    if metric is None:
        raise DamagedMetricError
    pairs = metric.MetricValueList
    values = [_scalar(pair.ElementValue) for pair in pairs]
    keys = [_scalar(pair.CorrelationId) for pair in pairs] if any(map(_has_key, pairs)) else None
    check_kind(metric.Kind, fits=False)
    if not _are_alike(values) or not (keys is None or _are_alike(keys)):
        raise UnknownContentError("instances that are not alike")
    return Stored(own_value(metric), keys, values)


def _has_key(pair: Any) -> bool:
    return bool(pair.HasField("CorrelationId"))


def _are_alike(values: Sequence[Value | None]) -> TypeGuard[Sequence[Value]]:
    """Return whether all are texts, or all numbers."""
    return None not in values and len({isinstance(value, str) for value in values}) == 1


def check_kind(kind: int, *, fits: bool) -> None:
    """Raise where a metric is of an unknown kind, or sampled without samples, which other readers drop."""
    if kind not in {_PLAIN, _SAMPLED} or (kind == _SAMPLED and not fits):
        raise UnknownContentError(f"{'a metric' if fits else 'an odd metric'} of kind {kind}")


def own_value(metric: Any) -> Value | None:
    """Return a metric's own value; None where it has none."""
    return _scalar(metric.MetricValue) if metric.HasField("MetricValue") else None


def _scalar(value: Any) -> Value | None:
    check_known(value, "a value", 0)
    present = value.ListFields()
    if len(present) > 1:
        raise UnknownContentError("a value of two kinds")
    if not present:
        return None
    found: float | int | bytes = present[0][1]
    return text_of(found) if isinstance(found, bytes) else found


def check_known(message: Any, what: str, highest: int) -> None:
    """Raise where a message has fields that its definition lacks, above the highest one known to be of no use."""
    unknown = unknown_fields(message)
    if unknown and max(unknown) > highest:
        raise UnknownContentError(f"field {min(number for number in unknown if number > highest)} of {what}")


def name_id_of(entry: bytes) -> int:
    """Return the index of a metric's name if that comes first, else -1."""
    if entry[0] != _NAME << 3:
        return -1
    number = 0
    for place, byte in enumerate(entry[1:4]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number
    return -1


@lru_cache(maxsize=_MOST_NAMES)
def id_before_double(start: bytes) -> int:
    """Return the index of a metric's name given the bytes before its double, else -1; most reports share indices."""
    name_id = name_id_of(start)
    return name_id if name_id >= 0 and start == before_value(name_id) + BEFORE_DOUBLE else -1


def before_value(name_id: int) -> bytes:
    """Return the bytes before the value of a metric: the index of its name."""
    number = bytearray()
    while name_id >= 0x80:
        number.append(name_id & 0x7F | 0x80)
        name_id >>= 7
    return bytes([_NAME << 3, *number, name_id])


def whole_number(entry: bytes, names: Mapping[bytes, str]) -> tuple[str, int] | None:
    """Return name and value of a metric that is one whole number; None where it may be something else."""
    for start in (3, 2, 4):
        if (name := names.get(entry[:start])) is not None:
            break
    else:
        return None
    end = start + 2 + entry[start + 1] if len(entry) > start + 1 else start
    number = entry[start + 3 : end]
    if (
        end > len(entry)
        or not 0 < len(number) <= _MOST_COUNT_BYTES
        or entry[start] != _VALUE << 3 | 2
        or entry[start + 2] != _COUNT_TAG
        or entry[end:] not in {b"", TAIL}
    ):
        return None
    value = 0
    for place, byte in enumerate(number):
        value |= (byte & 0x7F) << 7 * place
        if (byte < 0x80) != (place == len(number) - 1):
            return None
    return name, value


def text_of(encoded: bytes) -> str:
    """Decode text as UTF-8, replacing what is not: programs use any code page."""
    return encoded.decode("utf-8", errors="replace")


class Packed(NamedTuple):
    """What a result of a known layout stores: its doubles, and the rows of its other metrics."""

    layout: Layout
    doubles: tuple[float, ...]
    rows: Sequence[int]


class EncodedMetrics:
    """What one result stores.

    Args:
        values: By name; bytes are an encoded metric, which may have instances.
        encoded: Names of the encoded metrics.
        used: Names of the metrics whose instances are read.
        packed: All values but the encoded ones, where `values` has only those that are used.
    """

    def __init__(
        self, values: dict[str, Any], encoded: Sequence[str], used: set[str], packed: Packed | None = None
    ) -> None:
        self._stored = {name: decoded(values[name]) for name in encoded if isinstance(values.get(name), bytes)}
        self.values: dict[str, Value | None] = values
        for name, stored in self._stored.items():
            values[name] = stored.value
        self._encoded = encoded
        self._used = used
        self._packed = packed

    def names(self) -> list[str]:
        """Return the names of metrics that may have instances, sorted."""
        return sorted(self._used.intersection(self.values))

    def metric(self, name: str) -> Stored | None:
        """Return what is stored under a name; None where nothing is."""
        if name in self._stored:
            return self._stored[name]
        return Stored(self.values[name]) if name in self.values else None

    def keep(self, raw: RawTable, index: int) -> None:
        """Put every value into the table of stored values."""
        if self._packed is None:
            raw.add(index, self.values, self._stored)
            return
        layout, doubles, rows = self._packed
        raw.add_packed(index, layout.names, doubles, rows)
        raw.add(index, {name: self.values[name] for name in self._encoded if name in self.values}, self._stored)
