"""Sum the rows of a program up by operator, module, kernel or shape; each group opens to its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from msgspec import Struct

from rooflens.model.program.kernels import ProgramKernel

GroupedBy = Literal["operator", "module", "kernel", "shape"]
GROUPED_BY: tuple[GroupedBy, ...] = get_args(GroupedBy)


class RowGroup(Struct, frozen=True):
    """Rows that have something in common.

    Attributes:
        name: What they have in common; None where that is unknown.
        count: Launches.
        time_ns: The sum of their times.
        share: As of a kernel; None if all of them wait for other GPUs.
        floor_ns: The sum of the known floors; None if none is known.
        floor_time_ns: The time of the launches that have a floor: all of `time_ns`, or a part of it.
        gain_ns: What can be won in those of which that is known; None if it is known of none.
        is_communication: All of them wait for other GPUs.
        rows: The rows, most time first; those of a module have a part of a row's launches and time.
    """

    name: str | None
    count: int
    time_ns: int
    share: float | None
    floor_ns: float | None
    floor_time_ns: int
    gain_ns: float | None
    is_communication: bool
    rows: tuple[GroupMember, ...]


class GroupMember(Struct, frozen=True):
    """A row of a program, or the part of it that is in a group.

    Attributes:
        kernel: The row.
        count, time_ns: Launches in the group, and their time.
    """

    kernel: ProgramKernel
    count: int
    time_ns: int

    @property
    def part(self) -> float:
        """The part of the row's time that is in the group."""
        return self.time_ns / self.kernel.time_ns if self.kernel.time_ns else 1.0


def grouped(kernels: Sequence[ProgramKernel], by: GroupedBy) -> tuple[RowGroup, ...]:
    """Sum rows up, most time first.

    Args:
        kernels: Rows of one or more programs.
        by: What the rows of a group have in common: the operator; the module, of which numbered ones of a kind are one;
            the name of the kernel; or operator and sizes of its tensors.
    """
    members: defaultdict[str | None, list[GroupMember]] = defaultdict(list)
    for one in kernels:
        for name, member in _members(one, by):
            members[name].append(member)
    groups = (_group(name, own) for name, own in members.items())
    return tuple(sorted(groups, key=lambda group: (-group.time_ns, group.name or "")))


def unknown_operators(kernels: Iterable[ProgramKernel]) -> tuple[RowGroup, ...]:
    """Sum up the operators without a known floor that do not wait for other GPUs, most time first."""
    return grouped([one for one in kernels if one.floor_ns is None and not one.is_communication], "operator")


def _members(kernel: ProgramKernel, by: GroupedBy) -> Iterator[tuple[str | None, GroupMember]]:
    if by == "module":
        for of in kernel.modules:
            yield of.module, GroupMember(kernel, of.count, of.time_ns)
        return
    names = {"operator": kernel.operator, "kernel": kernel.name, "shape": _operator_and_shape(kernel)}
    yield names[by], GroupMember(kernel, kernel.count, kernel.time_ns)


def _operator_and_shape(kernel: ProgramKernel) -> str | None:
    return None if kernel.operator is None else f"{kernel.operator} {kernel.shape}" if kernel.shape else kernel.operator


def _group(name: str | None, members: Sequence[GroupMember]) -> RowGroup:
    shares = [one.kernel.share * one.part for one in members if one.kernel.share is not None]
    floors = [one.kernel.floor_ns * one.part for one in members if one.kernel.floor_ns is not None]
    gains = [one.kernel.gain_ns * one.part for one in members if one.kernel.gain_ns is not None]
    return RowGroup(
        name=name,
        count=sum(one.count for one in members),
        time_ns=sum(one.time_ns for one in members),
        share=sum(shares) if shares else None,
        floor_ns=sum(floors) if floors else None,
        floor_time_ns=sum(one.time_ns for one in members if one.kernel.floor_ns is not None),
        gain_ns=sum(gains) if gains else None,
        is_communication=all(one.kernel.is_communication for one in members),
        rows=tuple(sorted(members, key=lambda one: -one.time_ns)),
    )
