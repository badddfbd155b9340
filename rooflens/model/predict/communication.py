"""What GPUs must send one another to share an operation, over which link, and the formulas of collectives.

T_comms = bytes that must pass a GPU's link in one direction / its bandwidth; a GPU receives while it sends. The amounts
are what no algorithm can go below: in an all-reduce a GPU must give away its buffer and get the sums. What rings, trees
and switches that add up what passes through them (NVLink SHARP) send is in `Operation.algorithms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.rows import Operation, Sent, Sizes
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


def whole(amount: float, _: int) -> float:
    """Return what a GPU sends that gives all of its buffer to one other."""
    return amount


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


def algorithms_of(operation: Operation, size: float, gpus: int, path: Path) -> tuple[Taken, ...]:
    """List what the algorithms of libraries take for a collective, the least first."""
    found = []
    for name, sent in operation.algorithms.items():
        if name != SHARP or path.adds_up:
            time_s = sent(size, gpus) / path.bytes_per_s
            found.append(
                Taken(name, sent(size, gpus), time_s, (bus_factor(operation.name, gpus) or 0.0) * size / time_s)
            )
    return tuple(sorted(found, key=lambda one: one.time_s))


def _lacking_link(gpu: Datasheet, kind: LinkKind) -> str:
    """Say why a link cannot be used."""
    if kind in gpu.links:
        return f"its {LINK_NAMES[kind]} bridge joins {gpu.links[kind].joins} GPUs"
    return f"it has no {LINK_NAMES[kind]}" if kind in gpu.absent_links else f"its {LINK_NAMES[kind]} is not known"


SHARP = "SHARP"
"""The algorithm of switches that add up what passes through them."""

_BUS: Mapping[str, Sent] = MappingProxyType(
    {
        "all-reduce": ring_reduced,
        **dict.fromkeys(("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter"), exchanged),
        **dict.fromkeys(("broadcast", "reduce", "send", "receive"), whole),
    }
)
"""What a GPU without help must send in a collective."""


def bus_factor(collective: str, gpus: int) -> float | None:
    """Return bus bandwidth over size a second, as nccl-tests have it; None of what is no collective of theirs.

    Sizes are those of nccl-tests, too: of an all-gather and of a reduce-scatter the whole, of N GPUs together
    (doc/PERFORMANCE.md there; gather, scatter and sendrecv in src/gather.cu, src/scatter.cu, src/sendrecv.cu).
    """
    sent = _BUS.get(collective)
    return None if sent is None or gpus < 1 else sent(1.0, gpus)
