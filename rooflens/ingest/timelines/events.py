"""Go through a trace in Chrome's Trace Event Format, event by event, and lose no character of it.

Traces have hundreds of megabytes, so that one event is decoded at a time. The PyTorch profiler writes NaN and Infinity,
Windows paths with single backslashes and bytes that are not UTF-8: the standard library's decoder takes all of these,
streaming JSON libraries refuse them. It also says where a value ends, so that whoever copies a trace can copy its text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflens.errors import InputError
from rooflens.ingest.reports.unpacking import chunks
from rooflens.ingest.timelines.budget import TooMuchError

if TYPE_CHECKING:
    from rooflens.ingest.timelines.budget import Budget

MOST_CHARACTERS = 8 << 20
"""A single value that is longer is no event: more of it is not read. The longest published one has 8,000; in memory,
empty objects take 25 times their characters."""

MAX_TRACE_BYTES = 64 << 30
"""What a compressed trace may unpack to: it is read as it comes, and only its kernels are kept."""

CUT_HINT = "copy the trace again from where it was recorded, or record it again"
_NO_TRACE_HINT = "`torch.profiler` writes traces with export_chrome_trace(), as `.json` or `.json.gz`"

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_BETWEEN_EVENTS = re.compile(r"[ \t\r\n,]*")
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(u[0-9a-fA-F]{0,3})?\Z)?')
"""An escape: a good one, one that the end may have cut, or a stray backslash."""
_LONGEST_CUT = 10
"""An error this near to the end of what was read may come from the end: `-Infinity` has nine characters."""


class Piece(NamedTuple):
    """A part of the text of a trace; all parts joined are the trace.

    Attributes:
        text: The characters, with separators and keys before the value; undecodable bytes as lone surrogates.
        at: Where in the text the value begins.
        event: The event at its end; None if there is none. Numbers with a fraction are kept as text.
        key: The key of the trace's own object whose value is at its end; empty if there is none.
        value: The value of that key.
    """

    text: str
    at: int = 0
    event: dict[str, Any] | None = None
    key: str = ""
    value: Any = None


def read_pieces(path: Path, budget: Budget | None = None) -> Iterator[Piece]:
    """Yield all parts of the trace at `path`, plain or compressed, an object with `traceEvents` or an array of events.

    An array of events may lack its end, as Chrome allows: then the last part is an empty one with the key `cut`.

    Args:
        path: The trace.
        budget: The time that reading it may take; without limit by default, for what was read before.

    Raises:
        TooMuchError: It takes more time.
        InputError: It cannot be read, is cut or damaged, is not JSON, or not a trace.
    """
    try:
        yield from _all_pieces(_Text(path, budget))
    except TooMuchError:
        raise
    except InputError as error:
        raise InputError(f"cannot read the trace `{path}`: {error}", error.hint) from error
    except OSError as error:
        raise InputError(f"cannot read the trace `{path}`: {error.strerror}", "check the path") from error


def _all_pieces(text: _Text) -> Iterator[Piece]:
    """Yield the parts of either shape."""
    match text.peek():
        case "{":
            yield from _members(text)
        case "[":
            yield from _elements(text, may_lack_end=True)
        case _:
            raise InputError("not a trace: it does not start as JSON does", _NO_TRACE_HINT)
    if text.peek():
        raise InputError("not a trace: more follows after the end of its JSON", _NO_TRACE_HINT)
    yield text.taken()


def _members(text: _Text) -> Iterator[Piece]:
    """Yield the parts of an object with `traceEvents`."""
    has_events, separator = False, text.step()
    while separator != "}" and text.peek(may_end=False) != "}":
        key = text.value()
        if not isinstance(key, str) or text.step() != ":":
            raise InputError("not JSON: a key is missing", _NO_TRACE_HINT)
        if key == "traceEvents" and text.peek() == "[":
            has_events = True
            yield from _elements(text)
        else:
            text.peek(may_end=False)
            value = text.value()
            yield text.taken(key=key, value=value)
        if (separator := text.step()) not in {",", "}"}:
            raise InputError("not JSON: a comma is missing", _NO_TRACE_HINT)
    if separator != "}":
        text.step()
    if not has_events:
        raise InputError("a JSON file, but not a trace: it has no `traceEvents`", _NO_TRACE_HINT)


def _elements(text: _Text, *, may_lack_end: bool = False) -> Iterator[Piece]:
    """Yield the events of an array, each with the comma before it."""
    text.step()
    while (char := text.peek(_BETWEEN_EVENTS, may_end=may_lack_end)) != "]":
        if not char:
            yield text.taken(key="cut")
            return
        event = text.value()
        if not isinstance(event, dict):
            raise InputError("a JSON file, but not a trace: its array holds no events", _NO_TRACE_HINT)
        yield text.taken(event=event)
    text.step()


class _Text:
    """The text of a trace as it comes, and how far it was read."""

    def __init__(self, path: Path, budget: Budget | None) -> None:
        self._chunks = chunks(path, MAX_TRACE_BYTES)
        self._budget = budget
        self._mends = False
        self._held = ""  # the begin of an escape
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._parse = json.JSONDecoder(parse_float=str, strict=False).raw_decode
        self._text = ""
        self._start = 0  # of what was not taken yet
        self._at = 0
        self._value_at = 0

    def taken(self, event: dict[str, Any] | None = None, key: str = "", value: Any = None) -> Piece:
        """Return what was read since the last call, with the value that was read last."""
        start, self._start = self._start, self._at
        return Piece(self._text[start : self._at], self._value_at - start, event, key, value)

    def peek(self, skipped: re.Pattern[str] = _SPACE, *, may_end: bool = True) -> str:
        """Go to the next character that is not skipped, and return it; empty at the end.

        Raises:
            InputError: The end comes where it may not.
        """
        while True:
            match = skipped.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                if may_end:
                    return ""
                raise _cut()

    def step(self) -> str:
        """Return the next non-space character, and stand behind it.

        Raises:
            InputError: The end comes first.
        """
        char = self.peek(may_end=False)
        self._at += 1
        return char

    def value(self) -> Any:
        """Read the value that begins with the next character.

        Raises:
            InputError: It is not JSON, is cut, or is longer than an event.
        """
        while True:
            try:
                value, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._mends and error.msg.startswith("Invalid \\"):
                    self._mends = True
                    self._text = self._text[: self._at] + self._mended(self._text[self._at :])
                    continue
                is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_CUT
                if is_cut and self._read():
                    continue
                raise _cut() if is_cut else InputError(f"not JSON: {error.msg}", _NO_TRACE_HINT) from error
            except (RecursionError, ValueError) as error:
                raise InputError("not a trace: nested too deep, or a number is too long", _NO_TRACE_HINT) from error
            if end == len(self._text) and self._read():  # a number may go on
                continue
            self._value_at, self._at = self._at, end
            return value

    def _read(self) -> bool:
        """Read on, at least as much as is pending, so that a long value is not parsed too often."""
        pending = [self._text[self._start :]]
        wanted = max(len(pending[0]), 1)
        if wanted > MOST_CHARACTERS:
            raise InputError(f"not a trace: no value in one ends within {MOST_CHARACTERS >> 20} MiB", _NO_TRACE_HINT)
        while wanted > 0:
            if self._budget:
                self._budget.check_time()
            chunk = next(self._chunks, None)
            text = self._decode(chunk or b"", chunk is None)
            pending.append(self._mended(text, is_last=chunk is None) if self._mends else text)
            wanted -= len(pending[-1])
            if chunk is None:
                break
        self._text, self._at, self._start = "".join(pending), self._at - self._start, 0
        return bool("".join(pending[1:]))

    def _mended(self, text: str, *, is_last: bool = False) -> str:
        """Double each backslash that begins no escape, as in paths of Windows; an escape cut at the end waits.

        In JSON a backslash stands in texts alone, so that nothing else changes.
        """
        text, self._held = self._held + text, ""
        return _ESCAPE.sub(lambda match: self._mend(match, is_last=is_last), text)

    def _mend(self, match: re.Match[str], *, is_last: bool) -> str:
        found = match[0]
        if match[1]:
            return found
        if match.end() == len(match.string) and not is_last:
            self._held = found
            return ""
        return f"\\{found}"


def _cut() -> InputError:
    """Make the error of a trace that ends too early."""
    return InputError("it is cut: its JSON ends in the middle", CUT_HINT)
