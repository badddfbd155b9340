"""Compare operations of the tensor cores by opcode table with counters, pipe activity, and problem sizes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from oracle_rows import COUNTS, ROUNDED, Pair, Row, pair_of, relative

from rooflens.model.roofline.opcodes import WARPS_PER_WARPGROUP, is_matrix, tensor_op

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from oracle_rows import Result

    from rooflens.model.records import Kernel

TENSOR_PCT = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
TENSOR_OPS = "sm__ops_path_tensor_"
WARPGROUP_ENDING = "GMMA."


def _matrix(kernel: Kernel) -> dict[str, int]:
    return {opcode: count for opcode, count in kernel.warp_opcodes.items() if is_matrix(opcode) and count}


def _counted(result: Result) -> float | None:
    """Return NVIDIA's count of tensor operations by base names, as their split repeats the same operations."""
    found = re.compile(rf"{TENSOR_OPS}src_\w+\.sum$")
    names = [name for name in result.stored if found.match(name) and "_sparsity_" not in name]
    return result.total(names) if names else None


def tensor_counters(results: Iterable[Result]) -> Iterator[Row]:
    """Compare the matrix opcodes of each kernel with NVIDIA's operation counters; a row for each mix of opcodes."""
    oracle, rows = f"operation counters `{TENSOR_OPS}*`", dict[str, list[Pair]]()
    for result in results:
        matrix, theirs = _matrix(result.kernel), _counted(result)
        if theirs and matrix:
            ours = sum(count * op.ops for opcode, count in matrix.items() if (op := tensor_op(opcode)))
            rows.setdefault(_names(matrix), []).append(pair_of(result, relative(ours, theirs)))
    for opcodes, pairs in sorted(rows.items()):
        if WARPGROUP_ENDING not in opcodes:
            what = f"tensor operations of {opcodes}"
            yield Row(f"tensor_{opcodes}", what, oracle, "relative", ROUNDED, COUNTS, tuple(pairs))
    pairs = [pair for opcodes, found in rows.items() if WARPGROUP_ENDING in opcodes for pair in found]
    what = "tensor operations of warpgroup opcodes (HGMMA, QGMMA, IGMMA)"
    yield Row("tensor_warpgroup", what, oracle, "relative", ROUNDED, COUNTS, tuple(pairs))


def _names(opcodes: Iterable[str]) -> str:
    return ", ".join(f"`{opcode}`" for opcode in sorted(opcodes))


def tensor_activity(results: Iterable[Result]) -> Iterator[Row]:
    """Compare operations by opcode over time and dense peak with the tensor pipe's busy cycles."""
    rows = dict[str, list[Pair]]()
    for result in results:
        theirs, matrix = result.number(TENSOR_PCT), _matrix(result.kernel)
        pipes = result.analysis.pipes.items()
        shares = [pipe.share for name, pipe in pipes if name.startswith("tensor_") and pipe.source == "opcode"]
        ours = sum(share for share in shares if share is not None)
        if theirs and matrix and shares:
            rows.setdefault(_names(matrix), []).append(pair_of(result, relative(ours * 100, theirs)))
    why = "a pipe is busy up to 5 % longer than its operations need at their dense peak"
    for opcodes, pairs in sorted(rows.items()):
        what = f"share of the dense peak by {opcodes}"
        yield Row(f"activity_{opcodes}", what, f"`{TENSOR_PCT}`", "relative", 0.05, why, tuple(pairs))


PRODUCTS: Mapping[tuple[str, int], float] = {
    # 256 x 256 blocks of a 16 x 16 tile; the sums are assumed to be as long as the sides.
    ("cuda-fused-linear-layer__profile_report_(1).ncu-rep", 2): 2 * 4096**3,
    # Two products in one kernel, 96 blocks of a 32 x 384 tile; then each alone, 24 x 4 blocks of a 128 x 96 tile.
    ("cutlass__384.ncu-rep", 0): 2 * 2 * 3072 * 384 * 384,
    ("cutlass__384.ncu-rep", 1): 2 * 3072 * 384 * 384,
    ("cutlass__384.ncu-rep", 2): 2 * 3072 * 384 * 384,
    # Causal attention, width 64: two products per pair of 64-wide tiles on or below the diagonal, 16 heads.
    ("blackwell-kernels__v5_swizzle_D64_N2048_causal.ncu-rep", 0): 2 * 2 * 64**3 * (32 * 33 / 2) * 16,
}
"""Report and result -> operations by the size of the problem, which stands in its grid, tile and the report's name."""


def products(results: Iterable[Result]) -> Row:
    """Compare operations by opcode with those of a problem of known size."""
    pairs = []
    for result in results:
        known = PRODUCTS.get((result.report, result.kernel.index))
        if known:
            pipes = result.analysis.pipes.items()
            ours = sum(pipe.amount or 0.0 for name, pipe in pipes if name.startswith("tensor_"))
            pairs.append(Pair(result.report, result.kernel.index, result.kernel.name, relative(ours, known)))
    what, oracle = "tensor operations by warp opcode table", "size of the problem, from grid, tile and report's name"
    return Row("tensor_size", what, oracle, "relative", ROUNDED, COUNTS, tuple(pairs))


class Quoted(Struct, frozen=True):
    """Numbers of a published profile whose report is not available.

    Attributes:
        executed: Instructions Executed of the opcode, over all warps.
        operations: NVIDIA's operation counter of the same launch.
        product: M, N and K of the product, rounded up to whole tiles as in the kernel's name.
    """

    kernel: str
    opcode: str
    executed: int
    operations: int
    product: tuple[int, int, int]

    @property
    def counts_per_instruction(self) -> float:
        """Return how often one warpgroup instruction is counted, according to NVIDIA's operations."""
        op = tensor_op(self.opcode)
        return self.executed * op.ops * WARPS_PER_WARPGROUP / self.operations if op else float("nan")


WARPGROUP_SOURCE = (
    "https://github.com/SamMausberg/verified-progress/blob/ea234a197b068e132f43b038bf020e2691c7e073/"
    "evidence/profiles/head_tensor_instructions.json"
)
WARPGROUP = (
    Quoted("nvjet_sm90_tst_512x8_64x3", "HGMMA.64x8x16.F32.BF16", 2_488_320, 10_192_158_720, (248_832, 8, 2_560)),
    Quoted("nvjet_sm90_tst_384x32_64x4", "HGMMA.64x32x16.F32.BF16", 2_488_320, 40_768_634_880, (248_832, 32, 2_560)),
)
"""cuBLAS on a GH200, ncu 2025.3.1: a bf16 product with a 248,320 x 2,560 matrix, for 1 and for 32 rows."""


def published_warpgroup() -> Row:
    """Compare our count of warpgroup work with published counters, and those with the size of the product."""
    pairs = []
    for index, quoted in enumerate(WARPGROUP):
        op, (m, n, k) = tensor_op(quoted.opcode), quoted.product
        ours = quoted.executed * op.ops if op else 0.0
        worst = max(relative(ours, quoted.operations), relative(quoted.operations, 2.0 * m * n * k), key=abs)
        pairs.append(Pair("head_tensor_instructions.json", index, f"{quoted.kernel}, {quoted.opcode}", worst))
    what = "tensor operations of HGMMA, published without the report"
    oracle = "operation counter `op_hgmma_src_bf16_dst_fp32`, and the size of the product"
    return Row("warpgroup_published", what, oracle, "relative", ROUNDED, COUNTS, tuple(pairs))
