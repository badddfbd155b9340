"""Explain a kernel: what limits it, why, where, what to try in which order, and how to confirm it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rooflens import format as fmt
from rooflens.model.findings.find import RULES
from rooflens.model.hotspots import leading_part, leading_stall, places
from rooflens.model.knowledge.items import find_item
from rooflens.model.needs import untold
from rooflens.model.predict.other_gpu import type_answer
from rooflens.model.records import LEVELS, Analysis, AnalyzedReport, Finding, Hotspot, Kernel, Move, ratio
from rooflens.model.roofline.levels import shares_of
from rooflens.model.roofline.occupancy import block_smem_bytes
from rooflens.model.roofline.provenance import level_sources, pipe_sources
from rooflens.model.roofline.traffic import find_traffic
from rooflens.model.summary import cautions, notes, total_ns_of
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.model.verdict.sentences import (
    at_full_clock,
    best_gain_words,
    gain_words,
    level_share_words,
    limit_factor_words,
    resource_label,
    today_words,
    unmeasured_words,
    without_move,
)
from rooflens.report.document import (
    Bullets,
    Column,
    Document,
    Heading,
    Item,
    Paragraph,
    Table,
    Words,
    bullets,
    code,
    facts,
    joined,
    paragraph,
    strong,
)
from rooflens.report.text.digest.kernel import LEAST_SHARE, file_of, plain, shares, short_name
from rooflens.report.words.findings import code_of, confidence_words, costing, shown
from rooflens.report.words.how_it_runs import (
    does_line,
    instruction_facts,
    memory_facts,
    occupancy_facts,
    spelling_words,
    warp_facts,
)
from rooflens.report.words.inside import (
    body_words,
    class_words,
    depth,
    inside_line,
    loop_label,
    loop_rate,
    number,
    shown_loops,
    wait_words,
    work_unit,
)
from rooflens.report.words.labels import UNITS, flag_label, place_label, stall_label
from rooflens.report.words.program import in_program_lines
from rooflens.report.words.ruled_out import hardly_one, is_symptom, not_measured, ruled_out, symptoms
from rooflens.report.words.worth import best_in_type, worth_words
from rooflens.report.writers.markdown import to_markdown

PIPES_SHOWN = 4
LINES_SHOWN = 5
NOTES_SHOWN = 4
LEAST_COST = 0.02
"""Of the time: less is within what runs differ by."""
RULES_SHOWN = 3

_NAME_WIDTH = 200
_LEAST_HOT = 0.01
_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")


def explain_document(report: AnalyzedReport, analysis: Analysis) -> Document:
    """Explain a kernel, with the counters behind each statement.

    Args:
        report: Its report, for its share of the time.
        analysis: The launch.
    """
    return tuple(block for section in _SECTIONS for block in section(report, analysis))


def explain(report: AnalyzedReport, analysis: Analysis) -> str:
    """Write `explain_document` as Markdown."""
    return f"{to_markdown(explain_document(report, analysis))}\n"


def _head(report: AnalyzedReport, analysis: Analysis) -> Document:
    kernel = analysis.kernel
    clock = kernel.counters.get("sm_clock_hz")
    machine = (
        kernel.gpu or "",
        f"CC {kernel.compute_capability}" if kernel.compute_capability else "",
        f"SM {fmt.si(clock, 'Hz')}" if clock else "",
    )
    return (
        Heading(code(short_name(analysis.short_name)), 1),
        facts(
            (
                f"Result {kernel.index} of ",
                code(file_of(report.run.source)),
                ", key ",
                code(analysis.key),
                f". {plain(', '.join(filter(None, machine)))}",
            ),
            plain(_time(report, analysis)),
            *(plain(f"{line[:1].upper()}{line[1:]}") for line in in_program_lines(analysis)),
            _launch(analysis),
            plain(f"does: {does}") if (does := does_line(analysis.verdict.does)) else "",
            (strong("Synthetic data"), ": written by a generator, not recorded on a GPU.") if kernel.synthetic else "",
        ),
    )


def _time(report: AnalyzedReport, analysis: Analysis) -> str:
    """Give its time, and the share of the report's GPU time that all launches of this name take."""
    alike = [one for one in report.analyses if one.kernel.name == analysis.kernel.name and not one.kernel.failed]
    total_ns, all_ns = total_ns_of(report.analyses), total_ns_of(alike)
    launches = sum(one.launches for one in alike)
    share = f"{fmt.percent(all_ns / total_ns)} of the report's GPU time" if total_ns else "share of GPU time not known"
    if analysis.in_program is not None and analysis.in_program.total_ns is not None:
        return f"{fmt.duration(all_ns)} in the program, {share}"
    if launches > 1 and analysis.in_program is None:
        return (
            f"{fmt.duration(analysis.kernel.duration_ns)} this launch, {fmt.duration(all_ns)} in {launches:,}: {share}"
        )
    return f"{fmt.duration(analysis.kernel.duration_ns)}, {share}"


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


def _verdict(_: AnalyzedReport, analysis: Analysis) -> Document:
    verdict, limit = analysis.verdict, analysis.verdict.limit
    gain = best_gain_words(verdict, analysis.kernel.duration_ns)
    which = f"move {verdict.moves.index(verdict.best) + 1}" if verdict.best in verdict.moves[1:] else "first move"
    words = ", ".join(filter(None, (f"{which}: {gain}" if gain else "", limit_factor_words(verdict))))
    what = "the floor is" if limit.proven else f"{limit.by} alone takes"
    clock = f" {said}" if (said := at_full_clock(analysis)) else ""
    floor = f"; {what} {fmt.duration(limit.floor_ns)}{clock}" if limit.floor_ns else ""
    floor += f"; {today}" if (today := today_words(verdict, analysis.kernel.gpu)) else ""
    return (
        paragraph(
            (strong(plain(without_move(verdict))), f" {fmt.sentence_case(confidence_words(verdict.confidence))}."),
            plain(f"{words[:1].upper()}{words[1:]}{floor}.") if words else "",
            plain(f"No limit: the report lacks {limit.missing}.")
            if limit.missing and not analysis.kernel.failed
            else "",
            plain(_type_words(analysis)),
        ),
    )


def _type_words(analysis: Analysis) -> str:
    """Say whether fp16, or fp32 for fp64, is worth it, as `predict --from --dtype` does; empty without an answer."""
    answer = type_answer(analysis)
    words = worth_words(answer) if answer else ""
    return f"{words}." if words else ""


def _units(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Tabulate the busy units, each with its rate, its peak and the stored metrics that both came from.

    A measured level that did next to nothing is named, since it would seem unmeasured otherwise.
    """
    # What the verdict is based on, if the report has only NVIDIA's per cent of its side.
    measured = {None, *shares_of(analysis.levels, analysis.pipes)}
    stated = [side for side in analysis.verdict.sides if side.resource not in measured]
    rows = (
        *(_stated(analysis, side.resource or "", side.share) for side in stated),
        *(_unit(analysis, name, share) for name, share in shares(analysis, PIPES_SHOWN)),
    )
    numbers = (Column(heading, right=True) for heading in ("share", "rate", "peak"))
    columns = (Column("unit", fit="name"), *numbers, Column("counters", fit="prose", least=56))
    levels = ((name, level.share) for name, level in analysis.levels.items())
    idle = [
        resource_label(name, analysis.kernel.gpu) for name, share in levels if share is not None and share < LEAST_SHARE
    ]
    parts = [Table(columns, rows)] if rows else []
    few = [paragraph(f"Measured, and below {fmt.percent(LEAST_SHARE)}: {', '.join(idle)}.")] if idle else []
    return (Heading("How busy each unit is"), *parts, *few) if parts or few else ()


def _running(_: AnalyzedReport, analysis: Analysis) -> Document:
    """List the measurements of warps, accesses and occupancy, so that a reader can check the judgement above."""
    kernel = analysis.kernel
    sections = (
        ("Warps", warp_facts(kernel)),
        ("Instructions", instruction_facts(kernel)),
        ("Memory", memory_facts(find_traffic(kernel))),
        ("Occupancy", occupancy_facts(kernel)),
    )
    lines: list[Words] = [
        f"{name}: {plain('; '.join(known))}." for name, measured in sections if (known := tuple(measured))
    ]
    return (Heading("How it runs"), bullets(lines)) if lines else ()


def _label(analysis: Analysis, name: str) -> str:
    return resource_label(name, analysis.kernel.gpu)


def _stated(analysis: Analysis, name: str, share: float) -> tuple[Words, ...]:
    level = analysis.levels.get(name)
    rate = fmt.si(level.bytes_per_s if level else None, "B/s")
    source = "its bytes over the highest peak known" if name == "dram" else "NVIDIA's per cent of its side"
    return _label(analysis, name), plain(fmt.percent(share)), rate, fmt.MISSING, source


def _unit(analysis: Analysis, name: str, share: float) -> tuple[Words, ...]:
    label, said = _label(analysis, name), fmt.percent(share)
    if name in LEVELS:
        level, sources = analysis.levels[name], level_sources(analysis, name)
        said = level_share_words(level)
        rate, peak = fmt.si(level.bytes_per_s, "B/s"), fmt.si(level.peak_bytes_per_s, "B/s")
    else:
        pipe, sources = analysis.pipes[name], pipe_sources(analysis, name)
        rate, peak = (
            fmt.si(value, f"{UNITS.get(pipe.unit, pipe.unit)}/s") for value in (pipe.amount_per_s, pipe.peak_per_s)
        )
    source = "; ".join(dict.fromkeys(part for part in (sources.amount, sources.peak, sources.share) if part))
    return label, plain(said), rate, peak, code(source) if source else fmt.MISSING


def _findings(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Say why it is slow, worst first, with the numbers and where they come from."""
    items = tuple(Item(_finding(finding)) for finding in costing(analysis))
    return (Heading("Why"), Bullets(items, numbered=True)) if items else ()


def _costs(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Tabulate what goes to each waste of the kernel's time, the most first; those of little cost are under `Minor`."""
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
    names = ("of the time", "proven", "time", "sure")
    columns = (Column("waste", fit="prose", least=24), *(Column(name, right=True) for name in names))
    waits = sum(1 for _, cost in known if not cost.low)
    shared = paragraph("Unproven ones share the same waiting.") if waits > 1 else ()
    return (Heading("Where the time goes"), Table(columns, rows), *([shared] if shared else [])) if rows else ()


def _ruled_out(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Say in a line each which causes are ruled out, which cost little, and which the report cannot show."""
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
        number = shown(finding).numbers[:1]
        yield f"{finding.title} ({number[0]})" if number else finding.title
    yield from hardly_one(analysis)
    if len(rest) > NOTES_SHOWN:
        yield f"{len(rest) - NOTES_SHOWN} more"


def _finding(finding: Finding) -> Words:
    """Write a finding in full: title, gain, its numbers with their counters, and its places."""
    said = shown(finding)
    gain = f", {said.gain}" if said.gain else ""
    numbers: list[Words] = [
        (plain(number), *((" (", code(source), ")") if source and not _follows(source, said.sources[at:]) else ()))
        for at, (number, source) in enumerate(zip(said.numbers, said.sources, strict=True), start=1)
    ]
    places: list[Words] = [(code(place.label), f" {plain(place.share)}") for place in said.places[:2]]
    where = ("; at ", *joined(", ", places)) if places else ()
    is_above = finding.cost is not None and finding.cost.high >= LEAST_COST  # in the table, with how sure it is
    sure = "" if is_above else f", {confidence_words(said.confidence)}"
    about = (" (", code(said.id), f", {said.severity}{gain}{sure}): ")
    return strong(plain(said.name)), *about, *joined("; ", numbers), *where, "."


def _follows(source: str, later: Sequence[str]) -> bool:
    """Return whether the next numbers name a source anyway: the same one, or both parts of a ratio."""
    return source in later[:1] or (" / " in source and {*source.split(" / ")} <= {*later})


_NOT_SAMPLED: Words = (
    "Not sampled: ",
    code("ncu --set full"),
    " or ",
    code("rooflens profile --detail deep"),
    " tells the line.",
)


def _lines(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Tabulate where its warps wait; without samples, say so."""
    if not analysis.kernel.failed and not analysis.kernel.code_totals.get("samples"):
        return Heading("Where"), paragraph(_NOT_SAMPLED)
    hot = [place for place in places(analysis.kernel, "samples", LINES_SHOWN) if place.share >= _LEAST_HOT]
    return (Heading("Where"), hot_table(analysis.kernel, [place.hotspot for place in hot])) if hot else ()


def hot_table(kernel: Kernel, hotspots: Iterable[Hotspot]) -> Table:
    """Tabulate hot spots: their shares of the kernel's samples, what warps wait for there, place and code."""
    total = kernel.code_totals.get("samples")
    columns = (
        Column("samples", right=True, worth=9),
        Column("waits for", fit="wrap", worth=4, least=20),
        Column("place", fit="name", worth=8, least=24),
        Column("code", fit="end", worth=7, least=24),
    )
    hotspots = tuple(hotspots)
    has_code = any(map(code_of, hotspots))
    rows = (
        (
            plain(fmt.percent(ratio(spot.measures.get("samples"), total))),
            _waits(kernel, spot),
            code(place_label(spot, kernel.inside)),
            *((code(code_of(spot)),) if has_code else ()),
        )
        for spot in hotspots
    )
    return Table(columns if has_code else columns[:-1], tuple(rows))


def _waits(kernel: Kernel, hotspot: Hotspot) -> str:
    reason, part = leading_stall(hotspot), leading_part(hotspot)
    leading = f"{stall_label(reason)}, {fmt.percent(part)}" if reason and part else ""
    words = "; ".join(filter(None, (leading, wait_words(kernel.inside, hotspot))))
    return plain(words) if words else fmt.MISSING


def _loops(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Tabulate its loops: how often they run, their share of the warps' time, and what limits each."""
    rows = shown_loops(analysis.loops)
    if not rows:
        return ()
    columns = (
        Column("loop", fit="name", worth=9, least=20),
        Column("time", right=True, worth=9),
        Column("trips", right=True, worth=5),
        Column("does", worth=8),
        Column("rate", right=True, worth=6),
        Column("AI at L2", right=True, worth=3),
        Column("limited by", fit="wrap", worth=7, least=20),
        Column("a trip", fit="prose", worth=4, least=40),
    )
    cells = (
        (
            code(f"{'. ' * depth(one, analysis.loops)}{loop_label(one)}"),
            plain(fmt.percent(one.share if one.loop.kind == "loop" else one.share_self)),
            number(one.loop.trips) if one.loop.trips is not None else "",
            plain(one.job),
            loop_rate(one),
            fmt.intensity(one.intensity, work_unit(one)) if one.intensity else "",
            plain(class_words(one, analysis.kernel.gpu)),
            plain(body_words(one)),
        )
        for one in rows
    )
    line = inside_line(analysis)
    said = f"{line[:1].upper()}{line[1:]}. " if line else ""
    return (
        Heading("Loops"),
        paragraph(plain(f"{said}Parts are of warps' time, by samples: not of the clock's.")),
        Table(columns, tuple(cells)),
    )


def _moves(_: AnalyzedReport, analysis: Analysis) -> Document:
    """List the moves, each with its gain alone and the counter that would confirm it."""
    moves = tuple(
        Item(_move(move, analysis), (spelling_words(move.spelling),) if move.spelling else ())
        for move in analysis.verdict.moves
    )
    if not moves:
        return ()
    again = f"After each: profile the same way, then `rooflens compare BEFORE AFTER --kernel {analysis.key}`."
    return Heading("What to try, in this order"), Bullets(moves, numbered=True), paragraph(again)


def _move(move: Move, analysis: Analysis) -> str:
    words = f"{plain(f'{move.text[:1].upper()}{move.text[1:]}')}."
    gain = gain_words(move.gain, analysis.kernel.duration_ns)
    if not gain and move.kind == "precision":
        gain = best_in_type(type_answer(analysis))
    gain = gain or _why_unknown(move, analysis)
    item = find_item("findings", move.finding) if move.finding else None
    confirm = plain(_SENTENCES.split(item.confirm)[0]) if item else ""
    return " ".join(filter(None, (words, f"{plain(gain)}." if gain else "", confirm)))


def _why_unknown(move: Move, analysis: Analysis) -> str:
    """Say why a move has no figure; empty for a move that requests counters."""
    if move.kind == "collect":
        return ""
    if analysis.verdict.or_bound:
        return f"Gain not known: {unmeasured_words(analysis.verdict.unmeasured)}"
    if any(one.confidence == "low" for one in analysis.findings if one.id == move.finding):
        return "Gain not known: the counters only hint at it"
    if move.finding is None or move.kind == "algorithm":
        return "Gain not known: it depends on the algorithm"
    if move.kind == "blocks":
        return "Gain not known: it depends on how much of the work is independent"
    return "Gain not known: no counter says how much time it takes"


def _doubts(report: AnalyzedReport, analysis: Analysis) -> Document:
    """List caveats: what distorts numbers, what the report cannot show, and estimates of NVIDIA's rules."""
    rules = sorted(
        (rule for rule in analysis.kernel.rules if rule.speedup_pct), key=lambda rule: -(rule.speedup_pct or 0.0)
    )
    said = ", ".join(
        f"{plain(rule.title or rule.identifier)} {fmt.percent((rule.speedup_pct or 0.0) / 100)}"
        for rule in rules[:RULES_SHOWN]
    )
    missing = len(untold([analysis.kernel], traced=report.unprofiled is not None))
    inside = analysis.kernel.inside
    note = inside.note if inside else ""
    unknown = "What its warps wait for is known in part" if inside and inside.loops else "Its loops are not known"
    lines: list[Words] = [
        *(plain(flag_label(flag)) for flag in (*cautions(analysis), *notes(analysis))),
        *(
            [f"{missing} of {len(RULES)} findings need counters that this report lacks: {_LACKS} names them."]
            if missing
            else []
        ),
        *([plain(f"{unknown}: {note}.")] if note else []),
        *([f"NVIDIA's rules estimate (time it would save): {said}."] if said else []),
    ]
    return (Heading("Caveats"), bullets(lines)) if lines else ()


_LACKS = "`rooflens metrics --report REPORT`"
"""The command that names what a report lacks."""


def _full_name(_: AnalyzedReport, analysis: Analysis) -> Document:
    """Give the whole name if the heading has a shorter one."""
    full = fmt.plain_name(analysis.kernel.name).strip()
    is_said = full in {"", short_name(analysis.short_name)}
    return () if is_said else (Paragraph((("Full name: ", code(fmt.cut_middle(full, _NAME_WIDTH))),), "note"),)


_SECTIONS = (
    _head,
    _verdict,
    _moves,
    _ruled_out,
    _loops,
    _lines,
    _costs,
    _findings,
    _doubts,
    _running,
    _units,
    _full_name,
)
"""What an explanation holds, from top to bottom: what to do first, and the counters behind it last."""
