"""Walk a trace in Chrome's Trace Event Format: event by event, without losing a character, or some hundred at a time.

Traces have hundreds of megabytes, so they are decoded in parts. The PyTorch profiler writes NaN, Infinity, Windows
paths with single backslashes, and bytes that are not UTF-8. The standard library's decoder accepts all of these, unlike
typed or streaming JSON libraries. It also says where a value ends, so that copies of a trace can keep its text.

To read a trace, a typed decoder takes whole events at a time, at seven times the speed, and leaves to the standard
library's what it refuses.
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
from rooflens.ingest.timelines.budget import READING, TooMuchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.ingest.timelines.budget import TimelineBudget
    from rooflens.ingest.timelines.kineto import Event

MOST_CHARACTERS = 8 << 20
"""A longer value is no event and is not read further. The longest published event has 8,000 characters; in memory,
empty objects take 25 times their characters."""

MAX_TRACE_BYTES = 64 << 30
"""Limit on a compressed trace's unpacked size: it is read as a stream, and only its kernels are kept."""

CUT_HINT = "copy the trace again from where it was recorded, or record it again"
_NO_TRACE_HINT = "`torch.profiler` writes traces with export_chrome_trace(), as `.json` or `.json.gz`"

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_BETWEEN_EVENTS = re.compile(r"[ \t\r\n,]*")
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(u[0-9a-fA-F]{0,3})?\Z)?')
"""An escape sequence: valid, perhaps cut by the end of the text, or a stray backslash."""
_NEXT_EVENT = re.compile(r"\},[ \t\r\n]*\{")
_SLICE_CHARACTERS = 1 << 18
"""Events decoded at once, in characters: those beside what the typed decoder refuses are decoded one at a time."""
_TRIES = 32
"""Most commas looked at for one between two events."""
_LONG_CHARACTERS = 1 << 20
"""A value in so much text is decoded with a call of Python's for each object, where a signal can end it."""
_LONGEST_CUT = 10
"""Errors this close to the end of the text may be due to the end: `-Infinity` has nine characters."""


class Piece(NamedTuple):
    """A part of a trace's text; all parts joined are the trace.

    Attributes:
        text: The characters, including separators and keys before the value; undecodable bytes are lone surrogates.
        at: Where the value begins in the text.
        event: The event that ends the part, or None. Numbers with a fraction are kept as text.
        key: The top-level key whose value ends the part, or empty.
        value: The value of that key.
        events: The events of the part, where its text is not kept.
    """

    text: str
    at: int = 0
    event: dict[str, Any] | None = None
    key: str = ""
    value: Any = None
    events: Sequence[Event] = ()


def read_pieces(path: Path) -> Iterator[Piece]:
    """Yield all parts of a trace that was read before, compressed or not: with its text, an event in each.

    Chrome allows an array of events without its end: then the last part is empty and has the key `cut`.

    Raises:
        InputError: The file is unreadable, cut or damaged, no JSON, or no trace.
    """
    return _pieces(path, _TraceText(path))


def read_events(path: Path, budget: TimelineBudget) -> Iterator[Piece]:
    """Yield all parts of a trace without their text: some hundred events in each, or an event, or the value of a key.

    Args:
        path: The trace: an object with `traceEvents`, or an array of events.
        budget: Limit on reading time.

    Raises:
        TooMuchError: The time is over.
        InputError: The file is unreadable, cut or damaged, no JSON, or no trace.
    """
    return _pieces(path, _EventText(path, budget))


def _pieces(path: Path, text: _TraceText) -> Iterator[Piece]:
    try:
        yield from _all_pieces(text)
    except TooMuchError:
        raise
    except InputError as error:
        raise InputError(f"cannot read the trace `{path}`: {error}", error.hint) from error
    except OSError as error:
        raise InputError(f"cannot read the trace `{path}`: {error.strerror}", "check the path") from error


def _all_pieces(text: _TraceText) -> Iterator[Piece]:
    """Yield the parts of a trace of either form."""
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


def _members(text: _TraceText) -> Iterator[Piece]:
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


def _elements(text: _TraceText, *, may_lack_end: bool = False) -> Iterator[Piece]:
    """Yield the events of an array, each with the comma before it."""
    text.step()
    while (char := text.peek(_BETWEEN_EVENTS, may_end=may_lack_end)) != "]":
        if not char:
            yield text.taken(key="cut")
            return
        if events := text.events():
            yield Piece("", events=events)
            continue
        event = text.value()
        if not isinstance(event, dict):
            raise InputError("a JSON file, but not a trace: its array holds no events", _NO_TRACE_HINT)
        yield text.taken(event=event)
    text.step()


class _TraceText:
    """The text of a trace as it is read, and the current position."""

    def __init__(self, path: Path, budget: TimelineBudget | None = None) -> None:
        self._chunks = chunks(path, MAX_TRACE_BYTES)
        self._budget = budget
        self._mends = False
        self._held = ""  # the start of an escape sequence
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._parse = json.JSONDecoder(parse_float=str, strict=False).raw_decode
        self._parse_long = json.JSONDecoder(parse_float=str, strict=False, object_hook=lambda found: found).raw_decode
        self._text = ""
        self._start = 0  # of the text that was not taken yet
        self._at = 0
        self._value_at = 0

    def taken(self, event: dict[str, Any] | None = None, key: str = "", value: Any = None) -> Piece:
        """Return the text since the last call, with the value that was read last."""
        start, self._start = self._start, self._at
        return Piece(self._text[start : self._at], self._value_at - start, event, key, value)

    def events(self) -> Sequence[Event]:
        """Return whole events from here on, and move past them; none if the next is to be decoded alone."""
        return ()

    def peek(self, skipped: re.Pattern[str] = _SPACE, *, may_end: bool = True) -> str:
        """Advance to the next character that is not skipped, and return it; empty at the end.

        Raises:
            InputError: The text must not end here.
        """
        while True:
            match = skipped.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                if may_end:
                    return ""
                raise _cut_error()

    def step(self) -> str:
        """Return the next non-space character, and move past it.

        Raises:
            InputError: The text ends first.
        """
        char = self.peek(may_end=False)
        self._at += 1
        return char

    def value(self) -> Any:
        """Read the value at the next character.

        Raises:
            InputError: The value is no JSON, is cut, or is longer than an event.
        """
        while True:
            try:
                parse = self._parse if len(self._text) - self._at < _LONG_CHARACTERS else self._parse_long
                value, end = parse(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._mends and error.msg.startswith("Invalid \\"):
                    self._mends = True
                    self._text = self._text[: self._at] + self._mended(self._text[self._at :])
                    continue
                is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_CUT
                if is_cut and self._read_more():
                    continue
                raise _cut_error() if is_cut else InputError(f"not JSON: {error.msg}", _NO_TRACE_HINT) from error
            except (RecursionError, ValueError) as error:
                raise InputError("not a trace: nested too deep, or a number is too long", _NO_TRACE_HINT) from error
            if end == len(self._text) and self._read_more():  # a number may continue
                continue
            self._value_at, self._at = self._at, end
            return value

    def _read_more(self) -> bool:
        """Read more text, at least as much as is pending, so that a long value is not parsed too often."""
        pending = [self._text[self._start :]]
        wanted = max(len(pending[0]), 1)
        if wanted > MOST_CHARACTERS:
            raise InputError(f"not a trace: no value in one ends within {MOST_CHARACTERS >> 20} MiB", _NO_TRACE_HINT)
        while wanted > 0:
            chunk = next(self._chunks, None)
            if self._budget:
                self._budget.check_time()
                self._budget.moved(READING * len(chunk or b"") / (self._budget.file_bytes or 1), READING)
            text = self._decode(chunk or b"", chunk is None)
            pending.append(self._mended(text, is_last=chunk is None) if self._mends else text)
            wanted -= len(pending[-1])
            if chunk is None:
                break
        self._text, self._at, self._start = "".join(pending), self._at - self._start, 0
        return bool("".join(pending[1:]))

    def _mended(self, text: str, *, is_last: bool = False) -> str:
        """Double each stray backslash, as in Windows paths; an escape that is cut by the end waits for more text.

        In JSON, backslashes occur only within texts, so nothing else changes.
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


class _EventText(_TraceText):
    """The text of a trace whose events alone are wanted."""

    def __init__(self, path: Path, budget: TimelineBudget) -> None:
        from msgspec import MsgspecError  # noqa: PLC0415 - where programs are recorded there is none

        from rooflens.ingest.timelines.kineto import EventDecoder  # noqa: PLC0415 - as above

        super().__init__(path, budget)
        self._own_budget = budget
        self._decode_events = EventDecoder()
        self._refusals = (MsgspecError, UnicodeEncodeError, RecursionError)
        self._refused_until = 0

    def events(self) -> Sequence[Event]:
        """Return whole events from here on, and move past them; none if the next is to be decoded alone."""
        if self._at < self._refused_until:
            return ()
        end = self._end_of_events()
        if end is None and self._read_more():
            end = self._end_of_events()
        if end is None:
            return ()
        self._own_budget.check_time()
        try:
            # What ends in the middle of an event is refused: its brackets do not match.
            events = self._decode_events(f"[{self._text[self._at : end]}]")
        except self._refusals:
            self._refused_until = end
            self._own_budget.refused_slices += 1
            return ()
        self._start = self._at = end
        return events

    def _end_of_events(self) -> int | None:
        """Return where the last event ends that is followed by another; None if that is not near."""
        text, end = self._text, min(len(self._text), self._at + _SLICE_CHARACTERS)
        for _ in range(_TRIES):
            end = text.rfind("},", self._at, end)
            if end < 0:
                return None
            if _NEXT_EVENT.match(text, end):
                return end + 1
        return None

    def _read_more(self) -> bool:
        start = self._start
        is_more = super()._read_more()
        self._refused_until -= start
        return is_more


def _cut_error() -> InputError:
    """Make the error for a trace that ends too early."""
    return InputError("it is cut: its JSON ends in the middle", CUT_HINT)
