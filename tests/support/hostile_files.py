"""Files that are hard on whoever opens them: one or more of each kind that a campaign, a test or a fuzzer tries."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from support.cubin_writer import BOMBS, END, SET_ADDRESS, cubin, line_table, report_with, source_of
from support.damage import certain_damage, flipped_copies
from support.encoded_code import encoded, jump
from support.hungry import HUNGRY
from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report
from support.packing import packed
from support.timeline_attacks import attacks

FOUND = Path(__file__).parents[1] / "fuzzing" / "found"
MANY_INSTRUCTIONS = 19_000


def hostile_files(folder: Path, seed: int, *, each: int = 6, is_large: bool = False) -> Iterator[tuple[str, Path]]:
    """Write hostile files into a folder, one at a time, each with what it is called here.

    Args:
        folder: Where to.
        seed: Of the damage done by chance.
        each: How many of the kinds of which there are any number.
        is_large: Write also those that take gigabytes of memory, or minutes.
    """
    made = folder.parent / "made"
    made.mkdir(exist_ok=True)
    for ending in (".ncu-rep", ".json", ".sqlite", ".csv"):
        pipe = folder / f"pipe{ending}"
        os.mkfifo(pipe)
        yield f"pipe{ending}", pipe
    for number, (kind, ending, data) in enumerate(_contents(made, seed, each, is_large=is_large)):
        file = folder / f"{number:04}{ending}"
        file.write_bytes(data)
        yield kind, file
    for kind, (ending, write) in HUNGRY.items() if is_large else ():
        file = folder / f"hungry{ending}"
        write(file)
        yield kind, file


def _contents(made: Path, seed: int, each: int, *, is_large: bool) -> Iterator[tuple[str, str, bytes]]:
    """Yield kind, ending of the name, and content."""
    report = encode_report(ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1000.0})]))
    yield "a kernel of many jumps back", ".ncu-rep", _many_jumps()
    yield "zeros, packed twice", ".ncu-repz", packed(packed(bytes(1 << 28)))
    yield "nested 100,000 times", ".json", b'{"traceEvents": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    half = '[{"ph": "X", "cat": "kernel", "name": "\\ud800", "ts": 1, "dur": 1, "pid": 0, "tid": 7}]'
    yield "half a character as a name", ".json", half.encode()
    yield "nested names", ".json.gz", gzip.compress(b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000)
    yield from ((f"damaged: {kind}", ".ncu-rep", data) for kind, data in islice(certain_damage(report), each))
    yield from ((f"flipped: {kind}", ".ncu-rep", data) for kind, data in flipped_copies(report, each, seed=seed))
    yield from ((f"found: {path.name}", ".csv", path.read_bytes()) for path in sorted(FOUND.iterdir()))
    chance = Random(seed)  # noqa: S311 - repeatable, not secret
    bombs = BOMBS if is_large else chance.sample(BOMBS, min(each, len(BOMBS)))
    yield from ((f"code: {bomb.name}", ".ncu-rep", bomb.write()) for bomb in bombs)
    yield from attacks(made, 4 * each, seed)


def _many_jumps() -> bytes:
    """Write a report of a kernel in which every second instruction is a jump to the start."""
    code = b"".join(
        encoded(0x223, d=3, a=4, b=5, c=3) if at % 2 else jump(at, guard=0) for at in range(MANY_INSTRUCTIONS)
    )
    return report_with(source_of(cubin(line_table(SET_ADDRESS + END), code=code)))
