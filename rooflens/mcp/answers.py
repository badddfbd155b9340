"""The tools' answers: Markdown of bounded size, which says where to continue if there is more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import Field

from rooflens import format as fmt
from rooflens.analyzing import Analyzed
from rooflens.errors import InputError, RooflensError, UsageError
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.mcp.root import Root
from rooflens.model.catalogue import PROGRAM_KERNEL
from rooflens.model.compare.ladder import Ladder
from rooflens.model.compare.pairing import Unpaired, checked, pair_sides
from rooflens.model.compare.versions import pair_versions, pair_with_versions
from rooflens.model.predict.forecast import predicted
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import Options
from rooflens.model.program.ranks import joined
from rooflens.model.ranking import in_rank, most_at_stake
from rooflens.model.records import Analysis, AnalyzedReport, Gain, Grain
from rooflens.model.selecting import Selection, select
from rooflens.model.summary import KernelSummary, identity, summarize
from rooflens.model.verdict.sentences import TODAY, limit_cell
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.document import Column, Span, Table, Words, bullets, code, few, paragraph
from rooflens.report.forecast.data import to_objects
from rooflens.report.text.digest import (
    BYTES_PER_TOKEN,
    LEAST_TOKENS,
    digest,
    explain,
    file_of,
    hot_table,
    in_report,
    short_name,
    tokens_of,
)
from rooflens.report.text.hotspots import listings
from rooflens.report.text.table import MARKS, verdict_words
from rooflens.report.writers.markdown import to_markdown
from rooflens.writing.about import explained
from rooflens.writing.answers import of_comparison, of_forecasts, of_traces

MOST_TOKENS = 4000
"""Upper limit of an answer, whatever is requested."""

PAGE_TOKENS = 1200
ROWS = 25
NAMED = 5
GPUS = 2
_GRAINS: tuple[Grain, ...] = ("line", "sass", "function")

Path = Annotated[str, Field(description="report, trace, folder of them or store, relative to the root folder")]
Pattern = Annotated[str, Field(description="text in its name, a glob such as flash*, or its key; empty for all")]
Nvtx = Annotated[str, Field(description="NVTX range it was launched in; a glob; empty for all")]
Tokens = Annotated[int, Field(description="size limit of the answer", ge=LEAST_TOKENS, le=MOST_TOKENS)]
Offset = Annotated[int, Field(description="where to continue, as the previous answer says", ge=0)]


class Told(str):
    """A tool's answer: the text, and the same numbers as data for clients that compute.

    Attributes:
        data: A JSON object; empty if the text has no numbers of its own.
    """

    __slots__ = ("data",)

    def __new__(cls, text: str, data: Mapping[str, Any] | None = None) -> Self:
        """Take text and data."""
        told = super().__new__(cls, text)
        told.data = data or {}
        return told

    data: Mapping[str, Any]


class Answers:
    """Answers about the reports in one folder; clients see signatures and docstrings of the public methods."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def list_reports(self, folder: Path = ".", offset: Offset = 0) -> Told:
        """List the reports, traces and stores that can be opened, newest file first: date, GPU, kernels."""
        traces = self._root.traces(folder)
        found = [*self._reports_in(folder, traces), *traces]
        jobs = sorted(found, key=lambda job: (-job.path.stat().st_mtime_ns, job.source))
        stores = self._root.stores() if folder == "." else []
        are_traces = {job.source for job in traces}
        rows: list[Words] = [
            (code(job.source), ": ", *_told(job, is_trace=job.source in are_traces))
            for job in jobs[offset : offset + ROWS]
        ]
        rows += [(code(name), ": store") for name in stores[max(0, offset - len(jobs)) :]][: ROWS - len(rows)]
        total = len(jobs) + len(stores)
        names = [*(job.source for job in jobs), *stores][offset : offset + len(rows)]
        text = _more(to_markdown((bullets(rows),)), offset, len(rows), total)
        return Told(text, {"paths": names, **_place(offset, len(rows), total)})

    def _reports_in(self, folder: str, traces: Sequence[Job]) -> Sequence[Job]:
        """Find the reports of a folder; empty if it holds only traces.

        Raises:
            InputError: There are neither reports nor traces.
        """
        try:
            return self._root.inputs(folder).jobs
        except InputError:
            if traces:
                return ()
            raise

    def open_report(
        self,
        path: Path,
        kernel: Pattern = "",
        nvtx: Nvtx = "",
        max_tokens: Tokens = 600,
    ) -> Told:
        """Digest a report or a trace: most to win first, each kernel with verdict or floor, and what to do next."""
        if programs := self._root.programs(path, _selection(kernel, nvtx)):
            of_all = joined(programs).kernels
            first = [PROGRAM_KERNEL.json(one) for one in of_all[:NAMED]]
            text = of_traces(programs, max_tokens=max_tokens).text("digest")
            return Told(text, {"kernels": first, **_place(0, len(first), len(of_all))})
        found = self._root.analyzed(path)
        reports = self._reports(path, kernel, nvtx)
        kernels = _ranked(reports)
        rows = [_numbers(group) for group in kernels[:NAMED]]
        text = digest(reports, max_tokens, unread=found.failures)
        return Told(text, {"kernels": rows, **_place(0, len(rows), len(kernels))})

    def list_kernels(self, path: Path, kernel: Pattern = "", nvtx: Nvtx = "", offset: Offset = 0) -> Told:
        """List all kernels of a report with time, share of GPU time, verdict, gain, limit and key."""
        reports = self._reports(path, kernel, nvtx)
        kernels = _ranked(reports)
        several = len(reports) > 1
        where = ("report",) if several else ()
        headings = ("#", "kernel", *where, "time", "share", "verdict", "gain", "limit", "key")
        columns = tuple(Column(heading, right=heading in {"#", "time", "share"}) for heading in headings)
        shown = kernels[offset : offset + ROWS]
        rows = tuple(_kernel_row(place, group, several=several) for place, group in enumerate(shown, start=offset + 1))
        has_doubt = any("?" in verdict_words(group.analysis) for group in shown)
        is_open = any(limit_cell(group.analysis.verdict.limit).startswith("~") for group in shown)
        marks = [*([f"verdict: {MARKS}"] if has_doubt else []), *([f"limit: {TODAY}"] if is_open else [])]
        text = to_markdown((Table(columns, rows), *map(paragraph, marks)))
        data = {"kernels": [_numbers(group) for group in shown], **_place(offset, len(shown), len(kernels))}
        return Told(_more(text, offset, len(shown), len(kernels)), data)

    def explain_kernel(
        self, path: Path, kernel: Pattern = "", nvtx: Nvtx = "", max_tokens: Tokens = PAGE_TOKENS, offset: Offset = 0
    ) -> Told:
        """Explain one kernel: verdict, what to try in which order, where, why, caveats, and last the counters."""
        whole, chosen, others = self._chosen(path, kernel, nvtx)
        head, *parts = explain(whole, chosen).split("\n\n")
        verdict = "\n\n".join((head, *others, *parts[:2]))
        text = "\n\n".join((verdict, *parts[2:]))
        group = next(one for one in summarize(whole.analyses) if identity(one.analysis) == identity(chosen))
        moves = [
            {"finding": move.finding, "text": fmt.cut_end(move.text, _MOVE_BYTES), "gain": _factor(move.gain)}
            for move in chosen.verdict.moves[:NAMED]
        ]
        page = _page(text, offset, max_tokens, least=len(verdict.splitlines()))
        return Told(page, {**_numbers(group), "moves": moves})

    def hotspots(
        self,
        path: Path,
        kernel: Pattern = "",
        by: Annotated[str, Field(description="line, sass or function; empty for lines where they are known")] = "",
        top: Annotated[int, Field(description="how many", ge=1, le=100)] = 10,
    ) -> Told:
        """List the source lines or instructions of one kernel that take its time, with what warps wait for there."""
        grain = next((grain for grain in _GRAINS if grain == by), None)
        if by and grain is None:
            raise UsageError(
                f"`{by}` is not one of {', '.join(_GRAINS)}", "leave it out for lines where they are known"
            )
        _, chosen, others = self._chosen(path, kernel, "")
        shown = listings([chosen], grain, top)
        if not shown:
            raise InputError("the report holds no samples or counts by instruction of this kernel", "`ncu --set full`")
        head = paragraph((code(short_name(chosen.short_name)), f", {fmt.duration(chosen.kernel.duration_ns)}"))
        table = to_markdown((hot_table(chosen.kernel, shown[0].hotspots),))
        places = [
            {"file": spot.file, "line": spot.line, "pc": spot.pc, "samples": spot.measures.get("samples")}
            for spot in shown[0].hotspots
        ]
        page = _page("\n\n".join((to_markdown((head,)), *others, table)), 0)
        return Told(page, {"key": chosen.key, "hotspots": places})

    def compare(
        self,
        base: Path,
        head: Annotated[str, Field(description="recording after a change; empty if base is a folder of versions")] = "",
        kernel: Pattern = "",
        max_tokens: Tokens = PAGE_TOKENS,
        offset: Offset = 0,
    ) -> Told:
        """Compare recordings of one program, before and after a change, or all versions in a folder with the first."""
        found, unpaired = self._ladders(base, head, kernel)
        ladders = checked(found, anyway=False, hint="compare what was collected alike")
        page = _page(of_comparison(ladders, unpaired).text("md").removesuffix("\n"), offset, max_tokens)
        programs = [
            {"program": one.program, "factor": one.speed.factor, "warnings": list(one.warnings)} for one in ladders
        ]
        return Told(page, {"programs": programs})

    def predict(
        self,
        operation: Annotated[str, Field(description=", ".join(OPERATIONS))],
        sizes: Annotated[dict[str, int], Field(description="by name, such as m, n, k of gemm; {} returns the names")],
        **options: Any,
    ) -> Told:
        """Predict an operation on a GPU from formula and datasheet: FLOPs, bytes, intensity, regime, floor of time."""
        given = Options(**{name: value for name, value in options.items() if value})
        row = predicted(operation, {name.replace("-", "_"): size for name, size in sizes.items()}, given)
        (written,) = to_objects([row])
        numbers = {name: written[name] for name in _FORECAST if written[name] is not None}
        return Told(_page(of_forecasts([row]).text("md").removesuffix("\n"), 0), numbers)

    def about(self, name: Annotated[str, Field(description="empty for the list")] = "", offset: Offset = 0) -> Told:
        """Explain a verdict, finding, flag, stall reason, counter, word, GPU, or a line that ncu printed."""
        return Told(_page(to_markdown(explained(name)), offset))

    def _reports(self, path: str, kernel: str = "", nvtx: str = "") -> Sequence[AnalyzedReport]:
        return self._analyzed(path, kernel, nvtx).reports

    def _analyzed(self, path: str, kernel: str = "", nvtx: str = "") -> Analyzed:
        found = self._root.analyzed(path)
        if not found.reports and found.failures:
            raise found.failures[0][1]
        return found.only(select(found.reports, _selection(kernel, nvtx)))

    def _ladders(self, base: str, head: str, kernel: str) -> tuple[list[Ladder], tuple[Unpaired, ...]]:
        """Pair two sides; one report with each other version of its program where the head is a folder of them."""
        first = self._analyzed(base, kernel)
        if not head and len(first.reports) == 1:
            raise UsageError(f"`{base}` is one recording", "give another one as head, or a folder of versions as base")
        if not head:
            return pair_versions(first.reports, base)
        second = self._analyzed(head, kernel)
        if len(first.reports) == 1 and len(second.reports) > 1:
            others = [one for one in second.reports if one.run.digest != first.reports[0].run.digest]
            found = pair_with_versions(first.reports[0], others)
            if found:
                return found
            second = second.only(others)
        elif {one.run.digest for one in second.reports} <= {one.run.digest for one in first.reports}:
            hint = f"give `{head}` as base and `{base}` as head, or `{base}` alone to compare all of its versions"
            raise UsageError(f"`{base}` holds `{head}` itself", hint)
        return pair_sides([first.reports, second.reports], (base, head))

    def _chosen(self, path: str, kernel: str, nvtx: str) -> tuple[AnalyzedReport, Analysis, list[str]]:
        """Choose the kernel with most to win, and name the others that a pattern matches; give its report, too."""
        found = self._analyzed(path, kernel, nvtx)
        reports, analyses = found.reports, found.analyses
        chosen = most_at_stake(analyses)
        if chosen is None:
            raise InputError(f"`{path}` holds no kernel", "`list_reports` names other reports")
        others: list[Words] = [
            (code(short_name(one.shown)), " (key ", code(one.analysis.key), *in_report(one, reports), ")")
            for one in in_rank(summarize(analyses))
            if identity(one.analysis) != identity(chosen)
        ]
        whole = found.whole_of(chosen)
        if not others or not (kernel or nvtx):
            return whole, chosen, []
        head = f"{fmt.count(len(others) + 1, 'kernel')} match, and this one has most to win. The others: "
        return whole, chosen, [to_markdown((paragraph((head, *few(others, NAMED), ".")),))]


_MOVE_BYTES = 400
_FORECAST = (
    *("flop", "bytes", "intensity", "regime", "t_lower_s", "t_fused_s", "t_upper_s", "roof_flop_per_s"),
    *("time_over_floor", "time_over_attainable", "time_verdict"),
)
"""Keys of a forecast's JSON that clients get as numbers."""


def _ranked(reports: Sequence[AnalyzedReport]) -> Sequence[KernelSummary]:
    return in_rank(build_content(reports, "", default_thresholds()).kernels)


def _place(offset: int, shown: int, total: int) -> dict[str, int | None]:
    """Say how many rows there are, and where the next page starts."""
    end = offset + shown
    return {"total": total, "next_offset": end if shown and end < total else None}


def _numbers(group: KernelSummary) -> dict[str, Any]:
    """Return the numbers of a kernel; null for values that are unknown or were not measured."""
    analysis = group.analysis
    verdict = analysis.verdict
    return {
        "key": analysis.key,
        "name": short_name(group.shown),
        "source": analysis.kernel.source,
        "launches": group.launch_count,
        "time_ns": group.duration_ns,
        "time_share": group.time_share,
        "bound": verdict.bound,
        "or_bound": list(verdict.or_bound),
        "resource": verdict.resource,
        "confidence": verdict.confidence,
        "gain": _factor(verdict.gain),
        "limit": verdict.limit.factor,
    }


def _factor(gain: Gain | None) -> float | None:
    return gain.factor if gain else None


def _selection(kernel: str, nvtx: str) -> Selection:
    """Select by a client's patterns, without regular expressions, which can be made to run endlessly."""
    if any(pattern.startswith("re:") for pattern in (kernel, nvtx)):
        raise UsageError(
            "regular expressions are not supported here", "a glob such as `flash*` chooses several kernels"
        )
    return Selection((kernel,) if kernel else (), (nvtx,) if nvtx else ())


def _told(job: Job, *, is_trace: bool) -> tuple[str | Span, ...]:
    """Say when a file was written, on which GPU it was recorded, and how many kernels it holds."""
    written = datetime.fromtimestamp(job.path.stat().st_mtime, tz=UTC).strftime("%Y-%m-%d %H:%M")
    if is_trace:
        return (f"{written}, trace",)
    try:
        kernels = read_report(job.path, job.source, ReadOptions(texts=False)).kernels
    except RooflensError as error:
        return (f"{written}, cannot be read: {error}",)
    gpus = few([code(gpu) for gpu in dict.fromkeys(kernel.gpu or "unknown GPU" for kernel in kernels)], GPUS)
    names = len({(kernel.gpu, kernel.name) for kernel in kernels})
    launches = f", {fmt.count(len(kernels), 'launch')}" if len(kernels) != names else ""
    return f"{written}, ", *gpus, f", {fmt.count(names, 'kernel')}{launches}"


def _kernel_row(place: int, group: KernelSummary, *, several: bool) -> tuple[Words, ...]:
    verdict = group.analysis.verdict
    return (
        str(place),
        (code(short_name(group.shown)), f" x{group.launch_count:,}" if group.launch_count > 1 else ""),
        *((code(file_of(group.analysis.kernel.source)),) if several else ()),
        fmt.duration(group.duration_ns),
        fmt.percent(group.time_share),
        verdict_words(group.analysis),
        fmt.factor(verdict.gain.factor if verdict.gain else None),
        limit_cell(verdict.limit),
        code(group.analysis.key),
    )


def _page(text: str, offset: int, most_tokens: int = PAGE_TOKENS, least: int = 0) -> str:
    """Return a page of a text: whole lines from line `offset` on, at least up to line `least`.

    No page ends with a heading; a page that starts inside a table repeats the table's head.
    """
    lines = text.rstrip().splitlines()
    head = _head_of_table(lines, offset)
    size = sum(tokens_of(f"{line}\n") for line in head)
    end = offset
    has_content = False
    while end < len(lines):
        size += tokens_of(f"{lines[end]}\n")
        if size > most_tokens and has_content and end >= least:
            break
        has_content = has_content or not _is_opening(lines, end)
        end += 1
    while end < len(lines) and end > offset + 1 and _is_opening(lines, end - 1):
        end -= 1
    shown = "\n".join((*head, *lines[offset:end])).strip("\n")
    return _more(fmt.cut_end(shown, BYTES_PER_TOKEN * MOST_TOKENS), offset, end - offset, len(lines), "line")


def _head_of_table(lines: Sequence[str], at: int) -> Sequence[str]:
    """Return the two head lines of the table that a line belongs to; empty for other lines."""
    if at >= len(lines) or not lines[at].startswith("|"):
        return ()
    start = at
    while start > 0 and lines[start - 1].startswith("|"):
        start -= 1
    return lines[start : min(start + 2, at)]


def _is_opening(lines: Sequence[str], at: int) -> bool:
    """Return whether a line is meaningless without the next: a heading, a table's head, an empty line."""
    return not lines[at] or any(line.startswith(("#", "|--")) for line in lines[at : at + 2])


def _more(text: str, offset: int, shown: int, total: int, noun: str = "row") -> str:
    """Say below a page where to continue, or that there is nothing here."""
    end = offset + shown
    if not shown and offset:
        return f"nothing after {noun} {total}"
    return text if end >= total else f"{text}\n\ntruncated, {fmt.count(total - end, f'more {noun}')}: offset={end}"
