"""What GPUs must send one another to share an operation, over which link, and the formulas of collectives.

T_comms = bytes that must pass a GPU's link in one direction / its bandwidth; a GPU receives while it sends. The amounts
are what no algorithm can go below: in an all-reduce a GPU must give away its buffer and get the sums. What rings, trees
and switches that add up what passes through them (NVLink SHARP) send is in `Collective`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.rows import Collective, Operation, Size, Sizes
from rooflens.model.roofline.datasheets import LINK_KINDS, LINK_NAMES, Datasheet, Link, LinkKind

PathKind = Literal[LinkKind, "network"]

_SPLIT = {"heads": "query heads", "kv_heads": "key heads", "ffn": "columns of the feed-forward layer", "k": "k"}


class Uneven(Struct, frozen=True):
    """A size that does not divide evenly among the GPUs: the busiest one sets the pace.

    Attributes:
        what: What it counts: `query heads`.
        most: The largest part of a GPU, which all others wait for.
    """

    what: str
    amount: int
    gpus: int
    most: int

    @property
    def extra(self) -> float:
        """Extra work if every GPU did as much as the busiest: 0.125 for an eighth more."""
        return self.most * self.gpus / self.amount - 1


def uneven(s: Sizes) -> Iterator[Uneven]:
    """Find sizes that `tensor_parallel` does not divide evenly. Vocabularies do not count, as they are padded."""
    gpus = s.get("tensor_parallel", 1)
    for name, what in _SPLIT.items():
        if (amount := s.get(name, 0)) and amount % gpus:
            yield Uneven(what, amount, gpus, share_of(amount, gpus))


def share_of(amount: int, gpus: int) -> int:
    """Return the busiest GPU's part of an amount, split as evenly as possible."""
    return -(-amount // gpus)


def exchanged(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-gather, a reduce-scatter or an all-to-all: everything but its own part.

    In a ring every GPU passes each of the gpus - 1 other parts on once; each part is amount / gpus.
    """
    return (gpus - 1) * amount / gpus


def all_reduced(amount: float, gpus: int) -> float:
    """Return what a GPU must send in an all-reduce: all that the sums of the others need, its whole buffer."""
    return amount if gpus > 1 else 0.0


def ring_reduced(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-reduce by a ring: a reduce-scatter, then an all-gather of the sums."""
    return 2 * exchanged(amount, gpus)


def tree_reduced(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-reduce by two trees, each for half: it is a leaf of one of them."""
    return 2 * amount if gpus > 2 else amount


def sharp_reduced(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-reduce by switches: all of its buffer to be added up, and its part of the sums.

    N + 1 parts of N, as NVIDIA counts them (github.com/NVIDIA/nccl-tests, pull request 239): the switch reads each part
    from all GPUs for the one that owns it, which writes the sum once, to all.
    """
    return amount * (gpus + 1) / gpus


def link_of(gpu: Datasheet, gpus: int, wanted: LinkKind | None = None) -> Link:
    """Choose the link between GPUs of one kind: NVLink where it joins so many, else PCIe.

    Args:
        gpu: Their datasheet.
        gpus: How many take part.
        wanted: The link to use; None for the fastest.

    Raises:
        InputError: The GPU has no such link, it is not known, or it does not join so many.
    """
    kinds = (wanted,) if wanted else LINK_KINDS
    found = [gpu.links[kind] for kind in kinds if kind in gpu.links]
    if link := next((link for link in found if link.reaches(gpus)), None):
        return link
    told = " and ".join(_lacking_link(gpu, kind) for kind in kinds)
    raise InputError(f"`{gpu.name}`: {told}", "choose another link; `rooflens gpus NAME` lists those it has")


class Path(Struct, frozen=True):
    """What GPUs send one another their data over.

    Attributes:
        kind: `nvlink`, `pcie`, or `network`, whose rate was given.
        bytes_per_s: What a GPU can send while it receives as much.
        adds_up: A switch on the way may add up what passes through it.
    """

    kind: PathKind
    bytes_per_s: float
    adds_up: bool = False


def path_of(gpu: Datasheet, gpus: int, wanted: LinkKind | None = None, network_gb_per_s: float | None = None) -> Path:
    """Choose what GPUs of one kind send their data over: a network of a given rate, else `link_of`.

    Raises:
        UsageError: Both a link and a network were asked for.
        InputError: As `link_of` does.
    """
    if network_gb_per_s is not None:
        if wanted:
            raise UsageError("a link and a network were given", "give one of `link` and `network_gb_per_s`")
        return Path("network", network_gb_per_s * 1e9)
    link = link_of(gpu, gpus, wanted)
    return Path(link.kind, link.bytes_per_s_per_direction, _may_add_up(link, gpus))


_ADDS_UP_FROM = 4
"""NVLink whose switches add up: those of the H100 are the first."""


def _may_add_up(link: Link, gpus: int) -> bool:
    return link.kind == "nvlink" and link.generation >= _ADDS_UP_FROM and link.joins is None and gpus > 2


class Taken(Struct, frozen=True):
    """What an algorithm of a library takes for a collective.

    Attributes:
        name: `ring`, `tree` or `SHARP`.
        bus_bytes_per_s: Its bus bandwidth, as nccl-tests have it.
    """

    name: str
    sent_bytes: float
    time_s: float
    bus_bytes_per_s: float


def algorithms_of(collective: Collective, size: float, gpus: int, path: Path) -> tuple[Taken, ...]:
    """List what the algorithms of libraries take, the least first."""
    found = []
    for name, sent in collective.algorithms.items():
        if name != SHARP or path.adds_up:
            time_s = sent(size, gpus) / path.bytes_per_s
            found.append(Taken(name, sent(size, gpus), time_s, collective.bus_factor(gpus) * size / time_s))
    return tuple(sorted(found, key=lambda one: one.time_s))


def _lacking_link(gpu: Datasheet, kind: LinkKind) -> str:
    """Say why a link cannot be used."""
    if kind in gpu.links:
        return f"its {LINK_NAMES[kind]} bridge joins {gpu.links[kind].joins} GPUs"
    return f"it has no {LINK_NAMES[kind]}" if kind in gpu.absent_links else f"its {LINK_NAMES[kind]} is not known"


SHARP = "SHARP"
"""The algorithm of switches that add up what passes through them."""

RING, DIRECT, TREE = "ring", "direct", "tree"
_GPUS = Size("gpus", "GPUs that take part", 8, least=2)
Share = Callable[[float, int], float]

ALL_REDUCED = "all of"
EXCHANGED = "(N - 1) / N of"


def _one_for_one(_: int) -> float:
    return 1.0


def _whole(size: float, _: int) -> float:
    return size


def _exchanged_share(gpus: int) -> float:
    return exchanged(1.0, gpus)


_EXCHANGE = Collective(_exchanged_share, MappingProxyType({RING: exchanged}))


def _collective(  # noqa: PLR0913, PLR0917 - one column each
    name: str,
    summary: str,
    buffer: str,
    words: tuple[str, str],
    sent: Share,
    moved: Share,
    collective: Collective,
    *,
    pair: bool = False,
) -> Operation:
    """Make a collective's row of the table of operations.

    Args:
        name: Its name.
        summary: What it does.
        buffer: What the size `bytes` is the size of.
        words: What goes to and from DRAM, and what is sent.
        sent: Bytes that a GPU must send, as a function of that size and the number of GPUs.
        moved: Bytes that a GPU must read and write, as a function of the same.
        collective: What algorithms send.
        pair: Whether exactly two GPUs take part.
    """
    sizes = (Size("bytes", buffer),) if pair else (Size("bytes", buffer), _GPUS)

    def group(s: Sizes) -> int:
        return 2 if pair else s["gpus"]

    return Operation(
        name,
        summary,
        "vector",
        sizes,
        "none counted: one addition for each element received hides behind its link",
        words[0],
        extra_bytes=lambda s: moved(s["bytes"], group(s)),
        group=group,
        sent_bytes=lambda s: sent(s["bytes"], group(s)),
        sent_source=words[1],
        collective=collective,
    )


COLLECTIVES = (
    _collective(
        "all-reduce",
        "GPUs add up their buffers, and each gets the sums",
        "bytes of the buffer that each GPU has",
        ("buffer read, sums written", "the whole buffer at least; 2 (N - 1) / N of it in a ring"),
        all_reduced,
        lambda size, _: 2 * size,
        Collective(
            lambda gpus: ring_reduced(1.0, gpus),
            MappingProxyType({RING: ring_reduced, TREE: tree_reduced, SHARP: sharp_reduced}),
        ),
    ),
    _collective(
        "all-gather",
        "each GPU gets the buffers of all, one after the other",
        "bytes of the whole, gathered",
        ("own part read, the parts of the others written", f"{EXCHANGED} the whole"),
        exchanged,
        lambda size, _: size,
        _EXCHANGE,
    ),
    _collective(
        "reduce-scatter",
        "GPUs add up their buffers, and each gets a part of the sums",
        "bytes of the whole buffer that each GPU has",
        ("buffer read, own part of the sums written", f"{EXCHANGED} the buffer"),
        exchanged,
        lambda size, gpus: size + size / gpus,
        _EXCHANGE,
    ),
    _collective(
        "all-to-all",
        "each GPU sends every other one a part of its buffer, as experts need",
        "bytes of the buffer that each GPU has",
        ("parts for others read, parts from others written", f"{EXCHANGED} the buffer"),
        exchanged,
        lambda size, gpus: 2 * exchanged(size, gpus),
        Collective(_exchanged_share, MappingProxyType({DIRECT: exchanged})),
    ),
    _collective(
        "broadcast",
        "each GPU gets the buffer of one",
        "bytes of the buffer",
        ("buffer read by the GPU that has it, written by every other one", "the buffer"),
        _whole,
        _whole,
        Collective(_one_for_one, MappingProxyType({RING: _whole})),
    ),
    _collective(
        "send",
        "one GPU sends another its buffer",
        "bytes of the buffer",
        ("buffer read by one, written by the other", "the buffer"),
        _whole,
        _whole,
        Collective(_one_for_one, MappingProxyType({DIRECT: _whole})),
        pair=True,
    ),
)


def bus_factor(collective: str, gpus: int) -> float | None:
    """Return bus bandwidth over size a second, as nccl-tests have it; None of what is no collective of theirs.

    Sizes are those of nccl-tests, too: of an all-gather and of a reduce-scatter the whole, of N GPUs together
    (doc/PERFORMANCE.md there; gather, scatter and sendrecv in src/gather.cu, src/scatter.cu, src/sendrecv.cu).
    """
    factor = _BUS_FACTORS.get(collective)
    return None if factor is None or gpus < 1 else factor(gpus)


_BUS_FACTORS: Mapping[str, Callable[[int], float]] = MappingProxyType(
    {
        **{row.name: row.collective.bus_factor for row in COLLECTIVES if row.collective is not None},
        "reduce": _one_for_one,
        "gather": _exchanged_share,
        "scatter": _exchanged_share,
        "receive": _one_for_one,
    }
)
