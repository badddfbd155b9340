"""Look inside of kernels: their machine code, which the report holds, with what was measured of each instruction."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec.structs import replace

from rooflens.format import count
from rooflens.ingest.cubin.budget import TooMuchCodeError
from rooflens.ingest.cubin.decoding import decode, is_known
from rooflens.ingest.cubin.mbarriers import with_mbarriers
from rooflens.ingest.cubin.modules import Listing
from rooflens.ingest.metrics.code import MOST_CHARACTERS, Instructions
from rooflens.ingest.reports.results import RawResult
from rooflens.model.inside.code import MOST_INSTRUCTIONS, MachineCode, pcs_by_line
from rooflens.model.inside.instruction import INSTRUCTION_BYTES, Instruction
from rooflens.model.inside.look import look_inside
from rooflens.model.records import Inside

_SIXTEEN_BYTES_FROM = 70
_NO_CODE = "its code is not in the report, or of an unknown form"


class _CodeText(NamedTuple):
    """What all launches of some code have in common.

    Attributes:
        instructions: In the order of their offsets.
        addresses: Where they are loaded to.
        pcs: Offsets of the instructions of each line, by file and line.
        digest: SHA-256 of their bytes, in hex.
    """

    instructions: Sequence[Instruction]
    addresses: AbstractSet[int]
    pcs: Mapping[tuple[str, int], tuple[int, ...]]
    digest: str


class Insides:
    """Looks into the results of one report, whose launches of a kernel share what is read of its code."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, tuple[range, ...]], _CodeText | None] = {}
        self._row_of: dict[str, Mapping[int, int]] = {}

    def of(self, result: RawResult) -> Inside | None:
        """Look into a result; a note says why that cannot be. None if nothing was counted by instruction."""
        stored = result.instructions
        if stored is None or stored.figures is not None or not stored.amounts.get("warp_inst"):
            return None  # published figures hold no machine code
        found = self.code(result, stored)
        if isinstance(found, str):
            return Inside(note=found)
        inside = look_inside(found)
        # Launches that run the same code mostly divide it alike, and then hold the division once.
        known = self._row_of.setdefault(inside.code_digest, inside.row_of)
        return replace(inside, row_of=known) if known == inside.row_of else inside

    def code(self, result: RawResult, stored: Instructions) -> MachineCode | str:
        """Return the machine code of a result with what was measured of it; else why it cannot be read."""
        try:
            listing = result.listing(stored.start)
        except TooMuchCodeError as error:
            return f"its code is not read: {error}"
        if not isinstance(listing, Listing):
            return _NO_CODE
        parts = _function_parts(stored)
        if (why := _unreadable(listing, parts)) is not None:
            return why
        text = self._code_text(listing, parts)
        if text is None or not stored.amounts["warp_inst"].keys() <= text.addresses:
            return "its code is damaged: instructions that ran are at no address of it"
        return _measured_code(stored, text, parts)

    def _code_text(self, listing: Listing, parts: tuple[range, ...]) -> _CodeText | None:
        """Read instructions; None if the report lacks some of them."""
        key = id(listing), parts
        if key not in self._texts:
            self._texts[key] = _read_instructions(listing, parts)
        return self._texts[key]


def _unreadable(listing: Listing, parts: Sequence[range]) -> str | None:
    if listing.capability < _SIXTEEN_BYTES_FROM:
        return "loops are read of GPUs from Volta on"
    if not is_known(listing.capability):
        return f"the machine code of compute capability {listing.capability / 10:.1f} is not known"
    if sum(map(len, parts)) > MOST_INSTRUCTIONS:
        return f"its code has more than {count(MOST_INSTRUCTIONS, 'instruction')}"
    return None


def _function_parts(stored: Instructions) -> tuple[range, ...]:
    """Return the addresses of what ran of each function, and one more: there samples lie where stores drain."""
    ran = stored.amounts["warp_inst"]
    # A few samples are of what ran before or beside the kernel.
    base = min((*stored.starts[:1], *ran))
    starts = sorted({base, *stored.starts})
    last: dict[int, int] = {}
    for address in ran:
        start = starts[bisect_right(starts, address) - 1]
        last[start] = max(last.get(start, start), address)
    following = dict(zip(starts, [*starts[1:], None], strict=True))
    ends = {start: at + 2 * INSTRUCTION_BYTES for start, at in last.items()}
    return tuple(
        range(start, end if (limit := following[start]) is None else min(end, limit), INSTRUCTION_BYTES)
        for start, end in sorted(ends.items())
    )


def _read_instructions(listing: Listing, parts: Sequence[range]) -> _CodeText | None:
    base, words, addresses = parts[0].start, [], []
    instructions = []
    for part in parts:
        for address, code, place, path in listing.instructions(part):
            if code is None or len(code) < INSTRUCTION_BYTES:
                if address != part[-1]:
                    return None
                continue  # nothing stands behind the last instruction of the function
            words.append(code)
            addresses.append(address)
            file, line = (place[0][:MOST_CHARACTERS], place[1]) if place and place[0] else (None, None)
            instructions.append(decode(address - base, code, listing.capability, file=file, line=line, path=path))
    digest = hashlib.sha256(b"".join(words)).hexdigest()
    instructions = with_mbarriers(instructions, words, listing.capability)
    return _CodeText(instructions, frozenset(addresses), pcs_by_line(instructions), digest)


def _measured_code(stored: Instructions, text: _CodeText, parts: Sequence[range]) -> MachineCode:
    """Join each instruction with its measured counts."""
    base, addresses = parts[0].start, text.addresses
    amounts: dict[str, dict[int, float]] = {}
    outside: dict[str, float] = {}
    every: Mapping[str, Mapping[int, float]] = {**stored.amounts, "global_sectors": stored.sectors or {}}
    for measure, by_address in every.items():
        amounts[measure] = {address - base: n for address, n in by_address.items() if address in addresses}
        if len(amounts[measure]) < len(by_address):
            outside[measure] = sum(n for address, n in by_address.items() if address not in addresses)
    return MachineCode(
        text.instructions, [part.start - base for part in parts], amounts, outside, text.digest, text.pcs
    )
