"""Hold which source line an instruction comes from, by cubins that are put together here."""

from __future__ import annotations

import struct

import pytest

from rooflens.ingest.cubin.elf import Cubin
from rooflens.ingest.cubin.lines import read_lines
from rooflens.ingest.cubin.modules import Modules
from rooflens.ingest.messages.messages import message

_DEBUG, _RELOCATIONS = b".debug_line", b".rel.debug_line"
_INLINED = b"\0\x03\x90\x01\x00"
"""What NVIDIA says of a row that was inlined into row 1."""
_SET_ADDRESS = b"\0\x09\x02" + bytes(8)
_END = b"\0\x01\x01"


def _table(program: bytes) -> bytes:
    """Write a line table of two files, `/src/kernel.cu` and `./helper.h`."""
    head = struct.pack("<BBbBB", 1, 1, -5, 14, 10) + bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    head += b"/src\0.\0\0" + b"kernel.cu\0\x01\0\0" + b"helper.h\0\x02\0\0" + b"\0"
    rest = struct.pack("<HI", 2, len(head)) + head + program
    return struct.pack("<I", len(rest)) + rest


def _cubin(program: bytes) -> bytes:
    """Write a cubin for 9.0 with one function, `kernel`, and its line table."""
    table = _table(program)
    place = table.index(_SET_ADDRESS) + 3
    sections = {
        b"": b"",
        b".shstrtab": b"",
        b".strtab": b"\0kernel\0",
        b".symtab": bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 6, 0, 0),
        _DEBUG: table,
        _RELOCATIONS: struct.pack("<QII", place, 2, 1),
        b".text.kernel": bytes(64),
    }
    names = b"\0".join(sections) + b"\0"
    sections[b".shstrtab"] = names
    data, rows = bytearray(64), []
    for name, content in sections.items():
        rows.append(
            struct.pack(
                "<IIQQQQIIQQ", names.index(name + b"\0") if name else 0, 1, 0, 0, len(data), len(content), 0, 0, 0, 0
            )
        )
        data += content
    head = b"\x7fELF\x02\x01\x01\x33" + bytes(8) + struct.pack("<HHIQQQI", 2, 190, 1, 0, 0, len(data), 90)
    data[:64] = head + struct.pack("<HHHHHH", 64, 0, 0, 64, len(rows), 1)
    return bytes(data) + b"".join(rows)


_PROGRAM = (
    _SET_ADDRESS
    + b"\x03\x09\x01"  # line 10 at 0
    + b"\x04\x02\x03\x15" + _INLINED + b"\x01"  # and there what was inlined: line 31 of the helper
    + b"\x02\x10\x01"  # that alone at 16
    + b"\x04\x01\x03\x6b\x02\x10\x01"  # line 10 again at 32
    + b"\x02\x20" + _END
)  # fmt: skip


def test_the_first_row_at_an_address_counts() -> None:
    """Where one function was inlined into another the line of the call counts, and the helper's own elsewhere."""
    lines = read_lines(Cubin(_cubin(_PROGRAM)))[b"kernel"]
    places = [lines.at(offset) for offset in (0, 16, 24, 32)]
    assert places == [("/src/kernel.cu", 10), ("helper.h", 31), ("helper.h", 31), ("/src/kernel.cu", 10)]


def test_behind_the_end_of_a_function_is_no_line() -> None:
    """A line reaches no further than its function."""
    lines = read_lines(Cubin(_cubin(_PROGRAM)))[b"kernel"]
    assert lines.at(63) is not None
    assert lines.at(64) is None


def _modules(*binaries: bytes) -> Modules:
    sources = [message("SourceData")(Reference=7, Binary=binary) for binary in binaries]
    sources[0].Functions.Functions.add(Name=b"kernel", Address=0x1000)
    sources[0].Files.Files.add(Name=b"/src/kernel.cu", Text=b"__global__\n")
    return Modules(source.SerializeToString() for source in sources)


_OF_SEVEN = message("SourceData")(Reference=7).SerializeToString()


def test_a_module_places_addresses_in_its_functions() -> None:
    """An address is an offset in the function that was loaded before it; before all of them it is nowhere."""
    module = _modules(_cubin(_PROGRAM)).module(_OF_SEVEN)
    listing = module.listing(b"kernel", None) if module else None
    assert listing is not None
    assert [listing.line(address) for address in (0x0FFF, 0x1010)] == [None, ("helper.h", 31)]
    assert listing.source_files() == {"/src/kernel.cu": "__global__\n"}


@pytest.mark.parametrize("cut", range(0, len(_cubin(_PROGRAM)), 7))
def test_a_damaged_cubin_is_none_or_reads_as_one(cut: int) -> None:
    """Whatever bytes are missing or changed, nothing but no module comes of it, and no other error."""
    whole = _cubin(_PROGRAM)
    for damaged in (whole[:cut], whole[:cut] + b"\xff" + whole[cut + 1 :]):
        module = _modules(damaged or b"\0").module(_OF_SEVEN)
        assert module is None or module.listing(b"kernel", 0) is not None


def test_two_modules_of_one_name_are_none() -> None:
    """Programs profiled together may give two modules one number: then neither is taken for the other."""
    assert _modules(_cubin(_PROGRAM), _cubin(_PROGRAM + b"\0\x01\x01")).module(_OF_SEVEN) is None
