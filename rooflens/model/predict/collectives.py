"""Rows of the table for collectives: operations in which GPUs exchange data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.predict.communication import all_reduced, exchanged, gathered
from rooflens.model.predict.rows import Operation, Size

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflens.model.predict.formulas import Sizes

    Share = Callable[[float, int], float]

GPUS = Size("gpus", "GPUs that take part", 8, least=2)
ALL_REDUCED = "2 (N - 1) / N of"
EXCHANGED = "(N - 1) / N of"


def _collective(  # noqa: PLR0913, PLR0917 - one column each
    name: str, summary: str, buffer: str, words: tuple[str, str], sent: Share, moved: Share, *, pair: bool = False
) -> Operation:
    """Make the row of a collective.

    Args:
        name: Its name.
        summary: What it does.
        buffer: What the size `bytes` is the size of.
        words: What goes to and from DRAM, and what is sent.
        sent: Bytes that a GPU must send, as a function of that size and the number of GPUs.
        moved: Bytes that a GPU must read and write, as a function of the same.
        pair: Whether exactly two GPUs take part.
    """
    sizes = (Size("bytes", buffer),) if pair else (Size("bytes", buffer), GPUS)

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
    )


COLLECTIVES = (
    _collective(
        "all-reduce",
        "GPUs add up their buffers, and each gets the sums",
        "bytes of the buffer that each GPU has",
        ("buffer read, sums written", f"{ALL_REDUCED} the buffer"),
        all_reduced,
        lambda size, _: 2 * size,
    ),
    _collective(
        "all-gather",
        "each GPU gets the buffers of all, one after the other",
        "bytes of the whole, gathered",
        ("own part read, the parts of the others written", f"{EXCHANGED} the whole"),
        gathered,
        lambda size, _: size,
    ),
    _collective(
        "reduce-scatter",
        "GPUs add up their buffers, and each gets a part of the sums",
        "bytes of the whole buffer that each GPU has",
        ("buffer read, own part of the sums written", f"{EXCHANGED} the buffer"),
        gathered,
        lambda size, gpus: size + size / gpus,
    ),
    _collective(
        "all-to-all",
        "each GPU sends every other one a part of its buffer, as experts need",
        "bytes of the buffer that each GPU has",
        ("parts for others read, parts from others written", f"{EXCHANGED} the buffer"),
        exchanged,
        lambda size, gpus: 2 * exchanged(size, gpus),
    ),
    _collective(
        "broadcast",
        "each GPU gets the buffer of one",
        "bytes of the buffer",
        ("buffer read by the GPU that has it, written by every other one", "the buffer"),
        lambda size, _: size,
        lambda size, _: size,
    ),
    _collective(
        "send",
        "one GPU sends another its buffer",
        "bytes of the buffer",
        ("buffer read by one, written by the other", "the buffer"),
        lambda size, _: size,
        lambda size, _: size,
        pair=True,
    ),
)
