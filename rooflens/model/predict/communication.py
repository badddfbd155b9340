"""What GPUs that share an operation must send one another, and the link that carries it.

T_comms = bytes that a GPU must send / bandwidth of its link in one direction; a GPU receives while it sends. The
amounts are those of the ring and of the direct exchange, which no algorithm among the GPUs alone can go below. Switches
that add up what passes through them do an all-reduce with fewer bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.errors import InputError
from rooflens.model.roofline.datasheets import LINK_KINDS, LINK_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.predict.formulas import Sizes
    from rooflens.model.roofline.datasheets import Datasheet, Link, LinkKind

_SPLIT = {"heads": "query heads", "kv_heads": "key heads", "ffn": "columns of the feed-forward layer", "k": "k"}


class Uneven(Struct, frozen=True):
    """A size that GPUs cannot split evenly, so that together they do more than one GPU would.

    Attributes:
        what: What it counts: `query heads`.
        most: The part of the GPU that has most, which all the others wait for.
    """

    what: str
    amount: int
    gpus: int
    most: int

    @property
    def extra(self) -> float:
        """Work above that of one GPU if every one does as much as the busiest, as a share: 0.125."""
        return self.most * self.gpus / self.amount - 1


def uneven(s: Sizes) -> Iterator[Uneven]:
    """Find the sizes that `tensor_parallel` does not divide evenly; vocabularies are padded, and left out."""
    gpus = s.get("tensor_parallel", 1)
    for name, what in _SPLIT.items():
        if (amount := s.get(name, 0)) and amount % gpus:
            yield Uneven(what, amount, gpus, share_of(amount, gpus))


def share_of(amount: int, gpus: int) -> int:
    """Return the part of the busiest GPU where GPUs split an amount as evenly as they can."""
    return -(-amount // gpus)


def gathered(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-gather or a reduce-scatter: everything but its own part.

    In a ring every GPU passes each of the gpus - 1 other parts on once; each part is amount / gpus.
    """
    return (gpus - 1) * amount / gpus


def all_reduced(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-reduce: a reduce-scatter, then an all-gather of the sums."""
    return 2 * gathered(amount, gpus)


def exchanged(amount: float, gpus: int) -> float:
    """Return what a GPU sends in an all-to-all: each of the others' parts of what it has."""
    return (gpus - 1) * amount / gpus


def link_of(gpu: Datasheet, gpus: int, wanted: LinkKind | None = None) -> Link:
    """Choose the link between GPUs of one kind: NVLink where it joins so many, else PCIe.

    Args:
        gpu: Their datasheet.
        gpus: How many take part.
        wanted: The link to take; None for the fastest one.

    Raises:
        InputError: The GPU has no such link, it is not known, or it does not join so many.
    """
    kinds = (wanted,) if wanted else LINK_KINDS
    found = [gpu.links[kind] for kind in kinds if kind in gpu.links]
    if link := next((link for link in found if link.reaches(gpus)), None):
        return link
    told = " and ".join(_lacking(gpu, kind) for kind in kinds)
    raise InputError(f"`{gpu.name}`: {told}", "choose another link; `rooflens gpus NAME` lists those it has")


def _lacking(gpu: Datasheet, kind: LinkKind) -> str:
    """Say why a link cannot be taken."""
    if kind in gpu.links:
        return f"its {LINK_NAMES[kind]} bridge joins {gpu.links[kind].joins} GPUs"
    return f"it has no {LINK_NAMES[kind]}" if kind in gpu.absent_links else f"its {LINK_NAMES[kind]} is not known"
