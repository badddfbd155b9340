"""What only NVIDIA's module can read of code: the text of hot instructions.

Its disassembler takes most of a second to start, so one child process serves many reports. The text is cached per user,
by the digest of the report and the disassembler's version, so a changed report or a new version is read again. The text
contains load addresses, so it cannot be reused for another report, even of the same program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from rooflens.cache import keep, kept, trim
from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.ingest.metrics.code import Code, clean_text
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.report import ReadOptions, ReadReport, with_codes
from rooflens.model.records import Kernel

MOST_BYTES = 32 << 20
"""Cache size, enough for some thousand reports; beyond it the oldest are dropped."""

_CACHE_FOLDER = "sass-1"
_WRITES_BETWEEN_TRIMS = 256
_MODULE = "ncu_report"
_writes = count()

SassTexts: TypeAlias = Mapping[int, Mapping[int, str]]
"""Text by address, by index of the result."""


class TextsRequest(NamedTuple):
    """A request to NVIDIA's module about one report.

    Attributes:
        path: An uncompressed report.
        digest: SHA-256 of it, in hex.
        addresses: Addresses of instructions whose text is wanted, by index of the result.
    """

    path: Path
    digest: str
    addresses: Mapping[int, Sequence[int]]


def add_texts(reports: Sequence[tuple[Path, ReadReport]], options: ReadOptions) -> list[ReadReport]:
    """Complete reports with the text of their hottest instructions; notes say where that fails.

    Args:
        reports: Uncompressed files, and the reports read from them.
        options: What to read.
    """
    asked: dict[int, TextsRequest] = {}
    told: dict[int, SassTexts] = {}
    may_be_kept = options.reader != "direct"
    for place, (path, report) in enumerate(reports):
        wanted = _addresses(report)
        known = kept_sass(report.run.digest, wanted) if wanted and may_be_kept else None
        if wanted and known is None:
            asked[place] = TextsRequest(path, report.run.digest, wanted)
        else:
            told[place] = known or {}
    answers = _ask([*asked.values()], options)
    done = []
    for place, (_, report) in enumerate(reports):
        bare = replace(report, untold={})
        answer = told[place] if place in told else answers.pop(0)
        if isinstance(answer, InputError):
            done.append(replace(bare, notes=(*report.notes, f"SASS text is missing: {answer}")))
            continue
        if place in asked:
            keep_sass(report.run.digest, asked[place].addresses, answer)
        codes = {index: _with_texts(code, answer.get(index, {})) for index, code in report.untold.items()}
        starts = {index: code.start for index, code in report.untold.items()}
        kernels = _with_producers(with_codes(report.kernels, codes), starts, answer)
        done.append(replace(bare, kernels=tuple(kernels)))
    return done


def _addresses(report: ReadReport) -> dict[int, list[int]]:
    """Return the addresses of the hottest instructions, and of those that warps wait for, by index of the result."""
    insides = {kernel.index: kernel.inside for kernel in report.kernels if kernel.index in report.untold}
    found: dict[int, list[int]] = {}
    for index, code in report.untold.items():
        offsets = {spot.pc for spot in code.hotspots if spot.by == "sass" and spot.pc is not None}
        if (inside := insides.get(index)) is not None:
            offsets.update(wait.pc for waits in inside.waits.values() for wait in waits)
        if offsets:
            found[index] = sorted(code.start + offset for offset in offsets)
    return found


def _with_producers(kernels: Iterable[Kernel], starts: Mapping[int, int], texts: SassTexts) -> Iterator[Kernel]:
    """Add the disassembler's text to the instructions that warps wait for.

    Args:
        kernels: All kernels of a report.
        starts: Address of the code of some, by index of the result.
        texts: Text by address, by index of the result.
    """
    for kernel in kernels:
        told, inside = texts.get(kernel.index), kernel.inside
        if not told or inside is None or not inside.waits or kernel.index not in starts:
            yield kernel
            continue
        start = starts[kernel.index]
        waits = {
            pc: tuple(replace(wait, sass=clean_text(told.get(start + wait.pc))) for wait in at)
            for pc, at in inside.waits.items()
        }
        yield replace(kernel, inside=replace(inside, waits=waits))


def _with_texts(code: Code, texts: Mapping[int, str]) -> Code:
    """Give the hottest instructions the disassembler's text by address."""
    spots = (
        replace(spot, sass=clean_text(texts.get(code.start + spot.pc)))
        if spot.by == "sass" and spot.pc is not None
        else spot
        for spot in code.hotspots
    )
    return replace(code, hotspots=tuple(spots))


def _ask(asked: Sequence[TextsRequest], options: ReadOptions) -> list[SassTexts | InputError]:
    """Ask NVIDIA's module in one child; if that fails, about each report in a child of its own."""
    from rooflens.ingest.reports.nvidia import tell  # noqa: PLC0415 - only where it is asked

    if not asked:
        return []
    if options.reader == "direct":
        return [InputError("NVIDIA's module was not asked")] * len(asked)
    try:
        found: list[SassTexts | InputError] = in_child(tell, asked, deadline_s=options.deadline_s * len(asked))
    except InputError as error:
        return [error] if len(asked) == 1 else [answer for one in asked for answer in _ask([one], options)]
    except EnvironmentMissingError as error:  # it is not installed here, or cannot be loaded: all else was read
        return [InputError(str(error), error.hint)] * len(asked)
    return found


def kept_sass(digest: str, wanted: Mapping[int, Sequence[int]]) -> dict[int, dict[int, str]] | None:
    """Return the text of instructions from the cache; None if any that is wanted is not there.

    Args:
        digest: SHA-256 of the report, in hex.
        wanted: Addresses, by index of the result.

    Returns:
        Text by address, by result index, without addresses for which the disassembler has no text.
    """
    name = _cache_name(digest)
    data = kept(name) if name else None
    if data is None:
        return None
    try:
        texts = msgspec.json.decode(data, type=dict[int, dict[int, str | None]])
        return {
            index: {address: text for address in addresses if (text := texts[index][address]) is not None}
            for index, addresses in wanted.items()
        }
    except (msgspec.DecodeError, LookupError):
        return None


def keep_sass(digest: str, wanted: Mapping[int, Sequence[int]], answer: SassTexts) -> None:
    """Store the disassembler's answer for everything that was wanted.

    Args:
        digest: SHA-256 of the report, in hex.
        wanted: Addresses, by index of the result.
        answer: Text by address, by index of the result.
    """
    name = _cache_name(digest)
    if name is None:
        return
    # Addresses without text are stored as null.
    texts = {
        index: {address: answer.get(index, {}).get(address) for address in addresses}
        for index, addresses in wanted.items()
    }
    keep(name, msgspec.json.encode(texts))
    if next(_writes) % _WRITES_BETWEEN_TRIMS == 0:
        trim(_CACHE_FOLDER, MOST_BYTES)


def _cache_name(digest: str) -> str | None:
    """Return the name of a report's text in the cache; None if no disassembler is installed."""
    module = _disassembler()
    return f"{_CACHE_FOLDER}/{hashlib.sha256(f'{digest} {module}'.encode()).hexdigest()}" if module else None


def _disassembler() -> str:
    """Tell the installed disassembler from others; empty without one."""
    try:
        spec = find_spec(_MODULE)
        if spec is None or spec.origin is None:
            return ""
        module = Path(spec.origin).stat()
    except (ImportError, ValueError, OSError):
        return ""
    return f"{module.st_size} {module.st_mtime_ns}"
