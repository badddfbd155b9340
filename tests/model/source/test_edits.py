"""The statement that a move changes, and bank conflicts replayed from the source, on files written here."""

from __future__ import annotations

import pytest
from support.kernels import make_kernel

from rooflens.model.records import Edit, Hotspot, Move, Place, SourceFile
from rooflens.model.source.banks import Replay
from rooflens.model.source.edits import with_edits
from rooflens.model.source.text import SourceText

TILE = """\
#define SIDE 32
constexpr int ROWS = SIDE;
__global__ void turn(const float* in, float* out) {
    __shared__ float tile[ROWS][SIDE];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * SIDE + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * SIDE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""


def edit_of(text: str, line: int, finding: str, block: tuple[int, int, int] = (32, 32, 1), **measures: float) -> Edit:
    """Return the edit of a move about a line of a file."""
    spot = Hotspot("line", file="/src/k.cu", line=line, measures=measures)
    kernel = make_kernel(block=block, function_name="turn", hotspots=(spot,), sources={"/src/k.cu": SourceFile(text)})
    move = Move("do it", "latency", finding=finding, where=(Place(spot, 1.0),))
    (made,) = with_edits(kernel, [move], [], "turn-0")
    assert made.edit is not None
    return made.edit


@pytest.mark.parametrize(
    ("element", "read", "block", "ways"),
    [
        ("float", "tile[threadIdx.x][threadIdx.y]", (32, 32, 1), 32),
        ("float", "tile[threadIdx.y][threadIdx.x]", (32, 32, 1), 1),
        ("float", "tile[threadIdx.y][(threadIdx.x * 2) % SIDE]", (32, 32, 1), 1),  # lanes that read one word share it
        ("float", "tile[threadIdx.x / 2][threadIdx.y]", (32, 32, 1), 16),
        ("double", "tile[threadIdx.y][threadIdx.x]", (32, 32, 1), 1),  # two passes, as its bytes need
        ("float", "tile[threadIdx.x][threadIdx.y]", (16, 16, 1), 16),  # two rows of sixteen in a warp
    ],
)
def test_ways_are_those_of_32_banks(element: str, read: str, block: tuple[int, int, int], ways: float) -> None:
    """Passes for each that the bytes need, worked out by hand."""
    text = TILE.replace("float tile", f"{element} tile").replace("= tile[threadIdx.x][threadIdx.y]", f"= {read}")
    source = SourceText(text)
    statement = source.statement_at(7)
    function = None if statement is None else source.function_at(statement.start)
    assert statement is not None
    assert function is not None
    replay = Replay(source, make_kernel(block=block, function_name="turn"), function)
    assert replay.at(statement).ways == pytest.approx(ways)


def test_a_padded_declaration_is_sketched_where_the_replay_is_what_was_counted() -> None:
    """The array's declaration changes, not the access; with a count that differs the statement alone is shown."""
    edit = edit_of(TILE, 7, "bank_conflicts", shared_wavefronts=32.0, shared_excess_wavefronts=31.0)
    assert edit.after == ("__shared__ float tile[ROWS][SIDE + 1];",)
    assert (edit.line, edit.before) == (4, ("__shared__ float tile[ROWS][SIDE];",))
    assert (edit.ways_before, edit.ways_after) == (32.0, 1.0)
    assert edit.check == "rooflens compare BEFORE AFTER --kernel turn-0"
    other = edit_of(TILE, 7, "bank_conflicts", shared_wavefronts=4.0, shared_excess_wavefronts=3.0)
    assert (other.line, other.after, other.ways_after) == (7, (), None)


def test_what_no_rule_knows_is_the_statement_alone() -> None:
    """A move without a rule of its own shows its whole statement, and a line without a statement shows nothing."""
    edit = edit_of("__global__ void turn(float* a) {\n  a[0] =\n    1.0f;\n}\n", 3, "low_occupancy_of_nothing")
    assert (edit.line, edit.last_line, edit.before, edit.after) == (2, 3, ("a[0] =", "1.0f;"), ())
    spot = Hotspot("line", file="/src/k.cu", line=99)
    kernel = make_kernel(hotspots=(spot,), sources={"/src/k.cu": SourceFile(TILE)})
    (made,) = with_edits(kernel, [Move("x", "latency", finding="bank_conflicts", where=(Place(spot, 1.0),))], [], "k")
    assert made.edit is None
