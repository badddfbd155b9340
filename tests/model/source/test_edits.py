"""The statement that a move changes, and bank conflicts replayed from the source, on files written here."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.kernels import make_kernel

from rooflens.model.records import Edit, Hotspot, Move, MoveKind, Place, SourceFile
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
    made = _edited(text, spot, Move("do it", "pad", finding=finding, where=(Place(spot, 1.0),)), block)
    assert made is not None
    return made


def edit_without_place(
    text: str, kind: MoveKind, line: int = 1, block: tuple[int, int, int] = (128, 1, 1)
) -> Edit | None:
    """Return the edit of a move that names no line, of a kernel whose hot line is one of a file."""
    return _edited(text, Hotspot("line", file="/src/k.cu", line=line), Move("do it", kind), block)


def _edited(text: str, spot: Hotspot, move: Move, block: tuple[int, int, int]) -> Edit | None:
    kernel = make_kernel(
        block=block,
        compute_capability="8.0",
        function_name="turn",
        hotspots=(spot,),
        sources={"/src/k.cu": SourceFile(text)},
    )
    (made,) = with_edits(kernel, [move], [], "turn-0")
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


def test_an_array_that_all_access_by_columns_is_transposed() -> None:
    """Swapped indices cost no memory: the statement of the line changes, the others are named, and the array turns."""
    by_columns = TILE.replace("tile[threadIdx.y][threadIdx.x] =", "tile[threadIdx.x][threadIdx.y] =")
    edit = edit_of(by_columns, 7, "bank_conflicts", shared_wavefronts=32.0, shared_excess_wavefronts=31.0)
    assert (edit.line, edit.ways_before, edit.ways_after) == (7, 32.0, 1.0)
    assert edit.after == (
        "out[threadIdx.y * SIDE + threadIdx.x] = tile[threadIdx.y][threadIdx.x];",
        "// and at line 5: tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * SIDE + threadIdx.x];",
    )
    oblong = by_columns.replace("[ROWS][SIDE]", "[ROWS][SIDE * 2]")
    edit = edit_of(oblong, 7, "bank_conflicts", shared_wavefronts=32.0, shared_excess_wavefronts=31.0)
    assert edit.after[0] == "__shared__ float tile[SIDE * 2][ROWS];"


SUM = """\
__constant__ float weights[8];
__global__ void turn(float* a, float* out, int n) {
    __shared__ float part[128];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = a[at] * weights[n % 8];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
void run(float* a, float* out, int n) {
    const int blocks = n / 128;
    dim3 grid(blocks);
    turn<<<grid, 128>>>(a, out, n);
}
"""


def test_a_move_without_a_line_shows_what_it_changes() -> None:
    """The grid is followed to what sets its size; fusing shows the launch, elements the index, a constant its use."""
    edits = {kind: edit_without_place(SUM, kind, line=5) for kind in ("blocks", "fuse", "elements", "index")}
    assert {kind: edit and edit.line for kind, edit in edits.items()} == {
        "blocks": 14,
        "fuse": 16,
        "elements": 4,
        "index": 5,
    }
    other = SUM.replace("}\nvoid run", "}\nvoid warm(float* a) { turn<<<1, 128>>>(a, a, 1); }\nvoid run")
    assert edit_without_place(other, "blocks") is None  # launches with different grids
    assert edit_without_place(other, "graph") is None


def test_a_reduction_ends_within_a_warp() -> None:
    """A loop that halves the threads stops at a warp; a body that does more, or goes on with more threads, is left."""
    edit = edit_without_place(SUM, "shuffle")
    assert edit is not None
    assert (edit.line, edit.after[0]) == (
        7,
        "for (int half = blockDim.x / 2; half >= 32; half /= 2) { ... }  // its body as it is",
    )
    assert edit.after[2] == "if (threadIdx.x == 0) part[0] = sum;"
    edit = edit_of(SUM, 7, "stall_barrier", (128, 1, 1))
    assert edit.after[1].endswith("part[threadIdx.x] += part[threadIdx.x + half]; __syncwarp(); }")
    for changed in (
        SUM.replace("half /= 2)", "half -= 1)"),
        SUM.replace("blockDim.x / 2;", "blockDim.x / 4;"),
        SUM.replace("if (threadIdx.x == 0) out", "out"),
        SUM.replace("        __syncthreads();\n    }", "        a[at] = half; __syncthreads();\n    }"),
    ):
        assert edit_without_place(changed, "shuffle") is None
    assert edit_without_place(SUM, "shuffle", block=(96, 1, 1)) is None


def test_steps_that_double_become_steps_that_halve() -> None:
    """Indices far apart become adjacent ones, where the loop is the whole sum and its threads are all of the block."""
    text = SUM.replace(
        "for (int half = blockDim.x / 2; half > 0; half /= 2)", "for (int half = 1; half < 128; half *= 2)"
    ).replace(
        "if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];",
        "int at = half * 2 * threadIdx.x; if (at < blockDim.x) { part[at] += part[at + half]; }",
    )
    edit = edit_of(text, 7, "stall_barrier", (128, 1, 1))
    assert edit.after[0] == "for (int half = blockDim.x / 2; half > 0; half >>= 1) {"
    assert edit.after[1].startswith("    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];")
    for one, other in (
        ("half * 2 * ", "half * 3 * "),
        ("half = 1", "half = 2"),
        ("half < 128", "half < 64"),
        ("part[at] +=", "part[at] -="),
    ):
        assert edit_of(text.replace(one, other), 7, "stall_barrier", (128, 1, 1)).after == ()


def test_the_head_of_a_kernel_is_shown_only_where_no_other_line_is() -> None:
    """What a move changes stands in the body: a hot head, which loads the parameters, comes last."""
    head, body = (Hotspot("line", file="/src/k.cu", line=line) for line in (3, 7))
    move = Move("do it", "pad", finding="any", where=(Place(head, 0.6), Place(body, 0.4)))
    both, alone = (
        _edited(TILE, head, move, (32, 32, 1)),
        _edited(TILE, head, replace(move, where=move.where[:1]), (32, 32, 1)),
    )
    assert (both and both.line, alone and alone.line) == (7, 3)


def test_threads_change_places_only_where_nothing_depends_on_their_warp() -> None:
    """`threadIdx.x` and `threadIdx.y` are swapped where the indices say that it helps, and no shuffle is in sight."""
    text = (
        "__global__ void turn(const float* a, float* b, int n) {\n"
        "  int row = threadIdx.x;\n  int col = threadIdx.y;\n  b[row * n + col] = a[row * n + col];\n}\n"
    )
    edit = edit_of(text, 4, "uncoalesced_global_load")
    assert (edit.line, edit.last_line, edit.after) == (2, 3, ("int row = threadIdx.y;", "int col = threadIdx.x;"))
    apart = text.replace("  int col", "  int other = 1;\n  const uint col")
    assert edit_of(apart, 5, "uncoalesced_global_load").after == (
        "int row = threadIdx.y;",
        "int other = 1;",
        "const uint col = threadIdx.x;",
    )
    further = text.replace("  int col", "  int other = 1;\n  int more = 2;\n  int col")
    assert edit_of(further, 6, "uncoalesced_global_load").after == (
        "int row = threadIdx.y;  // line 2",
        "int col = threadIdx.x;  // line 5",
    )
    shuffled = text.replace("= a[row * n + col]", "= __shfl_sync(~0u, a[row * n + col], 0)")
    assert edit_of(shuffled, 4, "uncoalesced_global_load").after == ()
    hidden = "__device__ int lane() { return threadIdx.x; }\n" + text.replace("col] = a", "col] = lane() + a")
    assert edit_of(hidden, 5, "uncoalesced_global_load").after == ()


def test_a_warp_adds_before_an_atomic_only_to_one_address() -> None:
    """The address must be the same in all lanes: a pointer that the kernel itself sets may not be."""
    text = "__global__ void turn(int* sum_of, int* v) {\n  atomicAdd(sum_of, v[threadIdx.x]);\n}\n"
    edit = edit_of(text, 2, "contended_atomics", (128, 1, 1))
    assert edit.after[0] == "auto sum = v[threadIdx.x];"
    moved = text.replace("atomicAdd", "int* bin = sum_of + threadIdx.x;\n  atomicAdd").replace("(sum_of, v", "(bin, v")
    assert edit_of(moved, 3, "contended_atomics", (128, 1, 1)).after == ()


def test_what_is_converted_is_not_copied_past_registers() -> None:
    """An asynchronous copy moves bytes: elements of another type of the same size are left."""
    text = (
        "__global__ void turn(const float* a, float* b) {\n  __shared__ float tile[128];\n"
        "  tile[threadIdx.x] = a[threadIdx.x];\n  __syncthreads();\n  b[threadIdx.x] = tile[127 - threadIdx.x];\n}\n"
    )
    assert (
        "__pipeline_memcpy_async(&tile[threadIdx.x], &a[threadIdx.x]" in edit_of(text, 3, "unoverlapped_loads").after[0]
    )
    other = text.replace("const float* a", "const int* a")
    assert edit_of(other, 3, "unoverlapped_loads").after == ()


def test_what_no_rule_knows_is_the_statement_alone() -> None:
    """A move without a rule of its own shows its whole statement, and a line without a statement shows nothing."""
    edit = edit_of("__global__ void turn(float* a) {\n  a[0] =\n    1.0f;\n}\n", 3, "low_occupancy_of_nothing")
    assert (edit.line, edit.last_line, edit.before, edit.after) == (2, 3, ("a[0] =", "1.0f;"), ())
    spot = Hotspot("line", file="/src/k.cu", line=99)
    kernel = make_kernel(hotspots=(spot,), sources={"/src/k.cu": SourceFile(TILE)})
    (made,) = with_edits(kernel, [Move("x", "latency", finding="bank_conflicts", where=(Place(spot, 1.0),))], [], "k")
    assert made.edit is None
