"""Source lines of instructions, from cubins that are assembled here."""

from __future__ import annotations

from itertools import accumulate, pairwise

from support.cubin_writer import END, SET_ADDRESS, cubin, line_table, source_of

from rooflens.ingest.cubin.budget import CodeBudget
from rooflens.ingest.cubin.elf import Cubin
from rooflens.ingest.cubin.lines import SourceLines, read_lines
from rooflens.ingest.cubin.modules import Modules
from rooflens.ingest.messages.messages import message

_INLINED = b"\0\x03\x90\x01\x00"
"""NVIDIA's opcode for a row that was inlined into row 1."""
_OUT = b"\0\x03\x90\x00\x00"
"""The same for a row that was not inlined."""


_PROGRAM = (
    SET_ADDRESS
    + b"\x03\x09\x01"  # line 10 at 0
    + b"\x04\x02\x03\x15" + _INLINED + b"\x01"  # and there what was inlined: line 31 of the helper
    + b"\x02\x10\x01"  # that alone at 16
    + b"\x04\x01\x03\x6b\x02\x10" + _OUT + b"\x01"  # line 10 again at 32
    + b"\x02\x20" + END
)  # fmt: skip


def _written(program: bytes) -> bytes:
    return cubin(line_table(program))


def _lines(program: bytes) -> SourceLines:
    budget = CodeBudget()
    return read_lines(Cubin(_written(program), budget), budget).of[b"kernel"]


def test_the_first_row_at_an_address_counts() -> None:
    """Inlined code counts for the line of the call, and the helper's own line counts elsewhere."""
    lines = _lines(_PROGRAM)
    places = [lines.at(offset) for offset in (0, 16, 24, 32)]
    assert places == [("/src/kernel.cu", 10), ("helper.h", 31), ("helper.h", 31), ("/src/kernel.cu", 10)]


def test_a_path_leads_through_the_calls() -> None:
    """What was inlined has the line of the call before its own; a row alone at its address does, too."""
    lines = _lines(_PROGRAM)
    called = (("/src/kernel.cu", 10), ("helper.h", 31))
    assert [lines.path(offset) for offset in (0, 16, 32)] == [called, called, (("/src/kernel.cu", 10),)]


def test_behind_the_end_of_a_function_is_no_line() -> None:
    """A line ends at the end of its function."""
    lines = _lines(_PROGRAM)
    assert lines.at(63) is not None
    assert lines.at(64) is None


def _modules(*binaries: bytes) -> Modules:
    files = {b"/src/kernel.cu": b"__global__\n"}
    sources = [source_of(binary, {0x1000: b"kernel"}, files, reference=7) for binary in binaries]
    ends = [*accumulate(map(len, sources), initial=0)]
    return Modules(b"".join(sources), pairwise(ends))


_OF_SEVEN = message("SourceData")(Reference=7).SerializeToString()


def test_a_module_places_addresses_in_its_functions() -> None:
    """An address is an offset into the function loaded before it; before all functions it has none."""
    module = _modules(_written(_PROGRAM)).module(_OF_SEVEN, "kernel")
    listing = module.listing(b"kernel", None) if module else None
    assert listing is not None
    assert [listing.line(address) for address in (0x0FFF, 0x1010)] == [None, ("helper.h", 31)]
    assert listing.source("/src/kernel.cu").text == "__global__\n"


def test_a_damaged_cubin_is_none_or_reads_as_one() -> None:
    """Missing or changed bytes give no module and a note, never another error."""
    whole = _written(_PROGRAM)
    for cut in range(0, len(whole), 7):
        for damaged in (whole[:cut], whole[:cut] + b"\xff" + whole[cut + 1 :]):
            modules = _modules(damaged or b"\0")
            module = modules.module(_OF_SEVEN, "kernel")
            assert (module is None) == bool(modules.notes), cut
            assert module is None or module.listing(b"kernel", 0) is not None, cut


def test_a_line_that_no_file_has_is_not_known() -> None:
    """Line numbers below 1 or above 31 bits are ignored as damage; the rest of the table is read."""
    far = b"\x03" + b"\xff" * 5 + b"\x07"
    lines = _lines(SET_ADDRESS + b"\x01" + b"\x02\x10" + far + b"\x01" + b"\x02\x20" + END)
    assert [lines.at(0), lines.at(16)] == [("/src/kernel.cu", 1), None]


def test_two_modules_of_one_name_are_none() -> None:
    """If programs profiled together give two modules one number, neither is used."""
    assert _modules(_written(_PROGRAM), _written(_PROGRAM + b"\0\x01\x01")).module(_OF_SEVEN, "kernel") is None
