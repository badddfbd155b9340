"""Write cubins from their line table, including some that would cost a careless reader gigabytes or minutes.

`support.ncu_rep_writer` writes reports with these; the kernels of `report_with` have samples by instruction, so that
their code is read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report

from rooflens.ingest.messages.messages import message

SET_ADDRESS = b"\0\x09\x02" + bytes(8)
"""Begins a sequence; the address is relocated."""
END = b"\0\x01\x01"

_FIRST_SPECIAL = 10
STEP = bytes((255,))
"""The special opcode that goes furthest: 17 bytes and 2 lines on, and a row."""

_ROW = struct.Struct("<IIQQQQIIQQ")
_START = 0x1000
_PROGBITS, _SYMTAB, _STRTAB, _REL = 1, 2, 3, 9
_TYPES = {b".symtab": _SYMTAB, b".strtab": _STRTAB, b".shstrtab": _STRTAB, b".rel.debug_line": _REL}


def line_table(
    program: bytes,
    folders: Sequence[bytes] = (b"/src", b"."),
    files: Sequence[tuple[bytes, int]] = ((b"kernel.cu", 1), (b"helper.h", 2)),
) -> bytes:
    """Write one unit of a line table; each file has a name and the number of its folder."""
    head = struct.pack("<BBbBB", 1, 1, -5, 14, _FIRST_SPECIAL) + bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    head += b"".join(folder + b"\0" for folder in folders) + b"\0"
    head += b"".join(name + b"\0" + bytes((folder, 0, 0)) for name, folder in files) + b"\0"
    rest = struct.pack("<HI", 2, len(head)) + head + program
    return struct.pack("<I", len(rest)) + rest


def cubin(  # noqa: PLR0913 - the parts of a cubin
    table: bytes,
    functions: Sequence[bytes] = (b"kernel",),
    *,
    strings: bytes | None = None,
    symbols: bytes | None = None,
    relocations: bytes | None = None,
    code: bytes = bytes(64),
    nameless: tuple[bytes, int] = (b"", 0),
) -> bytes:
    """Write a cubin for 9.0 with these functions, in the order of the sequences in its line table.

    Args:
        table: Content of its section `.debug_line`.
        functions: Their names.
        strings: Content of `.strtab`, by default the names of the functions.
        symbols: Content of `.symtab`, by default one for each function.
        relocations: Content of `.rel.debug_line`, by default one for each sequence.
        code: Content of the section of each function.
        nameless: A long name, and how many further rows of sections have a name that starts within it.
    """
    starts = [0]
    for name in functions:
        starts.append(starts[-1] + len(name) + 1)
    if relocations is None:
        places, place = [], table.find(SET_ADDRESS)
        while place >= 0:
            places.append(place + 3)
            place = table.find(SET_ADDRESS, place + len(SET_ADDRESS))
        relocations = b"".join(
            struct.pack("<QII", place, 2, 1 + min(number, len(functions) - 1)) for number, place in enumerate(places)
        )
    sections = {
        b"": b"",
        b".shstrtab": b"",
        b".strtab": b"\0".join((b"", *functions, b"")) if strings is None else strings,
        b".symtab": bytes(24) + b"".join(struct.pack("<IBBHQQ", 1 + at, 0x12, 0, 6, 0, 0) for at in starts[:-1])
        if symbols is None
        else symbols,
        b".debug_line": table,
        b".rel.debug_line": relocations,
        **{b".text." + name: code for name in functions},
    }
    names = b"\0".join((*sections, nameless[0], b""))
    sections[b".shstrtab"] = names
    data, rows, at = bytearray(64), [], 0
    for name, content in sections.items():
        rows.append(_ROW.pack(at, _TYPES.get(name, _PROGBITS), 0, 0, len(data), len(content), 0, 0, 0, 0))
        data += content
        at += len(name) + 1
    rows += [
        _ROW.pack(at + number % len(nameless[0]), _PROGBITS, 0, 0, 64, 0, 0, 0, 0, 0) for number in range(nameless[1])
    ]
    head = b"\x7fELF\x02\x01\x01\x33" + bytes(8) + struct.pack("<HHIQQQI", 2, 190, 1, 0, 0, len(data), 90)
    data[:64] = head + struct.pack("<HHHHHH", 64, 0, 0, 64, len(rows), 1)
    return bytes(data) + b"".join(rows)


def source_of(
    binary: bytes,
    functions: Mapping[int, bytes] | None = None,
    files: Mapping[bytes, bytes] | None = None,
    reference: int = 1,
) -> bytes:
    """Encode a report's message of a module: its code, its functions by address, and its source files."""
    source = message("SourceData")(Binary=binary, Reference=reference)
    for address, name in (functions or {_START: b"kernel"}).items():
        source.Functions.Functions.add(Name=name, Address=address)
    for name, text in (files or {}).items():
        source.Files.Files.add(Name=name, Text=text)
    encoded: bytes = source.SerializeToString(deterministic=True)
    return encoded


def sampled(name: str = "kernel", instruction_count: int = 3, reference: int = 1) -> KernelSpec:
    """Describe a kernel with samples by instruction."""
    addresses = range(_START, _START + 16 * instruction_count, 16)
    metrics = {
        "gpu__time_duration.sum": 1000.0,
        "smsp__pcsamp_sample_count": Instances(dict.fromkeys(addresses, 2), 2 * instruction_count),
        "memory_l2_theoretical_sectors_global": Instances(dict.fromkeys(addresses, 1), instruction_count),
        "inst_executed": Instances(dict.fromkeys(addresses, 4), 4 * instruction_count),
    }
    return KernelSpec(name, metrics, module=reference)


def report_with(*sources: bytes, kernels: Sequence[KernelSpec] | None = None) -> bytes:
    """Write a report with these modules."""
    return encode_report(ReportSpec(kernels or (sampled(),), sources=sources, kernels_per_block=1000))


class Bomb(NamedTuple):
    """A report that would need too much memory or time.

    Attributes:
        name: What is too much.
        write: Writes it.
        note: The message to the user; empty if the report is read, after a while.
    """

    name: str
    write: Callable[[], bytes]
    note: str


def _of(program: bytes, **parts: Any) -> bytes:
    return report_with(source_of(cubin(line_table(program), **parts)))


def _many_modules() -> bytes:
    sources = (source_of(cubin(line_table(_plain(200_000))), reference=1 + number) for number in range(30))
    return report_with(*sources, kernels=[sampled(f"kernel_{number}", reference=1 + number) for number in range(30)])


def _many_functions() -> bytes:
    functions = {_START + 16 * number: b"kernel" for number in range(100_000)}
    kernels = [sampled(f"kernel_{number}") for number in range(500)]
    return report_with(source_of(cubin(line_table(_plain(1))), functions), kernels=kernels)


def _long_sources() -> bytes:
    source = source_of(cubin(line_table(_plain(1))), files={b"/src/kernel.cu": b"\n" * (64 << 20)})
    return report_with(source, kernels=[sampled(f"kernel_{number}") for number in range(20)])


def _long_name() -> bytes:
    table = line_table(_plain(1), files=((b"k" * 100_000, 1),))
    binary = cubin(table, code=bytes(16 * 100_000))
    return report_with(source_of(binary), kernels=[sampled(instruction_count=100_000)])


def brimful() -> bytes:
    """Write a report that nearly reaches all limits at once."""
    files = [(b"d" * 100 + b"%06d" % number, 1) for number in range(60_000)]
    used = b"".join(b"\x04" + _number(1 + number) + STEP for number in range(len(files)))
    table = line_table(SET_ADDRESS + STEP * 1000 + used + STEP * 450_000 + b"\x08" * 400_000 + END, files=files)
    steps = line_table(SET_ADDRESS + b"\x08" * ((8 << 20) - len(table) - 1000) + END)
    strings = b"\0kernel\0" + b"x" * (4 << 20) + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 6, 0, 0)
    symbols += b"".join(
        struct.pack("<IBBHQQ", len(strings) - 2 - number % 100, 0x12, 0, 6, 0, 0) for number in range(60_000)
    )
    at = (table + steps).rindex(SET_ADDRESS) + 3
    relocations = struct.pack("<QII", table.index(SET_ADDRESS) + 3, 2, 1) + struct.pack("<QII", at, 2, 1)
    relocations += b"".join(struct.pack("<QII", (1 << 30) + number, 2, 2 + number) for number in range(60_000))
    binary = cubin(
        table + steps,
        strings=strings,
        symbols=symbols,
        relocations=relocations,
        code=bytes(60 << 20),
        nameless=(b"x" * 60, 60_000),
    )
    text = b"ab\n" * (5 << 20)
    return report_with(
        source_of(binary, files={b"/src/" + files[0][0]: text}),
        kernels=[sampled(f"kernel_{number}", 1000) for number in range(20)],
    )


def _plain(row_count: int) -> bytes:
    return SET_ADDRESS + STEP * row_count + END


def _long_symbols(name_bytes: int, count: int) -> bytes:
    """Write a line table whose relocations name symbols that are all tails of one long name."""
    symbols = b"".join(struct.pack("<IBBHQQ", number % name_bytes, 0x12, 0, 6, 0, 0) for number in range(count))
    relocations = b"".join(struct.pack("<QII", place, 2, place) for place in range(count))
    return cubin(line_table(_plain(1)), strings=b"x" * name_bytes + b"\0", symbols=symbols, relocations=relocations)


def _long_files() -> bytes:
    """Write units that each use many files in one long folder."""
    files = [(b"f" * 100, 1) for _ in range(1_000)]
    program = b"".join(b"\x04" + _number(1 + number) + b"\x01" for number in range(len(files)))
    return b"".join(line_table(SET_ADDRESS + program + END, (b"d" * 100_000,), files) for _ in range(30))


def _overlapping() -> bytes:
    """Write units that each take everything after them, other units too, for the names of their folders."""
    length = 0x010101  # only its last byte is zero, so no list of names ends there
    head = struct.pack("<BBbBB", 1, 1, -5, 14, 1)  # no opcodes before the first special one, so no numbers of operands
    unit = struct.pack("<IHI", length, 2, 0x01010101) + head
    return (unit + b"d\0" * ((length + 4 - len(unit)) // 2)) * 120 + b"\0\0"


def _long_folder() -> bytes:
    files = [(b"f", 1)] * 60_000
    program = b"".join(b"\x04" + _number(1 + number) + b"\x01" for number in range(len(files)))
    return line_table(SET_ADDRESS + program + END, (b"d/" * 500_000,), files)


def _file_a_row() -> bytes:
    files = [(b"f%d" % number, 1) for number in range(300_000)]
    program = b"".join(b"\x04" + _number(1 + number) + STEP for number in range(len(files)))
    return line_table(SET_ADDRESS + program + END, files=files)


def _many_sequences(count: int) -> bytes:
    """Write a function of many sequences, which begin at relocations to one symbol."""
    table = line_table((SET_ADDRESS + STEP + END) * count)
    first = table.index(SET_ADDRESS) + 3
    step = len(SET_ADDRESS + STEP + END)
    relocations = b"".join(struct.pack("<QII", first + number * step, 2, 1) for number in range(count))
    return cubin(table, relocations=relocations)


def _shared_code() -> bytes:
    """Write a module in which the sections of all functions are the same large code."""
    functions = [b"kernel_%d" % number for number in range(3_000)]
    whole = bytearray(cubin(line_table(_plain(1)), functions, code=b""))
    code_at = len(whole)
    whole += bytes(8 << 20)
    (rows,) = struct.unpack_from("<Q", whole, 40)
    for number in range(6, 6 + len(functions)):
        struct.pack_into("<QQ", whole, rows + 64 * number + 24, code_at, 8 << 20)
    by_address = {_START + 16 * number: name for number, name in enumerate(functions)}
    return report_with(source_of(bytes(whole), by_address), kernels=[sampled(instruction_count=len(functions))])


def _number(value: int) -> bytes:
    """Encode a LEB128 number."""
    parts = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes(chain((part | 0x80 for part in parts[:-1]), parts[-1:]))


BOMBS = (
    Bomb(
        "sections named within one name", lambda: _of(_plain(1), nameless=(b"x" * (4 << 20), 60_000)), "bytes of names"
    ),
    Bomb("relocations to long names", lambda: report_with(source_of(_long_symbols(4 << 20, 60_000))), "bytes of names"),
    Bomb("millions of relocations", lambda: report_with(source_of(_long_symbols(100, 1_000_000))), "relocations"),
    Bomb("many sequences", lambda: report_with(source_of(_many_sequences(200_000))), "relocations"),
    Bomb("long names of files", lambda: report_with(source_of(cubin(_long_files()))), "bytes of names of files"),
    Bomb(
        "many files in a long folder", lambda: report_with(source_of(cubin(_long_folder()))), "bytes of names of files"
    ),
    Bomb("a file for each row", lambda: report_with(source_of(cubin(_file_a_row()))), "files and folders"),
    Bomb("units that overlap", lambda: report_with(source_of(cubin(_overlapping()))), "damaged"),
    Bomb("millions of rows", lambda: _of(_plain(7 << 20)), "rows of line tables"),
    Bomb("millions of steps", lambda: _of(SET_ADDRESS + b"\x08" * (24 << 20) + END), "bytes of line tables"),
    Bomb("numbers that grow", lambda: _of(SET_ADDRESS + (b"\x02" + b"\xff" * 9 + b"\x01\x01") * 500_000 + END), ""),
    Bomb("rows in many modules", _many_modules, "rows of line tables"),
    Bomb("functions that share their code", _shared_code, ""),
    Bomb("many functions, many kernels", _many_functions, ""),
    Bomb("long source files", _long_sources, "bytes of source files"),
    Bomb("a long name of a file in each instruction", _long_name, ""),
    Bomb("much code", lambda: _of(_plain(1), code=bytes(130 << 20)), "bytes of compiled code"),
)
"""Nothing about these is damaged but its size, and packed none is larger than a few MB."""
