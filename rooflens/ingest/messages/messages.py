"""The protocol-buffer messages of an Nsight Compute report, defined by a table.

NVIDIA publishes the format ("Report File Format" in the Customization Guide; the definitions ship with every Nsight
Compute). The table has only the fields that rooflens reads or writes; a decoder carries the others along unread.
Protocol buffers decode what is read; `fields` and `decoded` need the standard library alone, for a bare GPU machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from rooflens.errors import INTACT_HINT, InputError

_PACKAGE = "rooflens.ncu_rep"

SCALARS = (
    ("bytes", "StringValue", 1),
    ("float", "FloatValue", 2),
    ("double", "DoubleValue", 3),
    ("uint32", "Uint32Value", 4),
    ("uint64", "Uint64Value", 5),
)
"""The kinds of a value: a single value has one kind, a metric's merged values may have any number of each."""

_NO_MEMORY = "alloc failed"
_NONE: frozenset[int] = frozenset()
_LARGE_BYTES, _MOST_TIMES = 1 << 20, 16
"""Larger messages may exhaust memory when decoded; most messages grow by at most this factor."""

VARINT, _FIXED64, DELIMITED, _FIXED32 = 0, 1, 2, 5
"""Kinds of fields, as they are encoded."""
_LONGEST_VARINT_BYTES = 10

_OTHERS = {"Range": 20, "CommandList": 21, "Graph": 22}
"""Results that are not kernels, and the field that holds their rules; they are otherwise read alike."""

Fields: TypeAlias = "tuple[tuple[str, str, str, int], ...]"


def _kernel_fields(metric: str, rule: str, source: str) -> Fields:
    """Describe a kernel's result; useless fields are listed if reports hold them, so that they count as known."""
    return (
        ("required", "uint32", "ThreadID", 1),
        ("required", "uint64", "APICallID", 2),
        ("required", "uint64", "ProgramHandle", 3),
        ("required", "uint64", "KernelID", 4),
        ("required", "bytes", "KernelMangledName", 5),
        ("required", "bytes", "KernelFunctionName", 6),
        ("required", "bytes", "KernelDemangledName", 7),
        ("required", "uint32", "WorkDimensions", 8),
        ("required", "Uint64x3", "GlobalWorkOffset", 9),
        ("required", "Uint64x3", "GridSize", 10),
        ("required", "Uint64x3", "BlockSize", 11),
        ("repeated", metric, "MetricResults", 13),
        ("optional", "uint64", "CreationTime", 14),
        ("required", source, "Source", 15),
        ("optional", "uint32", "Api", 16),
        ("repeated", "bytes", "Sections", 17),
        ("repeated", "bytes", "Comments", 18),
        ("repeated", rule, "RuleResults", 19),
        # An NvtxState message, decoded separately so that damage in it does not make the whole result unreadable.
        ("optional", "bytes", "Nvtx", 21),
        ("optional", "uint64", "ContextID", 22),
        ("optional", "uint64", "StreamID", 23),
        ("repeated", "bytes", "Series", 25),
        ("repeated", "bytes", "Unused28", 28),
        ("repeated", "bytes", "Unused31", 31),
        ("optional", "fixed32", "Unused35", 35),
        ("repeated", "bytes", "Unused36", 36),
    )


def _other(metric: str, kind: str) -> Fields:
    """Describe the result of a range, a command list or a graph."""
    return (
        ("required", "uint32", "ThreadID", 1),
        ("required", "uint64", "APICallID", 2),
        ("repeated", metric, "MetricResults", 4),
        ("optional", "bytes", "Nvtx", 10),
        *((("optional", "bytes", "KernelFunctionName", 18),) if kind == "CommandList" else ()),
        ("repeated", "bytes", "RuleResults", _OTHERS[kind]),
    )


# message -> rows of (label, type, field, number). A type that starts with a capital is another message of this table.
# Text is declared as bytes, which is the same on the wire: command lines and paths come in whatever code page the
# machine used, and in a string field one undecodable byte would raise an exception far from here.
FIELDS: Mapping[str, Fields] = {
    "FileHeader": (("required", "uint32", "Version", 1),),
    "BlockHeader": (
        ("required", "uint32", "NumSources", 1),
        ("required", "uint32", "NumResults", 2),
        ("optional", "SessionDetails", "SessionDetails", 3),
        ("optional", "StringTable", "StringTable", 4),
        ("required", "uint64", "PayloadSize", 5),
        ("optional", "ProcessInfo", "Process", 6),
        ("optional", "uint32", "NumRangeResults", 7),
        ("optional", "uint32", "NumCmdlistResults", 8),
        ("optional", "uint32", "NumGraphResults", 9),
        ("optional", "uint32", "NumGraphs", 10),
    ),
    "StringTable": (("repeated", "bytes", "Strings", 1),),
    "ProcessInfo": (
        ("required", "uint32", "ProcessID", 1),
        ("optional", "bytes", "Hostname", 2),
        ("optional", "bytes", "ProcessName", 3),
    ),
    "SessionDetails": (
        ("optional", "uint32", "ProcessID", 1),
        ("optional", "uint64", "CreationTime", 2),
        ("optional", "SystemInfo", "HostSystemInfo", 3),
        ("optional", "SystemInfo", "TargetSystemInfo", 4),
        ("optional", "VersionInfo", "VersionInfo", 8),
        ("optional", "ProfilerSettings", "ProfilerSettings", 10),
        ("optional", "bytes", "ProfilerCmdline", 11),
    ),
    "SystemInfo": (("optional", "bytes", "ComputerName", 5),),
    "VersionInfo": (
        ("optional", "bytes", "Provider", 1),
        ("optional", "bytes", "Version", 2),
    ),
    "ProfilerSettings": (
        ("optional", "bytes", "ActivityType", 4),
        ("optional", "bytes", "ClockControlMode", 8),
        ("optional", "bytes", "ReplayMode", 11),
    ),
    "SourceData": (
        ("optional", "uint64", "Reference", 1),
        ("optional", "bytes", "Code", 2),
        ("optional", "bytes", "Intermediate", 3),
        ("optional", "bytes", "Binary", 4),
        ("optional", "SourceFiles", "Files", 8),
        ("optional", "LoadedFunctions", "Functions", 9),
    ),
    "SourceFiles": (("repeated", "SourceFile", "Files", 1),),
    "SourceFile": (
        ("optional", "bytes", "Name", 1),
        ("optional", "bytes", "Text", 2),
    ),
    "LoadedFunctions": (("repeated", "LoadedFunction", "Functions", 1),),
    "LoadedFunction": (
        ("optional", "bytes", "Name", 1),
        ("optional", "uint64", "Address", 2),
    ),
    "ProfileResult": _kernel_fields("MetricResult", rule="RuleResult", source="SourceData"),
    **{f"{kind}Result": _other("MetricResult", kind) for kind in _OTHERS},
    # The same for reading: what is decoded later, or never, stays bytes.
    "BareProfileResult": _kernel_fields("bytes", rule="bytes", source="bytes"),
    **{f"Bare{kind}Result": _other("bytes", kind) for kind in _OTHERS},
    "Uint64x3": (
        ("required", "uint64", "X", 1),
        ("required", "uint64", "Y", 2),
        ("required", "uint64", "Z", 3),
    ),
    "MetricResult": (
        ("required", "uint32", "NameId", 1),
        ("optional", "MetricValue", "MetricValue", 2),
        ("repeated", "MetricValuePair", "MetricValueList", 3),
        ("optional", "uint32", "Kind", 4),
    ),
    # The same for reading: instances are declared as one message, so that protocol buffers merge them into a list of
    # keys and a list of values, in a fraction of the time. If they differ in kind their order is lost, and the metric
    # is decoded once more.
    "MergedMetricResult": (
        ("required", "uint32", "NameId", 1),
        ("optional", "MetricValue", "MetricValue", 2),
        ("optional", "MergedPairs", "MetricValueList", 3),
        ("optional", "uint32", "Kind", 4),
    ),
    # Likewise all metrics of a result as one message.
    "MergedMetricResults": (
        ("repeated", "uint32", "NameId", 1),
        ("repeated", "bytes", "MetricValue", 2),
        ("optional", "MergedPairs", "MetricValueList", 3),
        ("repeated", "uint32", "Kind", 4),
    ),
    "MetricValuePair": (
        ("optional", "MetricValue", "CorrelationId", 1),
        ("required", "MetricValue", "ElementValue", 2),
    ),
    "MergedPairs": (
        ("optional", "MergedValues", "CorrelationId", 1),
        ("optional", "MergedValues", "ElementValue", 2),
    ),
    "MetricValue": tuple(("optional", *scalar) for scalar in SCALARS),
    "MergedValues": tuple(("repeated", *scalar) for scalar in SCALARS),
    "RuleResult": (
        ("optional", "bytes", "Identifier", 1),
        ("optional", "bytes", "DisplayName", 2),
        ("optional", "RuleBody", "Body", 3),
        ("optional", "bytes", "SectionIdentifier", 4),
    ),
    "RuleBody": (("repeated", "RuleItem", "Items", 1),),
    "RuleItem": (
        ("optional", "RuleMessage", "Message", 1),
        ("optional", "RuleSpeedup", "Speedup", 10),
    ),
    "RuleSpeedup": (
        ("optional", "uint32", "Kind", 1),
        ("optional", "double", "Value", 2),
    ),
    "RuleMessage": (
        ("optional", "bytes", "Text", 1),
        ("optional", "uint32", "Kind", 2),
        ("optional", "bytes", "Title", 4),
    ),
    "NvtxState": (
        ("repeated", "NvtxDomain", "Domains", 1),
        ("repeated", "NvtxThread", "Threads", 2),
        ("repeated", "NvtxStartEndDomain", "StartEndDomains", 3),
        ("optional", "uint64", "DefaultDomain", 4),
    ),
    "NvtxDomain": (
        ("optional", "uint64", "Id", 1),
        ("optional", "bytes", "Name", 2),
    ),
    "NvtxThread": (
        ("optional", "uint32", "TID", 1),
        ("repeated", "NvtxPushPopDomain", "PushPopDomains", 2),
    ),
    "NvtxPushPopDomain": (
        ("optional", "uint64", "Id", 1),
        ("repeated", "NvtxPushPopRange", "Stack", 3),
    ),
    "NvtxPushPopRange": (
        ("optional", "bytes", "Name", 1),
        ("optional", "uint64", "LastApiCallId", 3),
    ),
    "NvtxStartEndDomain": (
        ("optional", "uint64", "Id", 1),
        ("repeated", "NvtxStartEndRange", "Ranges", 3),
    ),
    "NvtxStartEndRange": (
        ("optional", "uint64", "Id", 1),
        ("optional", "bytes", "Name", 2),
        ("optional", "uint64", "LastApiCallId", 4),
    ),
}


def message(name: str) -> type[Any]:
    """Return the message class called `name` in `FIELDS`."""
    return _classes()[name]


def decode(name: str, encoded: bytes) -> Any:
    """Decode a message; None if `encoded` is no such message, or lacks a required field.

    Raises:
        MemoryError: Memory is exhausted. Protocol buffers report a damaged message, and only newer versions say why.
    """
    try:
        decoded = _decoder(name)(encoded)
    except _decode_error() as error:
        if _NO_MEMORY in str(error):
            raise MemoryError from None
        if len(encoded) > _LARGE_BYTES:
            bytes(_MOST_TIMES * len(encoded))  # raises if memory is short; otherwise it stays untouched
        return None
    return decoded if decoded.IsInitialized() else None


def unknown_fields(decoded: Any) -> frozenset[int]:
    """Return the numbers of a message's top-level fields that our definition lacks."""
    unknown = _unknown_field_set()(decoded)
    return frozenset(field.field_number for field in unknown) if len(unknown) else _NONE


def text_of(encoded: bytes) -> str:
    """Decode text as UTF-8, replacing other bytes: programs use any code page."""
    return encoded.decode("utf-8", errors="replace")


class Field(NamedTuple):
    """A field of an encoded message, from `start` to `end`; its content begins at `content`."""

    number: int
    kind: int
    value: int
    start: int
    content: int
    end: int


def fields(encoded: bytes) -> Iterator[Field]:
    """Yield the fields, which must fill the message exactly."""
    offset = 0
    while offset < len(encoded):
        key, content = _varint_at(encoded, offset)
        number, kind, value = key >> 3, key & 7, 0
        if kind == VARINT:
            value, end = _varint_at(encoded, content)
        elif kind == DELIMITED:
            length, content = _varint_at(encoded, content)
            end = content + length
        elif kind in {_FIXED32, _FIXED64}:
            end = content + (8 if kind == _FIXED64 else 4)
        else:
            raise _damaged(offset)
        # Field number 0 is forbidden by the format: seeing it means that these bytes are not a message.
        if not number or end > len(encoded):
            raise _damaged(offset)
        yield Field(number, kind, value, offset, content, end)
        offset = end


def contents(encoded: bytes, number: int, *further: int) -> Iterator[bytes]:
    """Yield the content of each field with this number, or of the nested fields given by `further`."""
    for one in fields(encoded):
        if one.number == number and one.kind == DELIMITED:
            content = encoded[one.content : one.end]
            if further:
                yield from contents(content, *further)
            else:
                yield content


def decoded(name: str, encoded: bytes) -> Any:
    """Decode a message of `FIELDS` without protocol buffers; absent fields are zero, empty, or None for a message.

    Raises:
        InputError: The bytes are no message.
    """
    rows = {number: row for *row, number in FIELDS[name]}
    found: dict[str, Any] = {attribute: _nothing(label, kind) for label, kind, attribute in rows.values()}
    for one in fields(encoded):
        label, kind, attribute = rows.get(one.number, ("", "", ""))
        if not attribute or (one.kind == DELIMITED) != (kind == "bytes" or kind in FIELDS):
            continue
        content: Any = encoded[one.content : one.end] if one.kind == DELIMITED else one.value
        value = decoded(kind, content) if kind in FIELDS else content
        if label == "repeated":
            found[attribute].append(value)
        else:
            found[attribute] = value
    return SimpleNamespace(**found)


def _nothing(label: str, kind: str) -> Any:
    """Return the default of an absent field."""
    if label == "repeated":
        return []
    return None if kind in FIELDS else b"" if kind == "bytes" else 0


def _varint_at(encoded: bytes, offset: int) -> tuple[int, int]:
    """Return the varint at `offset` (seven bits per byte), and where it ends."""
    value = 0
    for index, byte in enumerate(encoded[offset : offset + _LONGEST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, offset + index + 1
    raise _damaged(offset)


def _damaged(offset: int) -> InputError:
    return InputError(f"damaged: a message cannot be walked past its offset {offset:,}", INTACT_HINT)


@cache
def _decoder(name: str) -> Callable[[bytes], Any]:
    """Return what decodes a message: a report has a dozen of each kernel."""
    found: Callable[[bytes], Any] = message(name).FromString
    return found


@cache
def _decode_error() -> type[Exception]:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - loaded with the first report

    return DecodeError


@cache
def _unknown_field_set() -> Any:
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415 - as above

    return UnknownFieldSet


@cache
def _classes() -> Mapping[str, type[Any]]:
    """Build all classes in a private pool, so that they cannot clash with another package's NVIDIA messages."""
    from google.protobuf import descriptor_pool, message_factory  # noqa: PLC0415 - 20 ms that `--help` need not pay

    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file_descriptor())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in FIELDS}


def _file_descriptor() -> Any:
    """Translate `FIELDS` into the descriptor of one proto2 file."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - as above

    proto = descriptor_pb2.FileDescriptorProto(name="rooflens/ncu_rep.proto", package=_PACKAGE, syntax="proto2")
    for name, rows in FIELDS.items():
        fields = [_field_descriptor(*row) for row in rows]
        proto.message_type.add(name=name).field.extend(fields)
    return proto


def _field_descriptor(label: str, kind: str, name: str, number: int) -> Any:
    """Translate one row of `FIELDS`."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field  # noqa: PLC0415 - as above

    field = Field(name=name, number=number, label=Field.Label.Value(f"LABEL_{label.upper()}"))
    if kind in FIELDS:
        field.type = Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = Field.Type.Value(f"TYPE_{kind.upper()}")
    return field
