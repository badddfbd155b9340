"""The tools' answers: Markdown of bounded size, which says where to continue if there is more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any, get_args

from msgspec import Struct
from pydantic import Field

from rooflens import format as fmt
from rooflens.analyzing import Analyzed
from rooflens.errors import InputError, RooflensError, UsageError
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.mcp.root import Root
from rooflens.model.catalogue import (
    NUMBER,
    POSITION,
    PROGRAM_KERNEL,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    Key,
    Schema,
    Shape,
    choice,
    choices,
    fixed,
    items,
)
from rooflens.model.compare.ladder import Ladder
from rooflens.model.compare.pairing import Unpaired, checked, pair_sides
from rooflens.model.compare.versions import pair_versions, pair_with_versions
from rooflens.model.predict.forecast import predicted
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import Options
from rooflens.model.program.ranks import joined
from rooflens.model.ranking import in_rank, most_at_stake
from rooflens.model.records import Analysis, AnalyzedReport, Confidence, Grain
from rooflens.model.selecting import Selection, select
from rooflens.model.summary import KernelSummary, identity, summarize
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.model.verdict_classes import BOUNDS
from rooflens.report.content import build_content
from rooflens.report.document import Column, Span, Table, Words, bullets, code, few, paragraph
from rooflens.report.forecast.data import PREDICTION, to_objects
from rooflens.report.kernel.document import explain
from rooflens.report.kernel.places import hot_table
from rooflens.report.kernel.source import in_context
from rooflens.report.text.digest import (
    BYTES_PER_TOKEN,
    LEAST_TOKENS,
    digest,
    in_report,
    tokens_of,
)
from rooflens.report.text.hotspots import listings
from rooflens.report.words.gain_and_limit import TODAY, limit_cell
from rooflens.report.words.kernel import file_of, short_name
from rooflens.report.words.verdicts import MARKS, is_marked, verdict_words
from rooflens.report.writers.markdown import to_markdown
from rooflens.writing.about import explained
from rooflens.writing.answers import View, of_comparison, of_forecasts, of_traces

MOST_TOKENS = 4000
"""Upper limit of an answer, whatever is requested."""

PAGE_TOKENS = 1400
ROWS = 25
NAMED = 5
GPUS = 2
_GRAINS: tuple[Grain, ...] = ("line", "sass", "function")

Path = Annotated[str, Field(description="report, trace, folder of them or store, relative to the root folder")]
Pattern = Annotated[str, Field(description="text in its name, a glob such as flash*, or its key; empty for all")]
Nvtx = Annotated[str, Field(description="NVTX range it was launched in; a glob; empty for all")]
Gpu = Annotated[str, Field(description="GPU, if the file names none")]
Tokens = Annotated[int, Field(description="limit of the answer", ge=LEAST_TOKENS, le=MOST_TOKENS)]
Offset = Annotated[int, Field(description="where to continue, as the previous answer says", ge=0)]


_NONE: Mapping[str, Any] = {}


class ToolAnswer(Struct, frozen=True):
    """What a tool answers.

    Attributes:
        text: Markdown.
        data: The same numbers as JSON, for clients that compute; empty if the text has none of its own.
    """

    text: str
    data: Mapping[str, Any] = _NONE


class Answers:
    """Answers about the reports in one folder; clients see signatures and docstrings of the public methods."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def list_reports(self, folder: Path = ".", offset: Offset = 0) -> ToolAnswer:
        """List the reports, traces and stores that can be opened, newest file first: date, GPU, kernels."""
        traces = self._root.traces(folder)
        found = [*self._reports_in(folder, traces), *traces]
        jobs = sorted(found, key=lambda job: (-job.path.stat().st_mtime_ns, job.source))
        stores = self._root.stores() if folder == "." else []
        are_traces = {job.source for job in traces}
        rows: list[Words] = [
            (code(job.source), ": ", *_about_file(job, is_trace=job.source in are_traces))
            for job in jobs[offset : offset + ROWS]
        ]
        rows += [(code(name), ": store") for name in stores[max(0, offset - len(jobs)) :]][: ROWS - len(rows)]
        total = len(jobs) + len(stores)
        names = [*(job.source for job in jobs), *stores][offset : offset + len(rows)]
        text = _continue_words(to_markdown((bullets(rows),)), offset, len(rows), total)
        return ToolAnswer(text, _PATHS.json(_page_of_rows(names, offset, total)))

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
        gpu: Gpu = "",
        max_tokens: Tokens = 700,
    ) -> ToolAnswer:
        """Digest a report or a trace: most to win first, each kernel with verdict or floor, and what to do next."""
        if programs := self._root.programs(path, _selection(kernel, nvtx), gpu):
            of_all = joined(programs).kernels
            text = of_traces(programs, View(max_tokens=max_tokens)).text("digest")
            return ToolAnswer(text, _TRACE_KERNELS.json(_page_of_rows(of_all[:NAMED], 0, len(of_all))))
        found = self._root.analyzed(path, gpu)
        reports = self._analyzed(path, kernel, nvtx, gpu).reports
        kernels = _ranked(reports)
        text = digest(reports, max_tokens, unread=found.failures)
        return ToolAnswer(text, _KERNELS.json(_page_of_rows(kernels[:NAMED], 0, len(kernels))))

    def list_kernels(
        self, path: Path, kernel: Pattern = "", nvtx: Nvtx = "", gpu: Gpu = "", offset: Offset = 0
    ) -> ToolAnswer:
        """List all kernels of a report with time, share of GPU time, verdict, gain, limit and key."""
        reports = self._analyzed(path, kernel, nvtx, gpu).reports
        kernels = _ranked(reports)
        several = len(reports) > 1
        where = ("report",) if several else ()
        headings = ("#", "kernel", *where, "time", "share", "verdict", "gain", "limit", "key")
        columns = tuple(Column(heading, right=heading in {"#", "time", "share"}) for heading in headings)
        shown = kernels[offset : offset + ROWS]
        rows = tuple(_kernel_row(place, group, several=several) for place, group in enumerate(shown, start=offset + 1))
        has_doubt = any(is_marked(verdict_words(group.analysis)) for group in shown)
        is_open = any(limit_cell(group.analysis.verdict.limit).startswith("~") for group in shown)
        marks = [*([f"verdict: {MARKS}"] if has_doubt else []), *([f"limit: {TODAY}"] if is_open else [])]
        text = to_markdown((Table(columns, rows), *map(paragraph, marks)))
        data = _KERNELS.json(_page_of_rows(shown, offset, len(kernels)))
        return ToolAnswer(_continue_words(text, offset, len(shown), len(kernels)), data)

    def explain_kernel(  # noqa: PLR0913 - a tool's inputs are its parameters
        self,
        path: Path,
        kernel: Pattern = "",
        nvtx: Nvtx = "",
        *,
        gpu: Gpu = "",
        max_tokens: Tokens = PAGE_TOKENS,
        offset: Offset = 0,
    ) -> ToolAnswer:
        """Explain one kernel: verdict, what to try in which order, where, why, caveats, and last the counters."""
        whole, chosen, others = self._chosen_kernel(path, kernel, nvtx, gpu)
        head, *parts = explain(whole, chosen).split("\n\n")
        verdict = "\n\n".join((head, *others, *parts[:3]))
        text = "\n\n".join((verdict, *parts[3:]))
        group = next(one for one in summarize(whole.analyses) if identity(one.analysis) == identity(chosen))
        page = _page(text, offset, max_tokens, least=len(verdict.splitlines()))
        return ToolAnswer(page, _EXPLAINED.json(group))

    def hotspots(
        self,
        path: Path,
        kernel: Pattern = "",
        by: Annotated[str, Field(description="line, sass or function; empty for lines where they are known")] = "",
        top: Annotated[int, Field(description="how many", ge=1, le=100)] = 10,
    ) -> ToolAnswer:
        """List the source lines or instructions of one kernel that take its time, with what warps wait for there."""
        grain = next((grain for grain in _GRAINS if grain == by), None)
        if by and grain is None:
            raise UsageError(
                f"`{by}` is not one of {', '.join(_GRAINS)}", "leave it out for lines where they are known"
            )
        _, chosen, others = self._chosen_kernel(path, kernel, "")
        shown = listings([chosen], grain, top)
        if not shown:
            raise InputError("the report holds no samples or counts by instruction of this kernel", "`ncu --set full`")
        head = paragraph((code(short_name(chosen.short_name)), f", {fmt.duration(chosen.kernel.duration_ns)}"))
        context = in_context(chosen.kernel, next(iter(shown[0].hotspots), None))
        table = to_markdown((hot_table(chosen.kernel, shown[0].hotspots), *context))
        page = _page("\n\n".join((to_markdown((head,)), *others, table)), 0)
        return ToolAnswer(page, {"key": chosen.key, "hotspots": items(_SPOT).json(shown[0].hotspots)})

    def compare(  # noqa: PLR0913 - a tool's inputs are its parameters
        self,
        base: Path,
        head: Annotated[str, Field(description="recording after a change; empty if base is a folder of versions")] = "",
        kernel: Pattern = "",
        *,
        gpu: Gpu = "",
        max_tokens: Tokens = PAGE_TOKENS,
        offset: Offset = 0,
    ) -> ToolAnswer:
        """Compare recordings of one program, before and after a change, or all versions in a folder with the first."""
        found, unpaired = self._ladders(base, head, kernel, gpu)
        ladders = checked(found, anyway=False, hint="compare what was collected alike")
        page = _page(of_comparison(ladders, unpaired).text("md").removesuffix("\n"), offset, max_tokens)
        return ToolAnswer(page, {"programs": items(_PROGRAM_KEYS).json(ladders)})

    def predict(
        self,
        operation: Annotated[str, Field(description=", ".join(OPERATIONS))],
        sizes: Annotated[dict[str, int], Field(description="by name, such as m, n, k of gemm; {} returns the names")],
        **options: Any,
    ) -> ToolAnswer:
        """Predict an operation on a GPU from formula and datasheet: FLOPs, bytes, intensity, regime, floor of time."""
        given = Options(**{name: value for name, value in options.items() if value})
        row = predicted(operation, {name.replace("-", "_"): size for name, size in sizes.items()}, given)
        (written,) = to_objects([row])
        numbers = {name: written[name] for name in _FORECAST if written[name] is not None}
        return ToolAnswer(_page(of_forecasts([row]).text("md").removesuffix("\n"), 0), numbers)

    def about(
        self, name: Annotated[str, Field(description="empty for the list")] = "", offset: Offset = 0
    ) -> ToolAnswer:
        """Explain a verdict, finding, flag, stall, counter, word, GPU, or ncu label."""
        return ToolAnswer(_page(to_markdown(explained(name)), offset))

    def _analyzed(self, path: str, kernel: str = "", nvtx: str = "", gpu: str = "") -> Analyzed:
        found = self._root.analyzed(path, gpu)
        if not found.reports and found.failures:
            raise found.failures[0][1]
        return found.only(select(found.reports, _selection(kernel, nvtx)))

    def _ladders(self, base: str, head: str, kernel: str, gpu: str) -> tuple[list[Ladder], tuple[Unpaired, ...]]:
        """Pair two sides; one report with each other version of its program where the head is a folder of them."""
        first = self._analyzed(base, kernel, gpu=gpu)
        if not head and len(first.reports) == 1:
            raise UsageError(f"`{base}` is one recording", "give another one as head, or a folder of versions as base")
        if not head:
            return pair_versions(first.reports, base)
        second = self._analyzed(head, kernel, gpu=gpu)
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

    def _chosen_kernel(
        self, path: str, kernel: str, nvtx: str, gpu: str = ""
    ) -> tuple[AnalyzedReport, Analysis, list[str]]:
        """Return the matching kernel with most to win, its report, and the names of the other matches."""
        found = self._analyzed(path, kernel, nvtx, gpu)
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


class _Rows(Struct, frozen=True):
    """Rows of a page, how many there are in all, and where the next page starts; None on the last."""

    rows: Sequence[Any]
    total: int
    next_offset: int | None


def _page_of_rows(rows: Sequence[Any], offset: int, total: int) -> _Rows:
    end = offset + len(rows)
    return _Rows(rows, total, end if rows and end < total else None)


def _page_of(name: str, of: Shape) -> Shape:
    return fixed(Key(name, items(of), value=attrgetter("rows")), Key("total", POSITION), Key("next_offset", _OFFSET))


_MOVE_BYTES = 400
_OFFSET = Shape({"type": ["integer", "null"], "minimum": 0})
_LINE = Shape(_OFFSET.schema)
_MOVE = fixed(
    Key("finding", TEXT_OR_NULL),
    Key("text", TEXT, value=lambda move: fmt.cut_end(move.text, _MOVE_BYTES)),
    Key("gain", NUMBER, value=lambda move: move.gain and move.gain.factor),
)
_KERNEL_KEYS = fixed(
    Key("key", TEXT, value=attrgetter("analysis.key")),
    Key("name", TEXT, value=lambda group: short_name(group.shown)),
    Key("source", TEXT, value=attrgetter("analysis.kernel.source")),
    Key("launches", POSITION, value=attrgetter("launch_count")),
    Key("time_ns", NUMBER, value=attrgetter("duration_ns")),
    Key("time_share", NUMBER),
    Key("bound", choice(*BOUNDS), value=attrgetter("analysis.verdict.bound")),
    Key("or_bound", choices(*BOUNDS), value=attrgetter("analysis.verdict.or_bound")),
    Key("resource", TEXT_OR_NULL, value=attrgetter("analysis.verdict.resource")),
    Key("confidence", choice(*get_args(Confidence)), value=attrgetter("analysis.verdict.confidence")),
    Key("gain", NUMBER, value=lambda group: (gain := group.analysis.verdict.gain) and gain.factor),
    Key("limit", NUMBER, value=attrgetter("analysis.verdict.limit.factor")),
)
_EXPLAINED = fixed(
    *_KERNEL_KEYS.keys, Key("moves", items(_MOVE), value=lambda group: group.analysis.verdict.moves[:NAMED])
)
_SPOT = fixed(
    Key("file", TEXT_OR_NULL),
    Key("line", _LINE),
    Key("pc", _LINE),
    Key("samples", NUMBER, value=lambda spot: spot.measures.get("samples")),
)
_PROGRAM_KEYS = fixed(
    Key("program", TEXT), Key("factor", NUMBER, value=attrgetter("speed.factor")), Key("warnings", TEXTS)
)
_PATHS = _page_of("paths", TEXT)
_KERNELS = _page_of("kernels", _KERNEL_KEYS)
_TRACE_KERNELS = _page_of(
    "kernels",
    fixed(*(key for key in PROGRAM_KERNEL.keys if key.name != "measured")),  # no report is beside it here
)
_FORECAST = (
    *("flop", "bytes", "intensity", "regime", "t_lower_s", "t_fused_s", "t_upper_s", "roof_flop_per_s"),
    *("time_over_floor", "time_over_attainable", "time_verdict"),
)
"""Keys of a forecast's JSON that clients get as numbers."""


def _ranked(reports: Sequence[AnalyzedReport]) -> Sequence[KernelSummary]:
    return in_rank(build_content(reports, "", default_thresholds()).kernels)


def _selection(kernel: str, nvtx: str) -> Selection:
    """Select by a client's patterns, without regular expressions, which can be made to run endlessly."""
    if any(pattern.startswith("re:") for pattern in (kernel, nvtx)):
        raise UsageError(
            "regular expressions are not supported here", "a glob such as `flash*` chooses several kernels"
        )
    return Selection((kernel,) if kernel else (), (nvtx,) if nvtx else ())


def _about_file(job: Job, *, is_trace: bool) -> tuple[str | Span, ...]:
    """Say when a file was written, on which GPU it was recorded, and how many kernels it holds."""
    written = datetime.fromtimestamp(job.path.stat().st_mtime, tz=UTC).strftime("%Y-%m-%d %H:%M")
    if is_trace:
        return (f"{written}, trace",)
    try:
        kernels = read_report(job.path, job.source, ReadOptions(reads_code=False)).kernels
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
    return _continue_words(fmt.cut_end(shown, BYTES_PER_TOKEN * MOST_TOKENS), offset, end - offset, len(lines), "line")


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


def _continue_words(text: str, offset: int, shown: int, total: int, noun: str = "row") -> str:
    """Say below a page where to continue, or that there is nothing here."""
    end = offset + shown
    if not shown and offset:
        return f"nothing after {noun} {total}"
    return text if end >= total else f"{text}\n\ntruncated, {fmt.count(total - end, f'more {noun}')}: offset={end}"


def _brief(schema: Any) -> Any:
    """Leave out of a schema what is said for readers: each client sends all schemas with its list of tools."""
    if isinstance(schema, dict):
        return {name: _brief(one) for name, one in schema.items() if name not in {"description", "unit"}}
    return [_brief(one) for one in schema] if isinstance(schema, list) else schema


def _object(**shapes: Shape) -> Schema:
    return fixed(*(Key(name, shape) for name, shape in shapes.items())).schema


TOOLS: Mapping[Callable[..., ToolAnswer], Schema | None] = {
    Answers.list_reports: _brief(_PATHS.schema),
    Answers.open_report: _brief({"type": "object", "anyOf": [_KERNELS.schema, _TRACE_KERNELS.schema]}),
    Answers.list_kernels: _brief(_KERNELS.schema),
    Answers.explain_kernel: _brief(_EXPLAINED.schema),
    Answers.hotspots: _brief(_object(key=TEXT, hotspots=items(_SPOT))),
    Answers.compare: _brief(_object(programs=items(_PROGRAM_KEYS))),
    Answers.predict: _brief(
        {"type": "object", "properties": {key.name: key.schema for key in PREDICTION.keys if key.name in _FORECAST}}
    ),
    Answers.about: None,
}
"""The tools, with the JSON Schema of the data beside their text."""
