"""Read all machine code of a kernel, for the few kernels that are shown in full.

Measurements and code come from the report. The text of instructions comes from NVIDIA's module at some tenths of a
millisecond each, so a kernel's text is kept in the user's cache.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflens.errors import InputError
from rooflens.format import count
from rooflens.ingest.cubin.budget import TooMuchError
from rooflens.ingest.cubin.instructions import INSTRUCTION_BYTES, may_jump
from rooflens.ingest.cubin.modules import Listing
from rooflens.ingest.metrics.code import MOST_CHARACTERS
from rooflens.ingest.reports.container import outline
from rooflens.ingest.reports.jobs import CHANGED, CHANGED_HINT, said
from rooflens.ingest.reports.protobuf import ResultReader
from rooflens.ingest.reports.read import opened
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.texts import Asked, ask, keep_sass, kept_sass
from rooflens.ingest.reports.unpacking import unpacked
from rooflens.model.inside.code import MOST_INSTRUCTIONS, MachineCode
from rooflens.model.inside.sass import parse

if TYPE_CHECKING:
    from rooflens.ingest.metrics.code import Instructions
    from rooflens.ingest.reports.results import RawResult

_SIXTEEN_BYTES_FROM = (7, 0)
_CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")


class _Found(NamedTuple):
    """A kernel's code without its text.

    Attributes:
        base: Lowest address.
        addresses: Addresses of its instructions.
        told: Addresses of instructions whose text is needed: executed instructions and jumps.
        starts: First address of each function.
        stored: The report's data by instruction.
        listing: The code itself; None if its form is unknown.
    """

    base: int
    addresses: list[int]
    told: list[int]
    starts: list[int]
    stored: Instructions
    listing: Listing | None


def read_machine_code(
    path: Path, digest: str, indices: Iterable[int], options: ReadOptions
) -> dict[int, MachineCode | str]:
    """Read the machine code of some results of a report, or give the reason for each that is unreadable.

    Args:
        path: The report, plain or compressed.
        digest: The report's digest at the time its kernels were read.
        indices: Positions of the results in the report.
        options: How reports are read.

    Raises:
        InputError: The file cannot be opened, or has been replaced by another report.
    """
    told: dict[int, MachineCode | str] = {}
    with said(), unpacked(path, options.max_unpacked_bytes) as plain:
        with opened(plain) as (data, found_digest):
            if found_digest != digest:
                raise InputError(CHANGED, CHANGED_HINT)
            found = outline(data, found_digest, plain.suffix.lower())
            reader = ResultReader(data, found)
            known: dict[int, _Found] = {}
            for index in dict.fromkeys(indices):
                result = reader.result(index)
                if result.instructions is not None and result.instructions.figures is not None:
                    continue  # published figures hold no machine code
                read = _found(result)
                if isinstance(read, str):
                    told[index] = read
                else:
                    known[index] = read
        texts = _texts(plain, digest, known, options)
    if isinstance(texts, InputError):
        return told | dict.fromkeys(known, f"no text of instructions: {texts}")
    return told | {index: _code(one, texts.get(index, {})) for index, one in known.items()}


def _found(result: RawResult) -> _Found | str:
    """Find the addresses of a result's instructions; otherwise return why there are none."""
    stored = result.instructions
    if stored is None or not stored.amounts.get("warp_inst"):
        return "the report holds no counts by instruction (`--section SourceCounters`, or `--set full`)"
    capability = tuple(int(result.numbers.get(name, 0)) for name in _CAPABILITY)
    if capability < _SIXTEEN_BYTES_FROM:
        return "loops are read of GPUs from Volta on"
    try:
        found = result.listing(stored.start)
    except TooMuchError as error:
        return f"its code is not read: {error}"
    listing = found if isinstance(found, Listing) else None
    known = set(stored.amounts["warp_inst"]).union(*stored.amounts.values(), stored.sectors or ())
    starts = sorted(stored.starts) or [min(stored.amounts["warp_inst"])]
    # A few samples belong to code that ran before or beside the kernel; draining stores are sampled behind the EXIT.
    ran = stored.amounts["warp_inst"]
    base = min(starts[0], *ran)
    starts = sorted({base, *starts})
    ends: dict[int, int] = {}
    for address in ran:
        start = starts[bisect_right(starts, address) - 1]
        ends[start] = max(ends.get(start, start), address)
    addresses: list[int] = []
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        if start not in ends:
            continue
        last = ends[start] + INSTRUCTION_BYTES
        if following is not None:
            last = min(last, following - INSTRUCTION_BYTES)
        if (last - start) // INSTRUCTION_BYTES + len(addresses) > MOST_INSTRUCTIONS:
            return f"its code has more than {count(MOST_INSTRUCTIONS, 'instruction')}"
        addresses += range(start, last + 1, INSTRUCTION_BYTES)
    if not known.intersection(addresses) or ran.keys() - set(addresses):
        return "its code is damaged: instructions that ran are at no address of it"
    code = listing if isinstance(listing, Listing) else None
    return _Found(
        base,
        addresses,
        [one for one in addresses if one in ran or code is None or may_jump(code.code(one))],
        [start for start in starts if start in ends],
        stored,
        code,
    )


def _texts(
    plain: Path, digest: str, known: Mapping[int, _Found], options: ReadOptions
) -> Mapping[int, Mapping[int, str]] | InputError:
    """Return the text of each result's instructions by address, from the cache if possible."""
    texts: dict[int, Mapping[int, str]] = {}
    for index, one in known.items():
        kept = kept_sass(digest, {index: one.told}, f"whole {index}")
        if kept is not None:
            texts[index] = kept[index]
    wanted = {index: one.told for index, one in known.items() if index not in texts}
    if not wanted:
        return texts
    answer = ask([Asked(plain, digest, wanted, {})], options)[0]
    if isinstance(answer, InputError):
        return answer
    for index, addresses in wanted.items():
        keep_sass(digest, {index: addresses}, answer.texts, f"whole {index}")
    return {**texts, **answer.texts}


def _code(found: _Found, texts: Mapping[int, str]) -> MachineCode:
    """Combine everything that is known about each instruction."""
    stored, listing, base = found.stored, found.listing, found.base
    instructions = []
    for address in found.addresses:
        place = listing.line(address) if listing else None
        file, line = (place[0][:MOST_CHARACTERS], place[1]) if place and place[0] and place[1] > 0 else (None, None)
        instructions.append(
            parse(
                address - base,
                texts.get(address),
                listing.code(address) if listing else None,
                base_address=base,
                file=file,
                line=line,
            )
        )
    inside = set(found.addresses)
    amounts: dict[str, dict[int, float]] = {}
    outside: dict[str, float] = defaultdict(float)
    every = {**stored.amounts, "global_sectors": stored.sectors or {}}
    for measure, by_address in every.items():
        amounts[measure] = {}
        for address, amount in by_address.items():
            if address in inside:
                amounts[measure][address - base] = amount
            else:
                outside[measure] += amount
    starts = [start - base for start in found.starts]
    return MachineCode(instructions, starts, amounts, dict(outside), _digest(found))


def _digest(found: _Found) -> str:
    """Return the SHA-256 of the bytes of a kernel's instructions; empty if the report lacks some of them."""
    codes = [found.listing.code(address) if found.listing else None for address in found.addresses]
    if not codes or any(code is None for code in codes):
        return ""
    return hashlib.sha256(b"".join(code for code in codes if code)).hexdigest()
