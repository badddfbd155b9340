"""What timelines say of their communication: collectives by size and group beside the link, and ranks side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rooflens.format import MISSING, count, duration, factor, si
from rooflens.model.program.communication import CollectiveLaunches
from rooflens.model.program.ranks import Joined, Late
from rooflens.report.document import Block, Column, Paragraph, Span, Table, Words, code, paragraph
from rooflens.report.program.words import cut, file_name, heads_note

_COLLECTIVES_ON_PAGE = 200
"""Collectives that a page lists."""

_MOSTLY = 0.8
"""From this part on, lateness is that of the first collectives."""

_COLLECTIVE_COLUMNS = (
    Column("collective", fit="name", least=10, most=30),
    Column("size", right=True, worth=9),
    Column("type", worth=2),
    Column("GPUs", right=True, worth=6),
    Column("group", fit="end", least=8, worth=1, most=24),
    Column("launches", right=True, worth=4),
    Column("time", right=True, worth=7),
    Column("exposed", right=True, worth=9),
    Column("hidden", right=True, worth=3),
    Column("bus", right=True, worth=9),
    Column("best", right=True, worth=8),
    Column("link", right=True, worth=8),
)


def collective_words(collective: CollectiveLaunches) -> str:
    """Say what is sent and how fast: `all-to-all of 289 MB a call over 8 GPUs: 43.3 of 300 GB/s`."""
    size = f" of {si(collective.size_bytes, 'B')} a call" if collective.size_bytes else ""
    most = "at most " if collective.are_gpus_assumed else ""
    gpus = f" over {most}{count(collective.gpus, 'GPU')}" if collective.gpus else ""
    rate = collective.bus_bytes_per_s
    name = cut(collective.name)
    if rate is None:
        return f"{name}{size}{gpus}"
    return f"{name}{size}{gpus}: {_rate_of_link(si(rate, 'B/s'), collective.link_bytes_per_s)}"


def _rate_of_link(rate: str, link_bytes_per_s: float | None) -> str:
    """Write a rate and that of its link, the unit once where it is the same."""
    if link_bytes_per_s is None:
        return rate
    link = si(link_bytes_per_s, "B/s")
    number, _, unit = rate.partition(" ")
    return f"{number} of {link}" if link.endswith(f" {unit}") else f"{rate} of {link}"


def communication_blocks(whole: Joined, top: int) -> Iterator[Block]:
    """Say what is sent, by collective, group and size, how fast, and what of it nothing hides."""
    rows = whole.collectives
    if not rows:
        return
    found = [one.communication for one in whole.programs if one.communication]
    yield Table(
        _COLLECTIVE_COLUMNS,
        tuple(map(_collective_row, rows[:_COLLECTIVES_ON_PAGE])),
        "Communication, most exposed first",
        shown=top,
        amount=len(rows),
        rest=" with less exposed time",
    ).without_empty()
    time_ns, exposed_ns = sum(one.time_ns for one in found), sum(one.exposed_ns or 0 for one in found)
    lines: list[Words] = [f"{duration(exposed_ns)} of {duration(time_ns)} exposed."]
    waiting = next((one for one in rows if one.is_waiting and one.exposed_ns), None)
    if waiting is not None:
        name, _, _ = collective_words(waiting).partition(":")
        much = factor(waiting.median_ns / waiting.best_ns) if waiting.best_ns else "far"
        cause = "and so waits for a late rank" if len(whole.ranks) > 1 else "and so may wait for another rank"
        lines.append(f"{name}: the median launch takes {much} the shortest, {cause}.")
    yield paragraph(*lines)
    notes = [heads_note("size", "bus", "best", "link", "exposed")]
    if any(one.are_gpus_assumed for one in rows):
        notes.append("GPUs: the trace does not say how many take part, so all ranks are assumed to")
    yield Paragraph(tuple(notes), "note")


def _collective_row(collective: CollectiveLaunches) -> tuple[Words, ...]:
    return (
        code(cut(collective.name)) if collective.name == collective.kernel else collective.name,
        si(collective.size_bytes, "B") if collective.size_bytes else "",
        Span(cut(collective.dtype), "literal") if collective.dtype else "",
        "" if collective.gpus is None else f"{collective.gpus:,}",
        Span(cut(group), "literal") if (group := collective.description or collective.group) else "",
        f"{collective.count:,}",
        duration(collective.time_ns),
        duration(collective.exposed_ns),
        duration(collective.hidden_ns),
        si(collective.bus_bytes_per_s, "B/s") if collective.bus_bytes_per_s else "",
        si(collective.best_bus_bytes_per_s, "B/s") if collective.best_bus_bytes_per_s else "",
        si(collective.link_bytes_per_s, "B/s") if collective.link_bytes_per_s else "",
    )


def ranks_blocks(whole: Joined, names: Mapping[str, str]) -> Iterator[Block]:
    """Set several timelines side by side, and name the rank that the others wait for, with the reason."""
    if len(whole.programs) < 2:
        return
    columns = (
        Column("trace", fit="name", least=12, most=40),
        Column("rank", right=True, worth=6),
        Column("compute", right=True, worth=9),
        Column("idle", right=True, worth=8),
        Column("exposed", right=True, worth=7),
        Column("hidden", right=True, worth=5),
        Column("waits", right=True, worth=8),
        Column("late", right=True, worth=9),
        Column("to win", right=True, worth=4),
    )
    beside = {id(one.program): one for one in whole.ranks}
    order = [one.program for one in whole.ranks] or [*whole.programs]
    rows: list[tuple[Words, ...]] = []
    for program in order:
        own, sent = beside.get(id(program)), program.communication
        rows.append(
            (
                code(cut(file_name(program))),
                "" if program.rank is None else str(program.rank),
                duration(sum(one.time_ns for one in program.every if not one.is_communication)),
                duration(program.unprofiled.gap_ns),
                duration(sent.exposed_ns) if sent else "",
                duration(sent.hidden_ns) if sent else "",
                "" if own is None or own.waits_ns is None else duration(own.waits_ns),
                "" if own is None or own.late_ns is None else duration(own.late_ns),
                duration(program.gain_ns),
            )
        )
    yield Table(columns, tuple(rows), "Ranks" if whole.ranks else "", label="Traces").without_empty(MISSING)
    if whole.waited_for is not None:
        yield paragraph(*late_lines(whole.waited_for, whole, names))
    if any(one.compared for one in whole.ranks):
        aligned = "ranks are aligned by the ends of their collectives, so that their clocks do not matter"
        yield Paragraph((heads_note("compute", "waits", "late"), aligned), "note")
    elif any(one.exposed_ns for one in whole.ranks):
        yield Paragraph(("no collectives of these ranks agree in number and kind, so that none were compared",), "note")


def late_lines(late: Late, whole: Joined, names: Mapping[str, str]) -> Iterator[Words]:
    """Name the rank that the others wait for, how late it comes, and what holds it up."""
    rank, program = late.rank, late.rank.program
    who = (f"All wait for rank {program.rank}, ", code(cut(file_name(program))))
    if rank.late_ns is None:
        own_ns = program.communication.time_ns if program.communication else 0
        others = [
            one.program.communication.time_ns
            for one in whole.ranks
            if one.program is not program and one.program.communication
        ]
        least = f", the others for {duration(min(others))} or more" if others else ""
        yield (*who, f": it communicates for {duration(own_ns)}{least}.")
    else:
        yield (*who, f": it comes {duration(rank.late_ns)} late in all, over {count(rank.compared, 'collective')}.")
    if rank.compared > 1 and late.first_ns >= _MOSTLY * (rank.late_ns or 0):
        yield "Most of that is at the first one, to which a rank also comes late whose recording began late."
    if late.reason == "host":
        yield (f"Its GPU is idle for {duration(late.more_ns)} more before these: the host is late", *_in(late), ".")
    elif late.slower is not None:
        operator = late.operator
        yield (
            *((f"Its kernels take {duration(late.more_ns)} more before these: ",) if late.more_ns else ()),
            code(names[late.slower.name]),
            *((", of ", code(cut(operator)), ",") if operator else ()),
            f" takes {duration(late.time_ns)} there, {duration(late.usual_ns)} elsewhere.",
        )


def _in(late: Late) -> tuple[str | Span, ...]:
    """Name the host function that ran while the rank was late."""
    where = None if late.idle is None else late.idle.operator or late.idle.call or late.idle.nvtx_range
    return (", in ", code(cut(where))) if where else ()
