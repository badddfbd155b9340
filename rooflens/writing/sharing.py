"""Write the part of a report that can be given away: a new report with its names and numbers only.

No code, source text, path, host name, command line or environment is copied. Facts about the code become metrics of our
own (`rooflens.ingest.metrics.figures`), so that every verdict, finding and hot spot stays the same.
`fixtures/README.md` lists what is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import decode
from rooflens.ingest.messages.sessions import Session
from rooflens.ingest.metrics import code, series
from rooflens.ingest.metrics.code import Instructions
from rooflens.ingest.metrics.figures import KIND, LINE_IN, OPCODE, uses
from rooflens.ingest.metrics.stored import OPCODE_TABLES, Kind, Texts
from rooflens.ingest.reports.container import KERNEL, Outline, ResultSpan, outline
from rooflens.ingest.reports.encoding import (
    Instances,
    KernelSpec,
    MetricValue,
    NvtxRange,
    ReportSpec,
    SessionSpec,
    encode_report,
)
from rooflens.ingest.reports.inputs import is_table
from rooflens.ingest.reports.protobuf import ResultReader
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.results import RawResult, is_wanted
from rooflens.ingest.reports.unpacking import unpacked
from rooflens.model.records import Kernel, Rule
from rooflens.model.verdict.bottleneck import pipe_in_message
from rooflens.model.verdict.nvidia_rules import BROKEN, read_nvidia

_OF_THE_MACHINE = re.compile(
    r"numa__|nvlink__|breakdown:|group:|profiler__pmsampler_pass_groups|.*(?:pci_(?!ext_\w+_link_)|uuid|serial)"
)
_KEPT_INSTANCES = frozenset((*OPCODE_TABLES, code.FUNCTIONS))
_TEXT_LEFT_OUT = "NVIDIA's text is left out."
_BROKEN_LEFT_OUT = "The rule returned an error: its text is left out."

_TEXTS = re.compile(r"device__|launch__(?!kernel_name)")
"""Metrics whose texts are kept: names of GPUs and modes, never a program's."""


def shared(report: Path, *, names: bool = True) -> bytes:
    """Write the part of a report that can be given away, as a report.

    Args:
        report: A report of Nsight Compute, compressed or not.
        names: Keep the names of kernels, NVTX ranges and source files; otherwise they are numbered.

    Raises:
        InputError: The report is unreadable, or holds ranges, graphs, or code of an unknown form.
    """

    def described(session: Session) -> SessionSpec:
        return SessionSpec(
            process_id=1,
            process_name=_last_part(session.process_name or "") if names else "program",
            host="shared figures",
            ncu_version=session.ncu_version,
            command_line=None,
            created_unix_s=session.created_unix_s or 0,
            clock_control=session.clock_control,
            replay_mode=session.replay_mode,
            published="shared by its owner",
        )

    if is_table(report):
        hint = "it is text: take out its columns Process Name and Host Name, and the lines around the table"
        raise InputError(f"`{report}` is an export, of which no report can be made", hint)
    try:
        spec = figures(report, described)
    except ValueError as error:
        raise InputError(f"`{report}` cannot be shared: {error}", "`rooflens report` writes a page of it") from error
    return encode_report(spec if names else _without_names(spec))


def figures(report: Path, described: Callable[[Session], SessionSpec]) -> ReportSpec:
    """Describe a report by its names and numbers.

    Args:
        report: The report, compressed or not.
        described: Turns its session into the description of the new one.

    Raises:
        InputError: The report is unreadable.
        ValueError: The report holds something that cannot be written as figures.
    """
    with unpacked(report) as plain:
        data = plain.read_bytes()
    found = outline(data)
    results = [*ResultReader(data, found).results()]
    kernels = read_report(report, report.name).kernels
    shorter = _short_names(_used_sources(results))
    specs = [
        _kernel_spec(_shared_result(found, place, data[place.start : place.end]), kernel, result, shorter)
        for place, kernel, result in zip(found.places, kernels, results, strict=True)
    ]
    return ReportSpec(specs, described(found.sessions[0]), kernels_per_block=max(len(specs), 1))


def _without_names(spec: ReportSpec) -> ReportSpec:
    """Number kernels, NVTX ranges and source files, consistently across the report."""
    kernels, ranges, files = _Numbered("kernel"), _Numbered("range"), _Numbered("file")
    return replace(
        spec,
        kernels=[
            replace(
                one,
                name=kernels[one.name or one.function_name],
                function=kernels[one.name or one.function_name],
                metrics={
                    f"{LINE_IN}{files[name]}" if name.startswith(LINE_IN) else name: value
                    for name, value in one.metrics.items()
                },
                ranges=None
                if one.ranges is None
                else [
                    replace(opened, name=ranges[opened.name], domain=opened.domain and ranges[opened.domain])
                    for opened in one.ranges
                ],
            )
            for one in spec.kernels
        ],
    )


class _Numbered(dict[str, str]):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, name: str) -> str:
        self[name] = f"{self._kind}_{len(self) + 1}"
        return self[name]


def _last_part(path: str) -> str:
    return PurePath(path.replace("\\", "/")).name


class _Result(Struct, frozen=True):
    """A result of the original.

    Attributes:
        message: The decoded result.
        metrics: Its metrics by name.
        base: The lowest address of its code, from which the figures' addresses count.
    """

    message: Any
    metrics: Mapping[str, Any]
    base: int


def _shared_result(outline: Outline, place: ResultSpan, encoded: bytes) -> _Result:
    if place.kind != KERNEL:
        raise ValueError(f"a {place.kind}: only kernels are written")
    message = decode("ProfileResult", encoded)
    metrics = {outline.strings[metric.NameId].decode(): metric for metric in message.MetricResults}
    by_address = (metric for name, metric in metrics.items() if code.uses(name))
    addresses = [pair.CorrelationId.Uint64Value for metric in by_address for pair in metric.MetricValueList]
    if code.FUNCTIONS in metrics:
        addresses += [pair.ElementValue.Uint64Value for pair in metrics[code.FUNCTIONS].MetricValueList]
    # In a report of figures addresses already count from the lowest, and its facts about the code are copied.
    return _Result(message, metrics, 0 if any(map(uses, metrics)) else min(addresses, default=0))


def _kernel_spec(result: _Result, kernel: Kernel, raw: RawResult, shorter: Mapping[str, str]) -> KernelSpec:
    """Describe a result by its names and numbers."""
    message = result.message
    metrics = {
        name: _metric_value(name, metric, result.base) for name, metric in result.metrics.items() if _is_kept(name)
    }
    return KernelSpec(
        name=message.KernelDemangledName.decode(),
        metrics=metrics | _of_code(raw, kernel, result, shorter),
        grid=_xyz(message.GridSize),
        block=_xyz(message.BlockSize),
        rules=[rule_figures(rule, names_pipe=not kernel.warp_opcodes) for rule in kernel.rules],
        ranges=list(_nvtx_ranges(message)) if message.Nvtx else None,
        thread_id=message.ThreadID,
        function=message.KernelFunctionName.decode(),
    )


def _is_kept(name: str) -> bool:
    if _OF_THE_MACHINE.match(name) is None:
        return True
    if is_wanted(name):
        raise ValueError(f"{name} is read, and would be left out")
    return False


def _metric_value(name: str, metric: Any, base: int) -> MetricValue:
    """Return the value of a metric, with the instances that are read."""
    own = _scalar(metric.MetricValue) if metric.HasField("MetricValue") else None
    if isinstance(own, str) and _TEXTS.match(name) is None:
        own = None
    if not metric.MetricValueList:
        return own
    pairs = [(_scalar(pair.CorrelationId), _scalar(pair.ElementValue)) for pair in metric.MetricValueList]
    if name == code.FUNCTIONS:
        return Instances({number: start - base for number, (_, start) in enumerate(pairs)}, own)
    if code.uses(name):
        return Instances(_by_offset(pairs, base), own)
    is_kept = name in _KEPT_INSTANCES or series.uses(name) or uses(name)
    return Instances(dict(pairs), own) if is_kept else own


def _by_offset(pairs: Sequence[tuple[Any, Any]], base: int) -> dict[str | int, float | str]:
    """Count addresses from the lowest, and drop zeros, except for one if there is nothing else."""
    amounts = [(address - base, amount) for address, amount in pairs if amount]
    return dict(amounts or [(pairs[0][0] - base, pairs[0][1])])


def _scalar(value: Any) -> Any:
    ((_, found),) = value.ListFields()
    return found.decode() if isinstance(found, bytes) else found


def _xyz(size: Any) -> tuple[int, int, int]:
    return size.X, size.Y, size.Z


def rule_figures(rule: Rule, *, names_pipe: bool) -> Rule:
    """Keep a rule's name, numbers and estimate; a bottleneck named only by its sentence becomes its title.

    Args:
        rule: A rule of NVIDIA's.
        names_pipe: Keep the name of the busiest pipe, which no counter tells.
    """
    nvidia = read_nvidia([rule])
    pipe = pipe_in_message(rule.message) if names_pipe else None
    text = _TEXT_LEFT_OUT if rule.message else ""
    if pipe is not None:
        text = f"busiest pipe: {pipe}"
    elif nvidia.fp32_pct_of_peak is not None:
        text = f"fp32 {nvidia.fp32_pct_of_peak:g} %, fp64 {nvidia.fp64_pct_of_peak:g} % of peak"
    elif BROKEN.search(rule.message):
        text = _BROKEN_LEFT_OUT
    return replace(rule, title=nvidia.bottleneck or rule.title, message=text)


def _nvtx_ranges(result: Any) -> Iterator[NvtxRange]:
    """Yield the NVTX ranges open around a result, of its own thread and of all threads."""
    state = decode("NvtxState", result.Nvtx)
    domains = {domain.Id: domain.Name.decode() for domain in state.Domains if domain.Id != state.DefaultDomain}
    for domain in state.StartEndDomains:
        for opened in sorted(domain.Ranges, key=lambda one: one.Id):
            yield NvtxRange(opened.Name.decode(), domains.get(domain.Id, ""), opened.LastApiCallId, None)
    for thread in state.Threads:
        if result.ThreadID == thread.TID:
            for domain in thread.PushPopDomains:
                for opened in domain.Stack:
                    name = domains.get(domain.Id, "")
                    yield NvtxRange(opened.Name.decode(), name, opened.LastApiCallId, thread.TID)


def _of_code(raw: RawResult, kernel: Kernel, result: _Result, shorter: Mapping[str, str]) -> dict[str, MetricValue]:
    """Write the facts about a kernel's instructions as figures."""
    stored = raw.instructions
    if stored is None or any(map(uses, result.metrics)):
        return {}
    listing = raw.listing(stored.start)
    if listing is None:
        raise ValueError(f"the code of {kernel.name} is in no form that is known")
    start, base = code.read_code(stored, listing).start, result.base
    kinds = {address: _instruction_kind(listing, address) for address in _asked(stored)}
    lines: defaultdict[str, dict[str | int, float | str]] = defaultdict(dict)
    for address in sorted(_addresses(stored)):
        if (place := listing.line(address)) and place[0]:
            lines[shorter[place[0]]][address - base] = place[1]
    opcodes: dict[str | int, float | str] = {
        start + spot.pc - base: _opcode(spot.sass) for spot in kernel.hotspots if spot.pc is not None and spot.sass
    }
    return {
        KIND: Instances({address - base: kind for address, kind in kinds.items() if kind != "other"}),
        OPCODE: Instances(opcodes),
        **{f"{LINE_IN}{file}": Instances(of_file) for file, of_file in lines.items()},
    }


def _addresses(stored: Instructions) -> set[int]:
    amounts = (*stored.amounts.values(), stored.sectors or {})
    return {address for by_address in amounts for address in by_address}


def _asked(stored: Instructions) -> list[int]:
    return sorted({*stored.amounts.get("thread_inst", {}), *(stored.sectors or {})})


def _instruction_kind(listing: Texts, address: int) -> Kind:
    """Return an instruction's kind; an unknown instruction must not become a known kind."""
    kind = listing.kind(address)
    if kind is None:
        raise ValueError(f"the kind of the instruction at {address:#x} is not known")
    return kind


def _opcode(sass: str) -> str:
    """Return an instruction's opcode with modifiers, without predicate and operands."""
    words = sass.split()
    return next((word for word in words if not word.startswith("@")), "").rstrip(";")


def _used_sources(results: Iterable[RawResult]) -> Iterator[str]:
    for result in results:
        stored = result.instructions
        listing = result.listing(stored.start) if stored else None
        if stored and listing:
            yield from (place[0] for address in sorted(_addresses(stored)) if (place := listing.line(address)))


def _short_names(files: Iterable[str]) -> dict[str, str]:
    """Reduce paths to their last part; repeated names are numbered."""
    seen: Counter[str] = Counter()
    names = {}
    for file in dict.fromkeys(files):
        name = PurePath(file.replace("\\", "/")).name
        seen[name] += 1
        names[file] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return names
