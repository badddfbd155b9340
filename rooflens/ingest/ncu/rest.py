"""Keep what a failed collection leaves: ncu's messages, and the part of a report that it had written."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.errors import InputError, RooflensError, StoppedError
from rooflens.files import write_whole
from rooflens.ingest.reports.unpacking import INCOMPLETE_SUFFIX, LOG_SUFFIX, PACKED_SUFFIX, PLAIN_SUFFIX, is_packed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LAST_WORDS_BYTES = 64 << 10
"""How much of the program's output is kept, from its end; ncu's log is kept whole."""

_NO_EMPTY_BYTES = 64 << 10
"""A report without kernels is smaller: a header and the machine's description. A larger one may hold some."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What a failed run of ncu left.

    Attributes:
        command: ncu's command line.
        words: Files with what was printed, ncu's log first.
        profiled_count: How many kernels ncu's log calls done.
        left: The partial report, if ncu wrote any.
        output: The name of the report that was asked for.
    """

    command: Sequence[str]
    words: Sequence[Path]
    profiled_count: int
    left: Path
    output: Path


def log_of(output: Path) -> Path:
    """Return where ncu's log is kept when collecting a report fails."""
    return output.with_name(output.name.removesuffix(PACKED_SUFFIX).removesuffix(PLAIN_SUFFIX) + LOG_SUFFIX)


def keep_rest(error: RooflensError, rest: Rest) -> RooflensError:
    """Keep what there is, and return the error with a hint that says where.

    If the user stopped it before any kernel was done, nothing is kept.
    """
    kept = found = None
    count = _kernels_in(rest.left)
    if rest.left.exists() and (rest.profiled_count or count or (count is None and _is_large(rest.left))):
        kept = _incomplete(rest)
        with suppress(OSError):
            rest.left.replace(kept)
            found = kept
    stopped = isinstance(error, StoppedError)
    log = None if stopped and not found else keep_words(rest.command, rest.words, rest.output)
    holds = _holding(count, rest.profiled_count)
    hints = [
        error.hint,
        f"ncu's messages are kept in `{log}`" if log else "",
        f"the report so far is kept, {holds}: `rooflens analyze {shlex.quote(str(found))}`" if found else "",
    ]
    told = type(error)("stopped before the end" if stopped and found else str(error), "; ".join(filter(None, hints)))
    told.kept = found
    return told


def _incomplete(rest: Rest) -> Path:
    suffix = PACKED_SUFFIX if is_packed(rest.left) else PLAIN_SUFFIX
    return rest.output.with_name(f"{rest.output.with_suffix(suffix).name}{INCOMPLETE_SUFFIX}")


def _is_large(left: Path) -> bool:
    return left.stat().st_size > _NO_EMPTY_BYTES


def _holding(count: int | None, profiled_count: int) -> str:
    if count is None:
        return f"{profiled_count} kernels by ncu's log" if profiled_count else "its kernels not counted"
    return f"{count} complete kernel{'' if count == 1 else 's'}"


def _kernels_in(left: Path) -> int | None:
    """Count the kernels that can be read; None where it cannot be read on this machine."""
    if not left.exists():
        return 0
    try:
        from rooflens.ingest.reports.container import readable_part  # noqa: PLC0415 - needs protobuf, as in `collect`

        with readable_part(left) as part:
            return part.result_count
    except (ImportError, InputError):
        return None


def keep_words(command: Sequence[str], words: Sequence[Path], output: Path) -> Path | None:
    """Write the command and what was printed into one file; None if nothing was printed, or it cannot be written."""
    said = [(file.name, _end(file, whole=index == 0)) for index, file in enumerate(words)]
    if not any(text for _, text in said):
        return None
    parts = [f"$ {shlex.join(command)}", *(f"--- {name}\n{text.rstrip()}" for name, text in said if text.strip())]
    place = log_of(output)
    try:
        write_whole(place, "\n".join(parts) + "\n")
    except (InputError, OSError):
        return None
    return place


def _end(file: Path, *, whole: bool) -> str:
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        if not whole:
            stream.seek(max(0, file.stat().st_size - _LAST_WORDS_BYTES))
        return stream.read().decode("utf-8", errors="replace")
