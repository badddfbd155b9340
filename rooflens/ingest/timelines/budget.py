"""Limits on reading a timeline: far above any real timeline of its size, and seconds at most.

Timelines come from strangers. A few kilobytes may name an endless table, nest a thousand ranges around a thousand
launches, or unpack to a million kernels. Work and memory grow only with the amounts counted here.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from rooflens.errors import InputError
from rooflens.format import count, notes_of_cut_names
from rooflens.ingest.reports.limits import DEADLINE, deadline_s
from rooflens.ingest.reports.unpacking import likely_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Most(NamedTuple):
    """A limit that grows with the file: a fixed allowance, plus some for each byte."""

    base: int
    per_byte: float


KEPT = "kernels, launches, copies and ranges"
NAME_CHARACTERS = "characters of different names"
PATH_CHARACTERS = "characters of different paths of ranges"

MOST = {
    KEPT: Most(1 << 20, 0.1),  # 0.013 a byte unpacked, 0.4 kB of memory each
    NAME_CHARACTERS: Most(1 << 25, 1),  # 0.2 a byte
    PATH_CHARACTERS: Most(1 << 25, 1),  # 0.1 a byte
}
"""What is counted -> its limit for a file. Comments: what real timelines have, per byte (estimated, unpacked)."""

SECONDS, SECONDS_PER_BYTE = 4.0, 1e-6
"""Limit on processor time; real timelines take 0.1 to 0.2 us per byte."""

READING = 0.8
"""Part of the work on a trace that is reading it; the rest is finding what launched its kernels."""

RANGE_DEPTH, PATH_LENGTH = 128, 16_384
"""Most nested ranges in a path, and most characters; ranges further inside are left out."""

_TOO_SLOW_HINT = f"record it again, shorter; or, if you trust the file, {DEADLINE}=SECONDS gives it longer"
_SIZE_HINT = "export or record it again, shorter"


class TooMuchError(InputError):
    """The timeline has more to read than any real timeline of its size."""


class TimelineBudget:
    """How much of a timeline may still be read, and what was cut or left out on the way.

    Args:
        file: The timeline, whose size sets the limits.
        source: Its name in messages.
        on_read: Called with parts of the work as they are done, which add up to 1 at most.
    """

    def __init__(self, file: Path, source: str, on_read: Callable[[float], None] = lambda _: None) -> None:
        self._source, self._on_read, self._done = source, on_read, 0.0
        self.file_bytes = likely_bytes(file)
        self._most = {what: round(most.base + most.per_byte * self.file_bytes) for what, most in MOST.items()}
        self._left = dict(self._most)
        self._seconds = SECONDS if DEADLINE not in os.environ else deadline_s()
        self._seconds += SECONDS_PER_BYTE * self.file_bytes
        self._until_s = time.thread_time() + self._seconds
        self.refused_slices = 0
        """Parts of a trace that the typed decoder refused, and that were decoded event by event."""
        self.cut_names: set[str] = set()
        self.cut_path_count = 0
        self.lost_path_count = 0
        self.left_out: dict[str, int] = {}

    def take(self, what: str, amount: int = 1) -> None:
        """Count an amount before it is kept.

        Raises:
            TooMuchError: The amount exceeds what is left.
        """
        if not self.has(what, amount):
            much = f"more than {self._most[what]:,} {what}, as no real one of its size has"
            raise TooMuchError(f"the timeline `{self._source}` has {much}", _SIZE_HINT)

    def has(self, what: str, amount: int) -> bool:
        """Count an amount before it is kept; False if it exceeds what is left."""
        self._left[what] -= amount
        return self._left[what] >= 0

    def moved(self, part: float, most: float = 1.0) -> None:
        """Report a further part of the work as done, up to `most` in all: estimates may be too low."""
        part = min(part, most - self._done)
        if part > 0:
            self._done += part
            self._on_read(part)

    @property
    def is_late(self) -> bool:
        return time.thread_time() > self._until_s

    def check_time(self) -> None:
        """Check that time is left.

        Raises:
            TooMuchError: The time is over.
        """
        if self.is_late:
            raise self.too_slow()

    def too_slow(self) -> TooMuchError:
        """Make the error for a timeline whose time is over."""
        much = f"more than {self._seconds:.0f} s, as no real one of its size does"
        return TooMuchError(f"reading the timeline `{self._source}` takes {much}", _TOO_SLOW_HINT)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for everything that was cut or left out so far."""
        for what, number in self.left_out.items():
            yield f"left out {count(number, 'kernel event')} {what}"
        yield from notes_of_cut_names(len(self.cut_names))
        if self.cut_path_count:
            yield (
                f"{count(self.cut_path_count, 'path')} of ranges cut: of those within one another, {RANGE_DEPTH} and "
                f"{PATH_LENGTH:,} characters are kept"
            )
        if self.lost_path_count:
            yield f"ranges of {count(self.lost_path_count, 'launch')} left out: they have too many different ones"
