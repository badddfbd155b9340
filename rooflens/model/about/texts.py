"""What the page of a verdict or a flag says beside its one sentence: the parts of a page, in their order."""

from __future__ import annotations

from msgspec import Struct


class Text(Struct, frozen=True):
    """The parts of a page that no other record holds; each is one or more whole sentences.

    Attributes:
        meaning: What it says, and why it is so.
        counters: From `Counters:` on, what tells it.
        confirm: From `Confirm` on, how one makes sure.
        blind: From `It does not` on, what it leaves open.
        tries: What to try, in the order in which an expert does.
    """

    meaning: str
    counters: str
    confirm: str
    blind: str
    tries: tuple[str, ...]
