"""The document of a kernel: what limits it, what to try in which order, where, why, and the counters behind that.

It is built here alone. `explain`, a card, the first screen of a page of one kernel, a notebook and MCP write it, each
as far as it has room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.findings.find import RULES
from rooflens.model.knowledge.families import TITLES, family_page, named_page
from rooflens.model.knowledge.items import find_item, names_of
from rooflens.model.needs import untold
from rooflens.model.predict.other_gpu import type_answer
from rooflens.model.records import Analysis, AnalyzedReport, Finding, Inside, Move
from rooflens.model.roofline.occupancy import block_smem_bytes, occupancy_curves
from rooflens.model.roofline.traffic import find_traffic
from rooflens.model.summary import cautions, notes, total_ns_of
from rooflens.model.unprofiled import InProgram
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.report.document import (
    Bullets,
    Column,
    Document,
    Folded,
    Heading,
    Item,
    Moves,
    OnPage,
    Option,
    Panels,
    Paragraph,
    Picture,
    Span,
    Table,
    Words,
    bullets,
    code,
    facts,
    joined,
    paragraph,
    strong,
)
from rooflens.report.kernel.memory import memory_chart
from rooflens.report.kernel.nvidia import nvidia_document
from rooflens.report.kernel.occupancy import occupancy_curve
from rooflens.report.kernel.places import hot_lines, loops
from rooflens.report.kernel.source import changes, differences
from rooflens.report.kernel.units import busy_units, opcodes, stalls, useful
from rooflens.report.words.findings import confidence_words, costing, shown
from rooflens.report.words.gain_and_limit import (
    A_LAUNCH,
    best_gain_words,
    floor_words,
    gain_words,
    limit_factor_words,
    roof_words_at_dram,
    stage_full_words,
    why_no_gain,
)
from rooflens.report.words.headline import NO_TIME
from rooflens.report.words.how_it_runs import (
    does_line,
    instruction_facts,
    memory_facts,
    occupancy_facts,
    spelling_words,
    warp_facts,
)
from rooflens.report.words.inside import where_words
from rooflens.report.words.kernel import file_of, plain, shares, short_name
from rooflens.report.words.labels import flag_label
from rooflens.report.words.program import in_program_lines
from rooflens.report.words.ruled_out import is_symptom, minor_causes, not_measured, ruled_out, symptoms
from rooflens.report.words.verdict import evidence_lines, verdict_head, verdict_sentence
from rooflens.report.words.worth import best_in_type, worth_words
from rooflens.report.writers.markdown import to_markdown

NOTES_SHOWN = 4
LEAST_COST = 0.02
"""Of the time: less is within what runs differ by."""

_FULL_NAME_WIDTH = 200
_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")


class KernelView(Struct, frozen=True):
    """A kernel, and what a face knows of the place where it is shown.

    Attributes:
        report: Its report, for its share of the time.
        analysis: The launch.
        options: Moves that a page lets choose, with their places in the chart; texts list the verdict's.
        sums_up: The launch stands for all of its name: their times are added, and it is the median one.
        predicted: What was predicted beside what was measured; empty without a prediction.
        launches: How many there are of its name in its report; 0 for those to be counted.
    """

    report: AnalyzedReport
    analysis: Analysis
    options: tuple[Option, ...] = ()
    sums_up: bool = False
    predicted: Document = ()
    launches: int = 0


def kernel_document(view: KernelView) -> Document:
    """Make the whole document of a kernel: moves first, the counters behind them last."""
    return (*title(view), *_verdict(view), *_below_verdict(view))


def explain(report: AnalyzedReport, analysis: Analysis) -> str:
    """Write a kernel's document as Markdown."""
    return f"{to_markdown(kernel_document(KernelView(report, analysis)))}\n"


def on_card(view: KernelView) -> Document:
    """Return the document as a card holds it, whose line above says name and time."""
    return (*_verdict(view), facts(*_launched(view)), *_below_verdict(view))


def below_answer(view: KernelView, *, has_reasons: bool) -> Document:
    """Return the document as a page of one kernel holds it below its first screen, which may have the reasons."""
    return (facts(*_launched(view)), *(() if has_reasons else reasons(view)), *view.predicted, *_counters(view))


def summary(view: KernelView) -> Document:
    """Return the first part of the document, as the cell of a notebook has room for: verdict and moves."""
    return (*title(view), *_verdict(view), *_moves(view))


def verdict_document(analysis: Analysis) -> Document:
    """Say what limits a kernel, what its best move brings, and its limit."""
    verdict = analysis.verdict
    sure = confidence_words(verdict.confidence, "class")
    words = (best_gain_words(analysis), limit_factor_words(analysis), sure)
    said = fmt.sentence_case(", ".join(filter(None, words)))
    return Paragraph((strong(plain(verdict_sentence(analysis))),), "answer"), paragraph(plain(f"{said}."))


def finding_document(finding: Finding) -> Document:
    """Make the blocks of one finding: title, numbers and move."""
    return (paragraph(_finding_words(finding, None), f"{fmt.sentence_case(plain(finding.move))}."),)


def answer(view: KernelView) -> Document:
    """Write what to try: the first screen of a page of one kernel has it below the verdict."""
    return (*_moves(view), *changes(view.analysis))


def seen(view: KernelView) -> Document:
    """Show where the time goes in the code and in the memory."""
    return _panels((loops(view.analysis), hot_lines(view.analysis), _memory(view)))


def reasons(view: KernelView) -> Document:
    """Say why, what that costs, and what is ruled out."""
    return _panels(make(view) for make in (_findings, _costs, _ruled_out, _doubts))


def _below_verdict(view: KernelView) -> Document:
    return (*answer(view), *seen(view), *reasons(view), *view.predicted, *_counters(view))


def _counters(view: KernelView) -> Document:
    analysis = view.analysis
    tables = (*busy_units(analysis), *_more_tables(view), *nvidia_document(analysis))
    rest = (*_running(view), *_course(view), *tables, *_origin(view))
    return (Folded("Counters, course of the run, NVIDIA's rules, full name", rest, on_text=False),) if rest else ()


def _panels(parts: Iterable[Document]) -> Document:
    shown_parts = tuple(filter(None, parts))
    return (Panels(shown_parts),) if shown_parts else ()


def title(view: KernelView) -> Document:
    """Name a kernel: its result, report, machine and time."""
    report, analysis = view.report, view.analysis
    return (
        Heading(code(short_name(analysis.short_name)), 1),
        facts(_result_words(view), plain(_time_words(report, analysis)), *_launched(view)),
    )


def _launched(view: KernelView) -> Iterator[Words]:
    """Say how it was launched, what it already does, and what its numbers stand for."""
    analysis = view.analysis
    yield from (plain(f"{line[:1].upper()}{line[1:]}") for line in in_program_lines(analysis))
    yield _launch(analysis)
    yield plain(f"does: {does}") if (does := does_line(analysis.verdict.does)) else ""
    yield _sums(analysis.launches, analysis.in_program, sums_up=view.sums_up)
    if analysis.kernel.synthetic:
        yield (strong("Synthetic data"), ": written by a generator, not recorded on a GPU.")


def _sums(launches: int, in_program: InProgram | None, *, sums_up: bool) -> str:
    """Say which of several launches it is that the numbers belong to."""
    if launches <= 1:
        return ""
    if in_program is not None and in_program.total_ns is not None:
        return f"The time is that of {launches:,} launches without ncu; everything else is of one launch under it."
    if not sums_up:
        return f"One profile represents {launches:,} equal launches: their time is its time x {launches:,}."
    return f"The median one of {launches:,} launches: their time is the sum; everything else is this launch's own."


def _time_words(report: AnalyzedReport, analysis: Analysis) -> str:
    """Write a kernel's time, and the share of GPU time that all launches of its name take."""
    alike = _launches_of_name(report, analysis)
    total_ns, all_ns = total_ns_of(report.analyses), total_ns_of(alike)
    launches = sum(one.launches for one in alike)
    share = f"{fmt.percent(all_ns / total_ns)} of the report's GPU time" if total_ns else "share of GPU time not known"
    if analysis.in_program is not None and analysis.in_program.total_ns is not None:
        return f"{fmt.duration(all_ns)} in the program, {share}"
    if analysis.kernel.duration_ns is None:
        return "" if analysis.kernel.failed else fmt.sentence_case(NO_TIME)
    if launches > 1 and analysis.in_program is None:
        return (
            f"{fmt.duration(analysis.kernel.duration_ns)} this launch, {fmt.duration(all_ns)} in {launches:,}: {share}"
        )
    return f"{fmt.duration(analysis.kernel.duration_ns)}, {share}"


def _launches_of_name(report: AnalyzedReport, analysis: Analysis) -> list[Analysis]:
    return [one for one in report.analyses if one.kernel.name == analysis.kernel.name and not one.kernel.failed]


def _span_words(view: KernelView) -> str:
    """Say that a time is that of one launch, where the kernel has several; a sum says how many these are."""
    launches = view.launches or sum(one.launches for one in _launches_of_name(view.report, view.analysis))
    return A_LAUNCH if launches > 1 else ""


def _launch(analysis: Analysis) -> Words:
    """Describe its launch; the text of its NVTX range is the program's, and is set as code."""
    kernel, counters = analysis.kernel, analysis.kernel.counters
    sizes = [
        f"{name} {'x'.join(map(str, size))}" for name, size in (("grid", kernel.grid), ("block", kernel.block)) if size
    ]
    shared, waves = block_smem_bytes(counters), counters.get("waves")
    numbers = (
        fmt.quantity(registers, "registers per thread") if (registers := counters.get("registers_per_thread")) else "",
        f"{fmt.si(shared, 'B')} of shared memory per block" if shared else "",
        fmt.quantity(waves, "waves") + (f" (fills {fmt.percent(waves)} of the block slots)" if waves < 1 else "")
        if waves
        else "",
    )
    occupancy = [
        f"{name.partition('_')[0]} occupancy {fmt.percent(min(1.0, counters[name]))}"
        for name in ("achieved_occupancy", "theoretical_occupancy")
        if name in counters
    ]
    launched = plain(", ".join((*sizes, *filter(None, numbers), *occupancy)))
    if not kernel.nvtx_range:
        return launched
    return (f"{launched}, NVTX " if launched else "NVTX ", code(kernel.nvtx_range))


def sentence(view: KernelView) -> str:
    """Say in a sentence what limits it."""
    return plain(verdict_head(view.analysis))


def _verdict(view: KernelView) -> Document:
    """Write the verdict: the limiter, the gain, and what makes them uncertain."""
    verdict = view.analysis.verdict
    sure = Span(
        fmt.sentence_case(confidence_words(verdict.confidence, "class")), link=f"about-verdicts-{verdict.bound}"
    )
    return Paragraph(((strong(sentence(view)), " ", sure, "."),), "answer"), *numbers(view)


def numbers(view: KernelView) -> Document:
    """Write where its time goes, its floors and what is uncertain: the moves below it say what they bring."""
    return *_where(view), *_floors(view), *_cautions(view.analysis)


def _where(view: KernelView) -> Document:
    """Say where its time goes, or why that is not known."""
    said = where_words(view.analysis, view.report.run.reader)
    return (paragraph(said),) if said else ()


def _floors(view: KernelView) -> Document:
    """Say which move brings most if not the first, what no change beats, and what the busiest unit is full of."""
    analysis, verdict, span = view.analysis, view.analysis.verdict, _span_words(view)
    limit, missing = floor_words(analysis, span), verdict.limit.missing
    gain = gain_words(verdict.gain, analysis.kernel.duration_ns, span)
    most = verdict.moves.index(verdict.best) + 1 if gain and verdict.best in verdict.moves[1:] else 0
    lines = (
        plain(f"Move {most} brings most: {gain}.") if most else "",
        plain(f"{limit}.") if limit else "",
        plain(_no_limit(analysis)) if missing and not analysis.kernel.failed else "",
        plain(stage_full_words(analysis)),
    )
    said = tuple(filter(None, lines))
    return (Paragraph(said, "note"),) if said else ()


def _no_limit(analysis: Analysis) -> str:
    missing = analysis.verdict.limit.missing
    if analysis.kernel.duration_ns is None and (roof := roof_words_at_dram(analysis)):
        return f"{roof}; how near it comes is not known, as the report lacks {missing}."
    return f"No limit: the report lacks {missing}."


def _cautions(analysis: Analysis) -> Document:
    """Warn of what changes the verdict."""
    flags = () if analysis.kernel.failed else cautions(analysis)
    return (Paragraph(tuple(_about_flag(flag) for flag in flags), "warning"),) if flags else ()


def _about_flag(flag: str) -> Words:
    link = f"about-flags-{flag}" if flag in names_of("flags") else ""
    return (Span(plain(flag_label(flag)), link=link),)


def _type_words(analysis: Analysis) -> str:
    """Say whether fp16, or fp32 for fp64, is worth it, as `predict --from --dtype` does; empty without an answer."""
    answer = type_answer(analysis)
    words = worth_words(answer) if answer else ""
    return f"{words}." if words else ""


def _memory(view: KernelView) -> Document:
    """Draw its memory with what moved between the parts; texts have the same as `How it runs`."""
    traffic = find_traffic(view.analysis.kernel)
    apart = not view.sums_up or view.analysis.launches == 1
    chart = memory_chart(view.analysis, traffic, apart=apart)
    return (Picture("memory", lambda: chart, tuple(memory_facts(traffic, has_hits=False))),) if chart else ()


def _course(view: KernelView) -> Document:
    """Draw what was sampled inside its run."""
    series = view.analysis.kernel.series
    if series is None:
        return ()

    def drawn() -> object:
        from rooflens.report.kernel.course import course  # noqa: PLC0415 - needs Altair, as only pages do

        return course(series, view.analysis)

    return (Picture("course", drawn),)


def _running(view: KernelView) -> Document:
    """List the measurements of warps, accesses and occupancy, so that a reader can check the judgement above."""
    kernel = view.analysis.kernel
    sections = (
        ("Warps", warp_facts(kernel)),
        ("Instructions", instruction_facts(kernel)),
        ("Memory", memory_facts(find_traffic(kernel))),
        ("Needed of what was moved", useful(view.analysis)),
        ("Occupancy", occupancy_facts(kernel)),
    )
    lines: list[Words] = [
        f"{name}: {plain('; '.join(known))}." for name, measured in sections if (known := tuple(measured))
    ]
    return (Heading("How it runs"), bullets(lines)) if lines else ()


def _more_tables(view: KernelView) -> Document:
    """Tabulate what texts say in a line: waits, opcodes, and the occupancy of other launches."""
    kernel = view.analysis.kernel
    curves = tuple(occupancy_curve(curve) for curve in occupancy_curves(kernel) if curve.better)
    return (
        *stalls(kernel.stalls),
        *opcodes(kernel.warp_opcodes, kernel.thread_opcodes),
        *((Picture("occupancy", lambda: curves),) if curves else ()),
    )


def _findings(view: KernelView) -> Document:
    """Say why it is slow, worst first, with the numbers and where they come from."""
    analysis = view.analysis
    asked = {move.finding for move in analysis.verdict.moves}
    items = tuple(
        Item(
            _finding_words(one, analysis.kernel.inside),
            () if one.id in asked else (f"{fmt.sentence_case(plain(one.move))}.",),
        )
        for one in costing(analysis)
    )
    numbers = () if items or shares(analysis) else evidence_lines(analysis)
    other = _type_words(analysis)
    parts = (
        *((Bullets(items, numbered=True),) if items else ()),
        *((bullets([*map(plain, numbers)]),) if numbers else ()),
        *((paragraph(plain(other)),) if other else ()),
    )
    return (Heading("Why"), *parts) if parts else ()


def _costs(view: KernelView) -> Document:
    """Tabulate what goes to each waste of the kernel's time, the most first; those of little cost are under `Minor`."""
    analysis = view.analysis
    time_ns = analysis.kernel.duration_ns
    known = [(one, one.cost) for one in costing(analysis) if one.cost is not None and one.cost.high >= LEAST_COST]
    known.sort(key=lambda pair: -pair[1].high)
    rows = tuple(
        (
            finding.title,
            fmt.percent(cost.high) if cost.high - cost.low < LEAST_COST else f"up to {fmt.percent(cost.high)}",
            fmt.percent(cost.low) if cost.low else "-",
            fmt.duration(cost.high * time_ns) if time_ns else "-",
            finding.confidence,
        )
        for finding, cost in known
    )
    names = ("of the time", "proven", f"time{_span_words(view)}", "sure")
    columns = (Column("waste", fit="prose", least=24), *(Column(name, right=True) for name in names))
    waits = sum(1 for _, cost in known if not cost.low)
    shared = paragraph("Unproven ones share the same waiting.") if waits > 1 else ()
    return (Heading("Where the time goes"), Table(columns, rows), *([shared] if shared else [])) if rows else ()


def _ruled_out(view: KernelView) -> Document:
    """Say in a line each which causes are ruled out, which cost little, and which the report cannot show."""
    analysis = view.analysis
    if analysis.kernel.failed:
        return ()
    claim = "Also true" if "one_side_only" in analysis.flags else "Minor"
    lines = (
        ("Not the cause", ruled_out(analysis)),
        (claim, [*_minor(analysis)]),
        ("Warps queue for what is busy", symptoms(analysis)),
        ("Not measured", not_measured(analysis)),
    )
    said: list[Words] = [plain(f"{name}: {'; '.join(parts)}.") for name, parts in lines if parts]
    return (Heading("Ruled out"), bullets(said)) if said else ()


def _minor(analysis: Analysis) -> Iterator[str]:
    """Yield the findings that cost little, each with its first number, and the number of others."""
    notes = (
        finding for finding in analysis.findings if finding.severity == "note" and not is_symptom(analysis, finding.id)
    )
    rest = [finding for finding in notes if finding.id != NVIDIA_RULE]  # the caveats name those
    for finding in rest[:NOTES_SHOWN]:
        number = shown(finding, analysis.kernel.inside).numbers[:1]
        yield f"{finding.title} ({number[0]})" if number else finding.title
    yield from minor_causes(analysis)
    if len(rest) > NOTES_SHOWN:
        yield f"{len(rest) - NOTES_SHOWN} more"


def _finding_words(finding: Finding, inside: Inside | None) -> Words:
    """Write a finding in full: title, gain, its numbers with their counters, and its places."""
    said = shown(finding, inside)
    gain = f", {said.gain}" if said.gain else ""
    numbers: list[Words] = [
        (plain(number), *((" (", code(source), ")") if source and not _follows(source, said.sources[at:]) else ()))
        for at, (number, source) in enumerate(zip(said.numbers, said.sources, strict=True), start=1)
    ]
    places: list[Words] = [(code(place.label), f" {plain(place.share)}") for place in said.places[:2]]
    where = ("; at ", *joined(", ", places)) if places else ()
    is_above = finding.cost is not None and finding.cost.high >= LEAST_COST  # in the table, with how sure it is
    sure = "" if is_above else f", {confidence_words(said.confidence, 'finding')}"
    about = (" (", code(said.id), f", {said.severity}{gain}{sure}): ")
    link = f"about-findings-{said.about}" if said.about else ""
    return strong(plain(said.name), link), *about, *joined("; ", numbers), *where, "."


def _follows(source: str, later: Sequence[str]) -> bool:
    """Return whether the next numbers name a source anyway: the same one, or both parts of a ratio."""
    return source in later[:1] or (" / " in source and {*source.split(" / ")} <= {*later})


def _moves(view: KernelView) -> Document:
    """List the moves, each with its gain alone and the counter that would confirm it."""
    analysis = view.analysis
    lines = tuple(_move(move, analysis, _span_words(view)) for move in analysis.verdict.moves)
    if not lines:
        return ()
    family = family_page(analysis.kernel.function_name)
    said = (
        f"After each: profile the same way, then `rooflens compare BEFORE AFTER --kernel {analysis.key}`.",
        f"What kernels of this family show when they are done: {named_page(family, TITLES)}" if family else "",
    )
    return Heading("What to try, in this order"), Moves(lines, view.options), paragraph(*said)


def _move(move: Move, analysis: Analysis, span: str) -> str:
    words = f"{plain(f'{move.text[:1].upper()}{move.text[1:]}')}."
    gain = gain_words(move.gain, analysis.kernel.duration_ns, span)
    if not gain and move.kind == "precision":
        gain = best_in_type(type_answer(analysis))
    gain = gain or fmt.sentence_case(why_no_gain(move, analysis))
    item = find_item("findings", move.finding) if move.finding else None
    confirm = plain(_SENTENCES.split(item.confirm)[0]) if item else ""
    spelt = f"{spelling_words(move.spelling)}." if move.spelling else ""
    return " ".join(filter(None, (words, f"{plain(gain)}." if gain else "", confirm, spelt)))


def _doubts(view: KernelView) -> Document:
    """List how the numbers were made, and what the report cannot show."""
    analysis = view.analysis
    missing = len(untold([analysis.kernel], traced=view.report.unprofiled is not None))
    inside = analysis.kernel.inside
    note = inside.note if inside else ""
    unknown = "What its warps wait for is known in part" if inside and inside.loops else "Its loops are not known"
    lines: list[Words] = [
        *map(_about_flag, notes(analysis)),
        *differences(analysis.kernel),
        *(
            [f"The report lacks the counters of {missing} of {len(RULES)} findings: {_LACKS} names them."]
            if missing
            else []
        ),
        *([plain(f"{unknown}: {note}.")] if note else []),
    ]
    return (Heading("Caveats"), bullets(lines)) if lines else ()


_LACKS = "`rooflens metrics --report REPORT`"
"""The command that names what a report lacks."""


def _origin(view: KernelView) -> Document:
    """Say which result of which report it is, and its whole name; a text has that only if its heading is shorter."""
    kernel = view.analysis.kernel
    full = fmt.plain_name(kernel.name).strip()
    cut: Words = ("Full name: ", code(fmt.cut_middle(full, _FULL_NAME_WIDTH)))
    named = () if full in {"", short_name(view.analysis.short_name)} else (Paragraph((cut,), "note"),)
    process = f"; process {kernel.process}" if kernel.process else ""
    other = f"On another GPU: `rooflens predict --from REPORT --kernel {view.analysis.key} --gpu h100-sxm`."
    lines: tuple[Words, ...] = (*_result_words(view), process), "" if kernel.failed else other
    below = Paragraph(tuple(line for line in lines if line), "note")
    return (OnPage((Paragraph((code(kernel.name),), "full-name"), below), named),)


def _result_words(view: KernelView) -> tuple[str | Span, ...]:
    analysis = view.analysis
    kernel, clock = analysis.kernel, analysis.kernel.counters.get("sm_clock_hz")
    machine = (
        kernel.gpu or "",
        f"CC {kernel.compute_capability}" if kernel.compute_capability else "",
        f"SM {fmt.si(clock, 'Hz')}" if clock else "",
    )
    return (
        f"Result {kernel.index} of ",
        code(file_of(view.report.run.source)),
        ", key ",
        code(analysis.key),
        f". {plain(', '.join(filter(None, machine)))}",
    )
