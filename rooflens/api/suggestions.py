"""What a name that an object lacks gives: what it means, or an error with suggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.errors import any_of, meant_names
from rooflens.meant import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Collection


_SHORTEST_WORD = 4
"""Letters of a word by which a name may be suggested: `to` and `per` say nothing."""


def meant_by(thing: object, name: str, names: Collection[str], also: str = "") -> Any:
    """Return what a name means that an object lacks, by the table of `rooflens.meant`.

    Args:
        thing: The object.
        name: The requested name.
        names: The existing names.
        also: Where the name exists instead, said in place of similar names.

    Raises:
        AttributeError: The table lacks it; the message suggests similar names.
    """
    kind = type(thing).__name__
    if (does := BY_NAME.get((kind, name))) is not None:
        return does(thing)
    near = () if also or name.startswith("_") else _like(name, dict.fromkeys(names))
    hints = [*([also] if also else []), *([f"did you mean {any_of(near)}?"] if near else [])]
    error = AttributeError(f"a {kind} has no `{name}`" + (f": {'; '.join(hints)}" if hints else ""))
    error.name, error.obj = (None, None) if hints else (name, thing)  # else Python adds a guess of its own
    raise error


def _like(name: str, names: Collection[str]) -> list[str]:
    """Return names like a name as a whole, else those that share a word with it."""
    words = (name, *(word for word in name.split("_") if len(word) >= _SHORTEST_WORD))
    return next((near for word in words if (near := meant_names(word, names))), [])


def public(kind: type) -> list[str]:
    """Return the public names of a class."""
    return [name for name in dir(kind) if not name.startswith("_")]
