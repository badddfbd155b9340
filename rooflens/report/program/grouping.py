"""The rows of timelines by operator, module, kernel or shape: time, floor and what can be won, with their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rooflens.format import duration, percent
from rooflens.model.program.grouping import GroupedBy, GroupMember, RowGroup, grouped
from rooflens.model.program.ranks import Joined
from rooflens.report.document import SPARE, Column, Folded, OnPage, Span, Table, Words, code, few
from rooflens.report.program.words import cut, share_head

_KERNELS = 2
_GROUPS_ON_PAGE = 200

_TITLES: Mapping[GroupedBy, str] = {
    "operator": "By operator, most time first",
    "module": "By module, most time first",
    "kernel": "By kernel, most time first",
    "shape": "By operator and shape, most time first",
}
_UNKNOWN: Mapping[GroupedBy, str] = {
    "operator": "kernels without an operator",
    "module": "kernels without a module",
    "kernel": "",
    "shape": "kernels without an operator",
}


def groups_table(whole: Joined, by: GroupedBy, names: Mapping[str, str], top: int = 0) -> Table:
    """Set the groups of one or more timelines in a table.

    Args:
        whole: The timelines.
        by: What the rows of a group have in common.
        names: Short names of kernels.
        top: Groups that a terminal and Markdown show; 0 for all.
    """
    groups = grouped(whole.kernels, by)
    last = "operators" if by == "kernel" else "kernels"
    columns = (
        Column(by, fit="name", least=20, most=48),
        Column("time", right=True, worth=9),
        Column(share_head(whole), right=True, worth=8),
        Column("launches", right=True, worth=6),
        Column("floor", right=True, worth=8),
        Column("with floor", right=True, worth=SPARE + 1, about="time of the launches whose floor is known"),
        Column("to win", right=True, worth=9),
        Column(last, fit="end", least=20, worth=7),
    )
    rows = tuple(_group_row(group, by, names) for group in groups[:_GROUPS_ON_PAGE])
    return Table(columns, rows, _TITLES[by], shown=top, amount=len(groups), rest=" with less time")


def modules_on_page(whole: Joined, names: Mapping[str, str]) -> Iterator[OnPage]:
    """Fold the groups by module into a page, where there are any."""
    if any(of.module for one in whole.kernels for of in one.modules):
        yield OnPage((Folded("By module", (groups_table(whole, "module", names),)),))


def _group_row(group: RowGroup, by: GroupedBy, names: Mapping[str, str]) -> tuple[Words, ...]:
    name = None if group.name is None else cut(names.get(group.name, group.name))
    return (
        Span(_UNKNOWN[by], "dim") if name is None else code(name),
        duration(group.time_ns),
        "" if group.share is None else percent(group.share),
        f"{group.count:,}",
        duration(group.floor_ns),
        duration(group.floor_time_ns) if group.floor_ns is not None else "",
        "communication" if group.is_communication else duration(group.gain_ns),
        few(_insides(group.rows, by, names), _KERNELS),
    )


def _insides(rows: Sequence[GroupMember], by: GroupedBy, names: Mapping[str, str]) -> list[Words]:
    """Name what a group holds, each once: its kernels, or the operators of a kernel, with their times."""
    times: dict[str, int] = {}
    for one in rows:
        name = one.kernel.operator if by == "kernel" else names.get(one.kernel.name, one.kernel.name)
        if name:
            times[name] = times.get(name, 0) + one.time_ns
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return [(code(cut(name)), f" {duration(time_ns)}") for name, time_ns in ordered]
