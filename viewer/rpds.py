"""Stand in for `rpds`, which has no wheel for Pyodide: what `referencing` asks of it, on dict, frozenset and tuple."""

from __future__ import annotations

from typing import Any


class HashTrieMap(dict[Any, Any]):
    """A mapping that is never changed: each change returns another."""

    @classmethod
    def convert(cls, value: Any) -> HashTrieMap:
        """Make one of any mapping."""
        return value if isinstance(value, cls) else cls(value)

    def insert(self, key: Any, value: Any) -> HashTrieMap:
        """Return one that holds this value, too."""
        return HashTrieMap({**self, key: value})

    def update(self, other: Any) -> HashTrieMap:  # type: ignore[override]
        """Return one that holds those of the other, too."""
        return HashTrieMap({**self, **dict(other)})

    def remove(self, key: Any) -> HashTrieMap:
        """Return one without the key, which it must hold."""
        rest = dict(self)
        del rest[key]
        return HashTrieMap(rest)

    def __hash__(self) -> int:  # type: ignore[override]
        """Hash it by its keys."""
        return hash(frozenset(self))


class HashTrieSet(frozenset[Any]):
    """A set that is never changed."""

    __slots__ = ()

    def insert(self, value: Any) -> HashTrieSet:
        """Return one that holds this value, too."""
        return HashTrieSet(self | {value})

    def update(self, other: Any) -> HashTrieSet:
        """Return one that holds those of the other, too."""
        return HashTrieSet(self | frozenset(other))


class List(tuple[Any, ...]):
    """A list that is never changed."""

    __slots__ = ()

    def push_front(self, value: Any) -> List:
        """Return one that starts with this value."""
        return List((value, *self))
