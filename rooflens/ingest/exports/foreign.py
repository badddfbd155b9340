"""Name a text that is not an export with launches, and tell the user what to do instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from rooflens.errors import InputError
from rooflens.failures import failure_of
from rooflens.foreign import by_lines, foreign_content
from rooflens.ingest.exports.tables import header_of, open_text

_MOST_LINES = 20_000
_LONGEST_LINE = 4_000
_LONGEST_QUOTE = 200
_SAMPLE_BYTES = 4096

_RAW = "export it with `ncu --import REPORT --page raw --csv --print-units base`"
_PROFILE = "`ncu --csv --page raw --print-units base PROGRAM` prints a table"

_KIND_PATTERNS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(
            r"==ERROR==\s*(?P<said>.+)|==WARNING==\s*(?P<none>No kernels were profiled.*)|(?P<named>ERR_NVGPUCTRPERM.*)"
        ),
        "ncu profiled nothing: {said}",
        "fix that and profile again",
    ),
    (
        re.compile(r"\"?Metric Type\"?,|\"?Metric Name\"?,\"?Metric Description"),
        "a list of the metrics of a chip, with no values",
        _PROFILE,
    ),
    (
        re.compile(r"\"?(?:Address|#)\"?,\"?(?:Address|Source)\"?,", re.IGNORECASE),
        "a source page, which has no metrics of whole kernels",
        _RAW,
    ),
    (
        re.compile(r"^\s*Section: |, Context \d+, Stream \d+"),
        "ncu's text, with no metric in it",
        "copy all that ncu printed, or profile again",
    ),
    (
        re.compile(
            r"(?:^|[,;\t\"])[a-z][a-z0-9]*__\w+\.(?:sum|avg|min|max|pct|ratio)(?: \([^)]{0,40}\))?\"?[,;\t]"
            r"|metric_name.*[,;\t]value"
        ),
        "a table of metrics from another program: without ncu's columns, launches cannot be distinguished",
        f"give the output of ncu itself; or {_RAW}",
    ),
    (re.compile(r"^==PROF=="), "only ncu's messages, with no table after them", _PROFILE),
)
"""Pattern of a line, what such a text of ncu is, and what to do; texts of other tools are in `rooflens.foreign`."""


def is_known(head: bytes) -> bool:
    """Return whether a file looks, by its first bytes, like a text that `refusal` can name."""
    stream = open_text(head)
    if stream.encoding.startswith("utf-8") and b"\0" in head[:_SAMPLE_BYTES]:
        return False
    lines = [line[:_LONGEST_LINE] for line in islice(stream, _MOST_LINES)]
    return (
        any(pattern.search(line) for line in lines for pattern, _, _ in _KIND_PATTERNS) or by_lines(lines) is not None
    )


def refusal(data: bytes) -> InputError:
    """Return the error for a text without launches."""
    if not data.strip():
        return InputError("the file is empty", "profile again, or copy it again")
    lines = [line[:_LONGEST_LINE] for line in islice(open_text(data), _MOST_LINES)]
    of_ncu = _first_group(_KIND_PATTERNS[0][0], lines)
    if any(header_of(line) for line in lines):
        return InputError(
            "the export holds no launches", f"ncu said: {of_ncu}" if of_ncu else "check ncu's filters, and export again"
        )
    if of_ncu is None and (other := foreign_content(data[:_SAMPLE_BYTES]) or by_lines(lines)) is not None:
        return InputError(f"not an Nsight Compute report, but {other.what}", other.instead)
    if of_ncu and (causes := failure_of("".join(lines))):
        return InputError(f"ncu profiled nothing: {causes[0][0]}", causes[0][1])
    for pattern, what, hint in _KIND_PATTERNS:
        if (said := _first_group(pattern, lines)) is not None:
            return InputError(what.format(said=said), hint)
    return InputError("not an Nsight Compute export: it has no table of kernels and metrics", _RAW)


def _first_group(pattern: re.Pattern[str], lines: Iterable[str]) -> str | None:
    """Return the first non-empty group of the first matching line; None if no line matches."""
    found = next((match for line in lines if (match := pattern.search(line))), None)
    return None if found is None else next((part for part in found.groups() if part), "").strip()[:_LONGEST_QUOTE]
