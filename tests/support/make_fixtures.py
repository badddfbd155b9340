"""Writes the synthetic fixture reports and their entries in the manifest: `python tests/support/make_fixtures.py`.

Nothing here was measured. The amounts come from formulas, the durations from a share of a peak that the kernel is made
to reach; `fixtures/manifest.toml` says of each file what it shows.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

_TESTS = Path(__file__).parent.parent
if str(_TESTS) not in sys.path:
    sys.path.insert(0, str(_TESTS))

from support.attention import attention_kernels  # noqa: E402 - needs the path above
from support.chips import A100, ARCHITECTURES, H200, Chip  # noqa: E402
from support.ncu_rep_writer import KernelSpec, ReportSpec, SessionSpec, encode_report  # noqa: E402
from support.synthetic_kernels import Launch, Work, device_metrics, kernel_spec, launch_metrics  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = _TESTS.parent / "fixtures"
MANIFEST = "manifest.toml"
MARK = "# Synthetic reports: everything below is written by tests/support/make_fixtures.py.\n"

_HOW = "tests/support/make_fixtures.py"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Fixture:
    """One fixture report.

    Attributes:
        stem: File name without `.synthetic.ncu-rep`.
        shows: The verdict or property it is made to show.
        what: A sentence on its kernels.
    """

    stem: str
    chip: Chip
    shows: str
    what: str
    kernels: tuple[KernelSpec, ...]

    @property
    def path(self) -> str:
        """Path below the folder of fixtures."""
        return f"synthetic/{self.stem}.synthetic.ncu-rep"

    def encode(self) -> bytes:
        """Return the bytes of the report."""
        session = SessionSpec(
            process_name=f"/synthetic/{self.stem}",
            ncu_version=f"{self.chip.ncu_version} (build 0) (synthetic)",
            command_line=f"ncu --clock-control base -o {self.stem}.synthetic ./synthetic/{self.stem}",
        )
        return encode_report(ReportSpec(self.kernels, session))


def fixtures() -> tuple[Fixture, ...]:
    """Return all synthetic fixtures."""
    return (*_verdicts(), *_architectures(), _attention())


def manifest_entries() -> str:
    """Return the manifest's text on the synthetic fixtures."""
    return "\n".join(
        f'["{fixture.path}"]\n'
        f"synthetic = true\n"
        f'gpu = "{fixture.chip.name}"\n'
        f'shows = "{fixture.shows}"\n'
        f'what = "{fixture.what}"\n'
        f"kernels = {len(fixture.kernels)}\n"
        f'how = "{_HOW}"\n'
        for fixture in fixtures()
    )


def write_fixtures(folder: Path) -> None:
    """Write all fixtures below `folder`, and the manifest's part on them."""
    (folder / "synthetic").mkdir(parents=True, exist_ok=True)
    for fixture in fixtures():
        (folder / fixture.path).write_bytes(fixture.encode())
    manifest = folder / MANIFEST
    before = manifest.read_text(encoding="utf-8").partition(MARK)[0] if manifest.exists() else ""
    manifest.write_text(f"{before}{MARK}\n{manifest_entries()}", encoding="utf-8")


def _triad(chip: Chip, share: float = 0.92, elements: int = 1 << 28) -> Work:
    """Describe c = a + s * b over fp32 arrays, at a share of the chip's memory bandwidth."""
    array_bytes = 4 * elements
    warps = elements // 4 // 32
    load, store = chip.opcodes["load"], chip.opcodes["store"]
    return Work(
        name="stream_triad(const float4 *, const float4 *, float4 *, float, long)",
        chip=chip,
        launch=Launch((elements // 4 // 256, 1, 1), (256, 1, 1), registers=24),
        duration_ns=round(3 * array_bytes / (share * chip.dram_bytes_per_s) * 1e9),
        dram_read_bytes=2 * array_bytes,
        dram_write_bytes=array_bytes,
        l2_read_bytes=2 * array_bytes,
        l2_write_bytes=array_bytes,
        l1_tag_bytes=3 * array_bytes,
        global_wavefronts=3 * array_bytes // 128,
        warp_opcodes={load: 2 * warps, store: warps, "FFMA": 4 * warps, "IMAD.WIDE": 3 * warps, "ISETP.GE.AND": warps},
    )


def _gemm(chip: Chip, share: float = 0.80, size: int = 8192) -> Work:
    """Describe a 16-bit tensor-core GEMM at a share of the chip's dense peak, or an fp32 one where it has no row."""
    flop = 2 * size**3
    opcode, flop_each = chip.tensor_opcode or ("FFMA", 64)
    peak_flop = chip.sm_count * chip.sm_clock_hz * _gemm_flop_per_clk(chip)
    is_tcgen05 = opcode.startswith("UTC")
    math_inst = flop // flop_each
    tiles = (size // 128) ** 2
    operand_bytes = 2 if chip.tensor_opcode else 4
    tile_bytes = 2 * 128 * size * operand_bytes
    tensor_ops = {"src_bf16_dst_fp32": flop, "src_fp16_dst_fp32": 0, "src_tf32_dst_fp32": 0} if is_tcgen05 else {}
    return Work(
        name=f"gemm_{size}x{size}x{size}_{'bf16' if '.BF16' in opcode or is_tcgen05 else 'fp16' if chip.tensor_opcode else 'fp32'}"
        "<128, 128, 32>(Params)",
        chip=chip,
        launch=Launch((tiles, 1, 1), (128, 1, 1), registers=128, smem_bytes=16 * 1024, occupancy=0.24, eligible_warps=0.7),
        duration_ns=round(flop / (share * peak_flop) * 1e9),
        dram_read_bytes=8 * size * size,
        dram_write_bytes=4 * size * size,
        l2_read_bytes=tiles * tile_bytes // 4,
        l2_write_bytes=4 * size * size,
        l1_tag_bytes=tiles * tile_bytes // 4,
        global_wavefronts=tiles * tile_bytes // 4 // 128,
        smem_wavefronts=tiles * tile_bytes // 4 // 128 if is_tcgen05 else tiles * tile_bytes * 3 // 8 // 128,
        warp_opcodes={
            opcode: math_inst,
            chip.opcodes["copy"]: tiles * tile_bytes // 4 // 512,
            **({} if is_tcgen05 or not chip.tensor_opcode else {chip.opcodes["ldsm"]: tiles * tile_bytes * 3 // 8 // 512}),
            "IMAD.MOV.U32": tiles * size // 8,
            "LOP3.LUT": tiles * size // 8,
            chip.opcodes["store"]: tiles * 128 * 128 * 4 // 512,
        },
        tensor_ops=tensor_ops,
    )
