"""Read all doubles of a kernel at once, where another kernel stored the same metrics in the same order.

The kernels of a report mostly do, and most metrics are one double each. A layout is learnt from one kernel; for every
other that has it, one comparison recognizes all doubles, and one call takes them out.
"""

from __future__ import annotations

from itertools import compress
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DOUBLE_BYTES = 8
ENCODED = -1
"""In place of a row index: the metric has instances or is long, and is added apart."""

_NOTHING, _ALL = b"\x00", b"\xff"

_MOST_ALIKE, _MOST_LEARNT = 8, 256
"""The most layouts kept for each number of metrics, and learnt from a report: a report has a handful."""


class Layout:
    """Which metrics of a kernel are one double, and the bytes around those.

    Args:
        entries: The encoded metrics of one kernel.
        starts: Where the double of each begins; None where it is not one double.
        names: Name of each metric; empty where it is not wanted.
        is_used: Whether a kernel record needs the metric of a name.

    Attributes:
        names: Names of the doubles.
        used: Which of the doubles a kernel record needs.
        used_names: Their names.
        other_names, others_used: The same for the other metrics.
    """

    def __init__(
        self,
        entries: Sequence[bytes],
        starts: Sequence[int | None],
        names: Sequence[str],
        is_used: Callable[[str], bool],
    ) -> None:
        around = [
            (entry[:start], entry[start + DOUBLE_BYTES :])
            for entry, start in zip(entries, starts, strict=True)
            if start is not None
        ]
        self._are_doubles = [start is not None for start in starts]
        self._are_others = [start is None for start in starts]
        self._lengths = [len(before) + DOUBLE_BYTES + len(after) for before, after in around]
        self._values = Struct("<" + "".join(f"{len(before)}xd{len(after)}x" for before, after in around))
        self._around = _number(b"".join(before + _NOTHING * DOUBLE_BYTES + after for before, after in around))
        self._mask = _number(
            b"".join(_ALL * len(before) + _NOTHING * DOUBLE_BYTES + _ALL * len(after) for before, after in around)
        )
        self.names = tuple(compress(names, self._are_doubles))
        self.used = [bool(name) and is_used(name) for name in self.names]
        self.used_names = tuple(compress(self.names, self.used))
        self.other_names = list(compress(names, self._are_others))
        self.others_used = [bool(name) and is_used(name) for name in self.other_names]

    def doubles(self, entries: Sequence[bytes]) -> tuple[float, ...] | None:
        """Return the doubles of a kernel with as many metrics; None where it has another layout."""
        plain = list(compress(entries, self._are_doubles))
        joined = b"".join(plain)
        if len(joined) != self._values.size or _number(joined) & self._mask != self._around:
            return None
        return self._values.unpack(joined) if list(map(len, plain)) == self._lengths else None

    def others(self, entries: Sequence[bytes]) -> list[bytes]:
        """Return the other metrics of a kernel."""
        return list(compress(entries, self._are_others))


class Layouts:
    """The layouts of one report."""

    def __init__(self) -> None:
        self._by_count: dict[int, list[Layout]] = {}
        self._learnt_count = 0

    def find(self, entries: Sequence[bytes]) -> tuple[Layout, tuple[float, ...]] | None:
        """Return the layout of a kernel, and its doubles; None where the layout is not known."""
        known = self._by_count.get(len(entries), [])
        for place, layout in enumerate(known):
            if (doubles := layout.doubles(entries)) is not None:
                if place:
                    known.insert(0, known.pop(place))
                return layout, doubles
        return None

    @property
    def may_learn(self) -> bool:
        """Whether more layouts are learnt: in a report whose kernels all differ they are of no use."""
        return self._learnt_count < _MOST_LEARNT

    def learn(
        self, entries: Sequence[bytes], found: Sequence[tuple[int | None, str]], is_used: Callable[[str], bool]
    ) -> None:
        """Learn the layout of a kernel, unless it stores a metric twice.

        Args:
            entries: The encoded metrics of the kernel.
            found: For each, where its double begins, None where it is not one double, and its name, as for `Layout`.
            is_used: Whether a kernel record needs the metric of a name.
        """
        self._learnt_count += 1
        names = [name for _, name in found]
        wanted = [name for name in names if name]
        if len(set(wanted)) < len(wanted):
            return
        known = self._by_count.setdefault(len(entries), [])
        known.insert(0, Layout(entries, [start for start, _ in found], names, is_used))
        del known[_MOST_ALIKE:]


def _number(joined: bytes) -> int:
    return int.from_bytes(joined, "little")
