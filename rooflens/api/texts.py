"""Texts of several lines as Python shows them, and what to say of a name that an object lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.errors import any_of, meant_names
from rooflens.format import harmless

if TYPE_CHECKING:
    from collections.abc import Collection


class Text(str):
    """A text in Markdown: an interpreter shows its lines as they are, and a notebook as the Markdown that it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return harmless(str(self))

    def _repr_markdown_(self) -> str:
        return str(self)


def lacking(thing: object, name: str, known: Collection[str], also: str = "") -> AttributeError:
    """Make the error for a name that an object lacks, with what comes close.

    Args:
        thing: The object.
        name: What was asked for.
        known: What there is.
        also: What to say first of where it is.
    """
    near = () if name.startswith("_") else meant_names(name, known)
    hints = [*([also] if also else []), *([f"did you mean {any_of(near)}?"] if near else [])]
    error = AttributeError(f"a {type(thing).__name__} has no `{name}`" + (f": {'; '.join(hints)}" if hints else ""))
    error.name, error.obj = (None, None) if hints else (name, thing)  # else Python adds a guess of its own
    return error
