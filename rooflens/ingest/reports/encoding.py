"""Write valid Nsight Compute reports from a plain description, for `share`, tests and fixtures.

NVIDIA's own `ncu_report` can read them. Each report says that it is synthetic, in a version entry and (unless a test
overrides it) in its process name; otherwise it says where its figures come from. Equal descriptions give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.ingest.messages.messages import message
from rooflens.ingest.messages.sessions import SYNTHETIC_PROVIDER
from rooflens.ingest.reports.container import FORMAT_VERSION
from rooflens.ingest.reports.unpacking import MAGIC
from rooflens.ingest.reports.wire import framed
from rooflens.model.records import Rule

Scalar: TypeAlias = int | float | str | None
"""ncu stores its own counts as uint64, counters as double, names as text; None stands for a name without a value."""

PUBLISHED_PROVIDER = "rooflens published figures"

_RULE_KIND_OPTIMIZATION = 4
_OF_UNIT, _OF_KERNEL = 1, 2
"""Kinds of estimated speed-up."""

_SYNTHETIC_VERSION = "1"


class Instances(Struct, frozen=True):
    """A metric with instances, such as an opcode table: values by correlation id, and their total."""

    by_id: Mapping[str | int, float | str]
    total: Scalar = None


MetricValue: TypeAlias = Scalar | Instances


class NvtxRange(Struct, frozen=True):
    """An NVTX range that is open where a kernel is launched.

    Attributes:
        domain: Its domain; empty for the default domain.
        last_call: Number of the last CUDA call before the range began.
        thread_id: The thread that pushed it; None for a start/end range.
    """

    name: str
    domain: str = ""
    last_call: int = 0
    thread_id: int | None = 1


class KernelSpec(Struct, frozen=True):
    """One profiled kernel.

    Attributes:
        name: Demangled name with any template arguments and parameters.
        metrics: Values by metric name, stored in this order.
        ranges: NVTX ranges open around the launch; None for a report recorded without NVTX.
        process: ID and name of the process that launched it; None for the session's process.
        thread_id: The thread that launched it.
        function: Its plain name, if that cannot be derived from the demangled name.
        module: Number of the module in `ReportSpec.sources` with its code; None if there is none.
    """

    name: str
    metrics: Mapping[str, MetricValue]
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    rules: Sequence[Rule] = ()
    ranges: Sequence[NvtxRange] | None = None
    process: tuple[int, str] | None = None
    thread_id: int = 1
    function: str | None = None
    module: int | None = None

    @property
    def function_name(self) -> str:
        """Name without return type, template arguments and parameters."""
        return self.function if self.function is not None else re.sub(r"[<(].*", "", self.name.removeprefix("void "))


class SessionSpec(Struct, frozen=True):
    """What the session blocks say about the process and ncu.

    Attributes:
        published: Where real figures come from: repository, licence, commit and path; None for synthetic ones.
    """

    process_id: int = 4242
    process_name: str = "/synthetic/program"
    host: str = "synthetic-host"
    ncu_version: str | None = "2025.3.0.0 (build 0) (synthetic)"
    command_line: str | None = "ncu --set synthetic ./program"
    created_unix_s: int = 1_735_689_600  # 2025-01-01T00:00:00Z
    clock_control: str | None = None
    replay_mode: str | None = None
    published: str | None = None


class ReportSpec(Struct, frozen=True):
    """A whole report.

    Attributes:
        kernels: Each block holds at most `kernels_per_block` kernels, all of one process.
        sources: Encoded messages about compiled code, all in the first block.
    """

    kernels: Sequence[KernelSpec]
    session: SessionSpec = field(default_factory=SessionSpec)
    kernels_per_block: int = 1
    sources: Sequence[bytes] = ()


def encode_report(report: ReportSpec) -> bytes:
    """Encode `report` in the order ncu writes: session start, first results, session details, further results."""
    strings = _Strings()
    sources = chain((report.sources,), repeat(()))
    results = [
        _results_block(group, report.session, strings, of_it)
        for group, of_it in zip(_groups(report), sources, strict=False)
    ]
    start, *details = [_details_block(entry, report.session) for entry in _details(report.session)]
    header = message("FileHeader")(Version=FORMAT_VERSION).SerializeToString()
    return b"".join([MAGIC, framed(header), start, *results[:1], *details, *results[1:]])


def _groups(report: ReportSpec) -> list[list[KernelSpec]]:
    """Divide the kernels into blocks, each of a single process."""
    step = report.kernels_per_block
    runs = [list(run) for _, run in groupby(report.kernels, key=lambda kernel: kernel.process)]
    return [run[start : start + step] for run in runs for start in range(0, len(run), step)]


class _Strings:
    """The string table, whose IDs continue across blocks."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._new: list[str] = []

    def id_of(self, text: str) -> int:
        """Return the ID of `text`, adding it if it is new."""
        if text not in self._ids:
            self._ids[text] = len(self._ids)
            self._new.append(text)
        return self._ids[text]

    def take_new(self) -> list[bytes]:
        """Return the strings that are in no block yet."""
        new, self._new = self._new, []
        return [text.encode() for text in new]


def _encoded_block(session: SessionSpec, payload: bytes = b"", **header: Any) -> bytes:
    process = {
        "ProcessID": session.process_id,
        "Hostname": b"127.0.0.1",
        "ProcessName": session.process_name.encode(),
    }
    counts = {"NumSources": 0, "NumResults": 0, "PayloadSize": len(payload)}
    encoded = message("BlockHeader")(**(counts | header), Process=process).SerializeToString(deterministic=True)
    return framed(encoded) + payload


def _details_block(details: Mapping[str, Any], session: SessionSpec) -> bytes:
    """Encode one entry of the session details; ncu gives each a block of its own."""
    return _encoded_block(session, SessionDetails={"ProcessID": session.process_id, **details})


def _details(session: SessionSpec) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = [
        {"CreationTime": session.created_unix_s},
        {"TargetSystemInfo": {"ComputerName": session.host.encode()}},
        {"VersionInfo": _origin(session)},
    ]
    if session.ncu_version is not None:
        version = {"Provider": b"Nsight Compute Target", "Version": session.ncu_version.encode()}
        entries.append({"VersionInfo": version})
    settings = {"ClockControlMode": session.clock_control, "ReplayMode": session.replay_mode}
    if any(settings.values()):
        entries.append({"ProfilerSettings": {name: mode.encode() for name, mode in settings.items() if mode}})
    if session.command_line is not None:
        entries.append({"ProfilerCmdline": session.command_line.encode()})
    return entries


def _origin(session: SessionSpec) -> dict[str, bytes]:
    """Say in a version entry who generated the report, or where its figures were published."""
    if session.published is None:
        return {"Provider": SYNTHETIC_PROVIDER.encode(), "Version": _SYNTHETIC_VERSION.encode()}
    return {"Provider": PUBLISHED_PROVIDER.encode(), "Version": session.published.encode()}


def _results_block(
    kernels: Sequence[KernelSpec], session: SessionSpec, strings: _Strings, sources: Sequence[bytes]
) -> bytes:
    """Encode a block of results, with the strings that appear in it for the first time."""
    payload = b"".join(framed(part) for part in (*sources, *(_encoded_result(kernel, strings) for kernel in kernels)))
    if kernels[0].process is not None:
        process_id, process_name = kernels[0].process
        session = replace(session, process_id=process_id, process_name=process_name)
    counts = {"NumSources": len(sources), "NumResults": len(kernels)}
    return _encoded_block(session, payload, **counts, StringTable={"Strings": strings.take_new()})


def _encoded_result(kernel: KernelSpec, strings: _Strings) -> bytes:
    name, function_name = kernel.name.encode(), kernel.function_name.encode()
    result = message("ProfileResult")(
        ThreadID=kernel.thread_id,
        APICallID=1,
        ProgramHandle=1,
        KernelID=1,
        KernelMangledName=function_name,
        KernelFunctionName=function_name,
        KernelDemangledName=name,
        WorkDimensions=3,
        GlobalWorkOffset=_xyz((0, 0, 0)),
        GridSize=_xyz(kernel.grid),
        BlockSize=_xyz(kernel.block),
        Source={} if kernel.module is None else {"Reference": kernel.module},
        Nvtx=None if kernel.ranges is None else _nvtx_state(kernel.ranges),
        ContextID=1,
        StreamID=7,
        MetricResults=[_metric(strings.id_of(name), value) for name, value in kernel.metrics.items()],
        RuleResults=[_rule(rule) for rule in kernel.rules],
    )
    encoded: bytes = result.SerializeToString(deterministic=True)
    return encoded


def _nvtx_state(ranges: Sequence[NvtxRange]) -> bytes:
    """Encode the open ranges; the default domain is number 0, as in ncu's own reports."""
    domains = ["", *dict.fromkeys(found.domain for found in ranges if found.domain)]
    names = ["<default domain>", *domains[1:]]
    threads = dict.fromkeys(found.thread_id for found in ranges if found.thread_id is not None)
    state = message("NvtxState")(
        Domains=[{"Id": number, "Name": name.encode()} for number, name in enumerate(names)],
        Threads=[
            {"TID": thread, "PushPopDomains": [{"Id": number, "Stack": stack} for number, stack in stacks.items()]}
            for thread in threads
            for stacks in [_nvtx_domains(ranges, domains, thread)]
        ],
        StartEndDomains=[
            {"Id": number, "Ranges": [{"Id": ordinal, **entry} for ordinal, entry in enumerate(entries, 1)]}
            for number, entries in _nvtx_domains(ranges, domains, None).items()
        ],
        DefaultDomain=0,
    )
    encoded: bytes = state.SerializeToString(deterministic=True)
    return encoded


def _nvtx_domains(
    ranges: Sequence[NvtxRange], domains: Sequence[str], thread_id: int | None
) -> dict[int, list[dict[str, Any]]]:
    """List the ranges that a thread pushed, or the start/end ranges, by domain number."""
    found: dict[int, list[dict[str, Any]]] = {}
    for opened in ranges:
        if opened.thread_id == thread_id:
            entry = {"Name": opened.name.encode(), "LastApiCallId": opened.last_call}
            found.setdefault(domains.index(opened.domain), []).append(entry)
    return found


def _xyz(size: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip("XYZ", size, strict=True))


def _metric(name_id: int, value: MetricValue) -> dict[str, Any]:
    if not isinstance(value, Instances):
        return {"NameId": name_id} if value is None else {"NameId": name_id, "MetricValue": _encoded_value(value)}
    pairs = [
        {"CorrelationId": _encoded_value(key), "ElementValue": _encoded_value(item)}
        for key, item in value.by_id.items()
    ]
    return _metric(name_id, value.total) | {"MetricValueList": pairs}


def _encoded_value(value: float | str) -> dict[str, Any]:
    """Encode a value with the type that ncu uses for its kind."""
    if isinstance(value, str):
        return {"StringValue": value.encode()}
    return {"Uint64Value": value} if isinstance(value, int) else {"DoubleValue": value}


def _rule(rule: Rule) -> dict[str, Any]:
    text = {"Text": rule.message.encode(), "Kind": _RULE_KIND_OPTIMIZATION, "Title": rule.title.encode()}
    item: dict[str, Any] = {"Message": text}
    for kind, pct in ((_OF_KERNEL, rule.speedup_pct), (_OF_UNIT, rule.unit_speedup_pct)):
        if pct is not None:
            item["Speedup"] = {"Kind": kind, "Value": pct}
    return {
        "Identifier": rule.identifier.encode(),
        "DisplayName": rule.identifier.encode(),
        "Body": {"Items": [item]},
        "SectionIdentifier": rule.section.encode(),
    }
