"""What GPUs send one another on a timeline: collectives by size and group, their bandwidth, and what hides them.

Sizes and bus bandwidths are those of nccl-tests (NVIDIA/nccl-tests, doc/PERFORMANCE.md), so that they stand beside a
link's datasheet. A kernel of communication also waits until all its ranks have come: its time is transfer and waiting
together, and the shortest launch of equal ones says most about the link.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from copy import copy
from functools import lru_cache
from heapq import heappop, heappush
from math import prod
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.model.keys import bare_name, function_of
from rooflens.model.predict.communication import bus_factor, link_of
from rooflens.model.program.call import TYPES
from rooflens.model.program.timeline import CollectiveCall, KernelEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflens.model.program.launches import Launches
    from rooflens.model.program.timeline import Timeline
    from rooflens.model.roofline.datasheets import Datasheet, Link

WAITED = 1.5
"""Launches that take so many times the shortest equal one mostly wait for a rank that comes late."""

_NODE_GPUS = 8
"""GPUs that a machine's own links join where the timeline does not count them: an HGX board has as many."""

_LARGEST_BYTES = 1 << 50
_NUMBERS = re.compile(r"\d{1,9}")
_LETTERS = re.compile(r"[^a-z]")
_COLLECTIVE_NAMES = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "send-receive",
    "send": "send",
    "recv": "receive",
    "barrier": "barrier",
}
"""How a name in small letters begins -> the collective; `reduce` stands behind those that begin with it.

The names are those of PyTorch (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: `allreduce_coalesced`,
`_allgather_base`, `_reduce_scatter_base`, `all_to_allv`, `send`) and of NCCL's kernels (src/device/generate.py).
"""

SYNCHRONIZING = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier"})
"""Collectives that no rank leaves before all have come."""

_PAIRS = frozenset({"send", "receive"})
_NCCL_KERNEL = re.compile(
    r"nccl(?:Sym\w*?)?(?:Dev)?Kernel_(?P<what>[A-Za-z]+)"
    r"(?:_(?:Sum|Prod|Min|Max|MinMax|PreMulSum|SumPostDiv))?(?P<rest>(?:_[A-Za-z0-9]+)*)"
)
_ALGORITHMS = {
    "ring": "ring",
    "tree": "tree",
    "collnet": "CollNet",
    "nvls": "NVLS",
    "pat": "PAT",
}
_PROTOCOLS = ("LL128", "LL", "SIMPLE")


class CollectiveLaunches(Struct, frozen=True):
    """All launches of one collective by one group with one size.

    Attributes:
        name: The collective as nccl-tests call it: `all-reduce`; the kernel's function where nothing tells it.
        kernel: The kernel's function.
        group, description, ranks: The group, what it is for, and its ranks; None where the timeline does not say.
        gpus: Ranks of the group; None if unknown.
        are_gpus_assumed: The timeline does not give them, and all ranks of the program are taken.
        dtype: Type of the elements as PyTorch names it, in small letters; None if unknown.
        size_bytes: Size as nccl-tests count it: of an all-gather and a reduce-scatter the whole of all ranks, of all
            others the buffer of a rank; None if unknown.
        algorithm, protocol: What the kernel's name has; NCCL names a kernel by what it runs without a call, and any
            kernel of it may run any algorithm and protocol (NVIDIA/nccl, issues 739, 1595 and 2196).
        count: Launches.
        time_ns: The sum of their times.
        exposed_ns: The part of it in which no kernel ran on the GPU that does not communicate.
        median_ns, best_ns: The median launch, and the shortest.
        link: What joins the GPUs, as the datasheet has it; None if unknown, as beyond one machine.
    """

    name: str
    kernel: str
    group: str | None
    description: str | None
    ranks: str | None
    gpus: int | None
    are_gpus_assumed: bool
    dtype: str | None
    size_bytes: int | None
    algorithm: str | None
    protocol: str | None
    count: int
    time_ns: int
    exposed_ns: int
    median_ns: int
    best_ns: int
    link: Link | None = None

    @property
    def hidden_ns(self) -> int:
        """The part of the time in which other kernels ran."""
        return self.time_ns - self.exposed_ns

    @property
    def algorithm_bytes_per_s(self) -> float | None:
        """Size over time of the median launch: the algorithm bandwidth of nccl-tests."""
        return _rate(self.size_bytes, self.median_ns)

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Bus bandwidth of the median launch as nccl-tests define it, which stands beside the link's."""
        return self._bus(self.median_ns)

    @property
    def best_bus_bytes_per_s(self) -> float | None:
        """Bus bandwidth of the shortest launch, which waits least for other ranks."""
        return self._bus(self.best_ns)

    @property
    def link_bytes_per_s(self) -> float | None:
        """What the link can send while it receives as much."""
        return None if self.link is None else self.link.bytes_per_s_per_direction

    @property
    def link_name(self) -> str | None:
        """Its name: `NVLink 4`."""
        return None if self.link is None else self.link.name

    @property
    def is_waiting(self) -> bool:
        """Whether the median launch takes much longer than the shortest: it waits for a rank that comes late."""
        return self.median_ns >= WAITED * self.best_ns

    def _bus(self, time_ns: int) -> float | None:
        rate = _rate(self.size_bytes, time_ns)
        factor = None if self.gpus is None else bus_factor(self.name, self.gpus)
        return None if rate is None or factor is None else rate * factor


class Collectives(Struct, frozen=True):
    """The collectives of one group in the order in which they began, for the ranks to be set side by side.

    Attributes:
        group: What names the group on all its ranks.
        names: Each collective; those that some rank may leave before others come are left out.
        durations_ns: How long each took on this rank.
        idle_ns: How long the GPU was idle since the collective before, or since the first kernel.
        worked_ns: How long it worked since then, up to the begin of this one.
    """

    group: tuple[str | int | None, ...]
    names: tuple[str, ...]
    durations_ns: array[int]
    idle_ns: array[int]
    worked_ns: array[int]


class Communication(Struct, frozen=True):
    """Kernels that wait for other GPUs.

    Attributes:
        time_ns: The sum of their times.
        share: `exposed_ns` over the program's time; of a printed summary `time_ns` over that of all launches.
        exposed_ns: Time in which only such kernels ran on the GPU; None of a printed summary.
        collectives: By group and size, those with most exposed time first.
        sequences: The collectives of each group, in order; empty where several GPUs are on one timeline.
    """

    count: int
    time_ns: int
    share: float
    exposed_ns: int | None
    collectives: tuple[CollectiveLaunches, ...] = ()
    sequences: tuple[Collectives, ...] = ()

    @property
    def hidden_ns(self) -> int | None:
        """The rest of its time: other kernels ran beside it, or two of these kernels at once; None if unknown."""
        return None if self.exposed_ns is None else self.time_ns - self.exposed_ns


def collectives_of(several: Iterable[Communication | None]) -> tuple[CollectiveLaunches, ...]:
    """List the collectives of several ranks, those with most exposed time first; equal ones of equal groups are one.

    Ranks that make up a group of their own each, as those of tensor parallelism do, count as one group.
    """
    alike: defaultdict[tuple[str | int | None, ...], list[CollectiveLaunches]] = defaultdict(list)
    for communication in several:
        for one in communication.collectives if communication else ():
            alike[one.name, one.description or one.group, one.gpus, one.dtype, one.size_bytes].append(one)
    return _most_exposed(map(_added, alike.values()))


def _added(rows: list[CollectiveLaunches]) -> CollectiveLaunches:
    """Add up the launches of equal collectives; the median is that of the ranks' medians."""
    if len(rows) == 1:
        return rows[0]
    groups, ranks = ({getattr(one, name) for one in rows} for name in ("group", "ranks"))
    return replace(
        rows[0],
        group=groups.pop() if len(groups) == 1 else None,
        ranks=ranks.pop() if len(ranks) == 1 else None,
        count=sum(one.count for one in rows),
        time_ns=sum(one.time_ns for one in rows),
        exposed_ns=sum(one.exposed_ns for one in rows),
        median_ns=round(median(one.median_ns for one in rows)),
        best_ns=min(one.best_ns for one in rows),
    )


def _most_exposed(several: Iterable[CollectiveLaunches]) -> tuple[CollectiveLaunches, ...]:
    return tuple(sorted(several, key=lambda one: (-one.exposed_ns, -one.time_ns, one.name, one.size_bytes or 0)))


def _rate(size_bytes: int | None, time_ns: int) -> float | None:
    return size_bytes / time_ns * 1e9 if size_bytes and time_ns else None


@lru_cache(maxsize=4096)
def collective_of(text: str) -> str | None:
    """Name the collective that PyTorch or NCCL call so: `_allgather_base` -> `all-gather`; None if it is none."""
    letters = _LETTERS.sub("", text.lower().removeprefix("nccl:"))
    return next((name for begin, name in _COLLECTIVE_NAMES.items() if letters.startswith(begin)), None)


class _Named(NamedTuple):
    """What a kernel's own name says."""

    function: str
    collective: str | None
    algorithm: str | None
    protocol: str | None


@lru_cache(maxsize=4096)
def _read_kernel_name(kernel: str) -> _Named:
    """Read a kernel's name: `ncclDevKernel_AllReduce_Sum_f32_RING_LL`, `cross_device_reduce_1stage`."""
    function = function_of(bare_name(kernel))
    if (match := _NCCL_KERNEL.match(function)) is None:
        letters = _LETTERS.sub("", function.lower())
        is_reduce = "allreduce" in letters or letters.startswith("crossdevicereduce")
        return _Named(function, "all-reduce" if is_reduce else None, None, None)
    parts = match["rest"].split("_")
    algorithm = next((name for part in parts for word, name in _ALGORITHMS.items() if part.lower() == word), None)
    protocol = next((part.upper() for part in parts if part.upper() in _PROTOCOLS), None)
    return _Named(function, collective_of(match["what"]), algorithm, protocol)


class _Key(NamedTuple):
    name: str
    function: str
    group: str | None
    description: str | None
    ranks: str | None
    gpus: int | None
    are_gpus_assumed: bool
    dtype: str | None
    size_bytes: int | None


class _CollectiveRow:
    def __init__(self, key: _Key, named: _Named) -> None:
        self.key, self.named = key, named
        self.times_ns = array("q")
        self.hidden_ns = 0


class _Ran:
    """The time in which any of some launches ran; they come in the order of their starts."""

    def __init__(self) -> None:
        self.time_ns, self.end_ns = 0, 0

    def run(self, start_ns: int, end_ns: int) -> None:
        begin_ns = max(start_ns, self.end_ns) if self.time_ns else start_ns
        if end_ns > begin_ns:
            self.time_ns += end_ns - begin_ns
            self.end_ns = end_ns

    def until(self, moment_ns: int) -> int:
        """Return the time up to a moment, before which all launches have been added that began before it."""
        return self.time_ns - max(0, self.end_ns - moment_ns) if self.time_ns else 0


class _Device:
    """What runs on one GPU.

    Attributes:
        others: Kernels that do not wait for other GPUs.
        every: All kernels; None before the first that waits, while they are the same.
    """

    def __init__(self) -> None:
        self.others = _Ran()
        self.every: _Ran | None = None
        self.open: list[tuple[int, int, int, _CollectiveRow]] = []
        self.idle_ns = 0
        self.since_ns: int | None = None

    def close(self, until_ns: int | None) -> None:
        """Count what ran beside the communication that has ended by a moment; beside all of it without one."""
        while self.open and (until_ns is None or self.open[0][0] <= until_ns):
            end_ns, _, before_ns, row = heappop(self.open)
            row.hidden_ns += self.others.until(end_ns) - before_ns


class _CollectiveSequence:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.durations_ns, self.idle_ns, self.worked_ns = array("q"), array("q"), array("q")


class Collecting:
    """Collects what communicates on a timeline."""

    def __init__(self, timeline: Timeline, launches: Launches, waits: Sequence[bool], idle_ns: Sequence[int]) -> None:
        """Go through the launches of a timeline.

        Args:
            timeline: The timeline.
            launches: Its launches.
            waits: Whether each of the alike waits for other ranks.
            idle_ns: How long its GPU was idle before each launch.
        """
        self._world_size, self._node_gpus = timeline.world_size, timeline.node_gpus
        self._rows: dict[_Key, _CollectiveRow] = {}
        self._devices: defaultdict[int, _Device] = defaultdict(_Device)
        self._groups: dict[tuple[str | int | None, ...], _CollectiveSequence] = {}
        self._launches = 0
        if not any(waits):
            return
        rows = [
            self._row_of_launch(event) if is_waiting else None
            for event, is_waiting in zip(launches.alike, waits, strict=True)
        ]
        devices = [self._devices[device] for device, _ in launches.streams]
        for start_ns, time_ns, kind, lane, gap_ns in zip(
            launches.starts, launches.durations, launches.kinds, launches.lanes, idle_ns, strict=True
        ):
            self._take(devices[lane], (start_ns, start_ns + time_ns), rows[kind], gap_ns)

    def _take(self, device: _Device, span: tuple[int, int], row: _CollectiveRow | None, gap_ns: int) -> None:
        """Add a launch; its row is None if it does not wait for other ranks."""
        start_ns, end_ns = span
        if device.open:
            device.close(start_ns)
        device.idle_ns += gap_ns
        if device.since_ns is None:
            device.since_ns = start_ns
        if device.every is None and row is not None:
            device.every = copy(device.others)
        if device.every is not None:
            device.every.run(start_ns, end_ns)
        if row is None:
            device.others.run(start_ns, end_ns)
            return
        row.times_ns.append(end_ns - start_ns)
        self._launches += 1
        heappush(device.open, (end_ns, self._launches, device.others.until(start_ns), row))
        if row.key.name in SYNCHRONIZING:
            self._follow(row.key, span, device)

    def _follow(self, key: _Key, span: tuple[int, int], device: _Device) -> None:
        """Continue the sequence of a group."""
        start_ns, end_ns = span
        name = key.group, key.ranks, key.gpus
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _CollectiveSequence()
        since_ns = start_ns if device.since_ns is None else device.since_ns
        group.names.append(key.name)
        group.durations_ns.append(end_ns - start_ns)
        group.idle_ns.append(device.idle_ns)
        group.worked_ns.append(max(0, start_ns - since_ns - device.idle_ns))
        device.idle_ns = 0
        device.since_ns = max(since_ns, end_ns)

    def _row_of_launch(self, event: KernelEvent) -> _CollectiveRow:
        """Return the row of a launch."""
        named = _read_kernel_name(event.name)
        key = _key_of(event, named, self._world_size)
        return self._rows.get(key) or self._rows.setdefault(key, _CollectiveRow(key, named))

    def communication(self, wall_ns: int, gpu: Datasheet | None) -> Communication | None:
        """Sum up what communicates; None if nothing does.

        Args:
            wall_ns: The time of the program.
            gpu: Its GPU; None if unknown.
        """
        for device in self._devices.values():
            device.close(None)
        if not self._rows:
            return None
        exposed_ns = sum(
            device.every.time_ns - device.others.time_ns
            for device in self._devices.values()
            if device.every is not None
        )
        found = [
            _collective_launches(row, None if gpu is None else _link(row.key, gpu, self._node_gpus))
            for row in self._rows.values()
        ]
        return Communication(
            count=self._launches,
            time_ns=sum(sum(row.times_ns) for row in self._rows.values()),
            share=exposed_ns / wall_ns if wall_ns else 0.0,
            exposed_ns=exposed_ns,
            collectives=_most_exposed(found),
            sequences=tuple(self._sequences()) if len(self._devices) == 1 else (),
        )

    def _sequences(self) -> Iterable[Collectives]:
        for name, one in self._groups.items():
            yield Collectives(name, tuple(one.names), one.durations_ns, one.idle_ns, one.worked_ns)


def _key_of(event: KernelEvent, named: _Named, world_size: int | None) -> _Key:
    """Say what a launch communicates: by its call, else by its operator's first tensor, else by the kernel's name."""
    name, call = named.collective or named.function, event.collective
    if call is None:
        elements, dtype = _operand(event) if name == "all-reduce" else (None, None)
        call = CollectiveCall("", elements, elements, dtype)
    name = collective_of(call.name) or name
    dtype = None if call.dtype is None else call.dtype.lower().removeprefix("c10::")
    gpus = world_size if call.gpus is None else call.gpus
    return _Key(
        name,
        named.function,
        call.group,
        call.description,
        call.ranks,
        gpus,
        call.gpus is None,
        dtype,
        _operand_bytes(_elements(call, name, gpus), dtype),
    )


def _operand(event: KernelEvent) -> tuple[int | None, str | None]:
    """Return elements and type of an operator's first tensor: kernels without NCCL come of operators that name it."""
    operands = event.operands
    if operands is None or "reduce" not in (event.operator or "").lower():
        return None, None
    found = ((prod(dims), kind) for dims, kind in zip(operands.dims, operands.types, strict=True) if dims)
    elements, kind = next(found, (None, ""))
    return elements, kind.lower().removeprefix("c10::") or None


def _elements(call: CollectiveCall, name: str, gpus: int | None) -> int | None:
    """Count the elements of a collective's size: what a rank gives or gets, whichever is more.

    Where only what it gives is known, an all-gather of N ranks has N times as much; of a scatter it says nothing.
    """
    given, got = call.in_elements, call.out_elements
    if name == "barrier":
        return None
    if given is not None and got is not None:
        return max(given, got)
    if name in {"all-gather", "gather"}:
        return None if given is None or gpus is None else given * gpus
    return None if name == "scatter" else given


def _operand_bytes(elements: int | None, dtype: str | None) -> int | None:
    known = TYPES.get(dtype or "")
    size = elements * known[1] if elements is not None and known is not None else 0
    return size if 0 < size < _LARGEST_BYTES else None


def _link(key: _Key, gpu: Datasheet | None, node_gpus: int | None) -> Link | None:
    """Choose what joins the GPUs of a group; None where it may go beyond one machine, or nobody knows."""
    gpus = 2 if key.name in _PAIRS else key.gpus
    if gpu is None or gpus is None or not 2 <= gpus <= (node_gpus or _NODE_GPUS):
        return None
    if not _is_one_node(key.ranks, node_gpus or _NODE_GPUS):
        return None
    try:
        return link_of(gpu, gpus)
    except InputError:
        return None


def _is_one_node(ranks: str | None, node_gpus: int) -> bool:
    """Return whether ranks, which are numbered machine by machine, are all of one; True if nothing says otherwise."""
    if ranks is None:
        return True
    numbers = [int(number) for number in _NUMBERS.findall(ranks)]
    return len({number // node_gpus for number in numbers}) < 2


def _collective_launches(row: _CollectiveRow, link: Link | None) -> CollectiveLaunches:
    key, times_ns = row.key, row.times_ns
    time_ns = sum(times_ns)
    return CollectiveLaunches(
        name=key.name,
        kernel=key.function,
        group=key.group,
        description=key.description,
        ranks=key.ranks,
        gpus=key.gpus,
        are_gpus_assumed=key.are_gpus_assumed and key.gpus is not None,
        dtype=key.dtype,
        size_bytes=key.size_bytes,
        algorithm=row.named.algorithm,
        protocol=row.named.protocol,
        count=len(times_ns),
        time_ns=time_ns,
        exposed_ns=time_ns - row.hidden_ns,
        median_ns=round(median(times_ns)),
        best_ns=min(times_ns),
        link=link,
    )
