from __future__ import annotations

from support.loops import for_all

from rooflens.model.roofline.opcodes import (
    THREAD_FLOP,
    is_tcgen05,
    opcode_group,
    tensor_op,
    thread_flop,
)


@for_all(
    "opcode, dtype, flop",
    [
        ("FADD", "fp32", 1),
        ("FMUL.FTZ", "fp32", 1),
        ("FFMA", "fp32", 2),
        ("FFMA.RZ", "fp32", 2),
        ("FFMA32I", "fp32", 2),
        ("FADD2", "fp32", 2),
        ("FMUL2", "fp32", 2),
        ("FFMA2", "fp32", 4),
        ("FFMA2.FTZ.RN", "fp32", 4),
        ("DADD", "fp64", 1),
        ("DMUL", "fp64", 1),
        ("DFMA", "fp64", 2),
        ("DFMA.RM", "fp64", 2),
        ("HADD2", "fp16", 2),
        ("HADD2.BF16_V2", "fp16", 2),
        ("HMUL2", "fp16", 2),
        ("HFMA2", "fp16", 4),
        ("HFMA2.BF16_V2", "fp16", 4),
        ("HFMA2.MMA", "fp16", 4),
    ],
)
def test_arithmetic_opcodes_count_their_flops(opcode: str, dtype: str, flop: int) -> None:
    """A multiply-add is two FLOPs, a packed pair twice that, whatever the rounding or flushing modifiers."""
    assert thread_flop(opcode) == (dtype, flop)


@for_all(
    "opcode",
    [
        "HADD2.F32",
        "HADD2.F32.FTZ",
        "MUFU.EX2",
        "FSETP.GT.AND",
        "FSEL",
        "FMNMX",
        "FCHK",
        "DSETP",
        "F2F.F16.F32",
        "IMAD",
        "LDG.E.128",
        "HMMA.16816.F32",
        "DMMA.8x8x4",
        "FADDX",
        "",
        "F",
    ],
)
def test_other_opcodes_are_no_thread_flop(opcode: str) -> None:
    """Conversions such as `HADD2.F32`, comparisons, special functions and matrix instructions are not thread FLOPs."""
    assert thread_flop(opcode) is None


@for_all(
    "opcode, dtype, ops",
    [
        ("HMMA.884.F32.F32.STEP0", "fp16", 512),
        ("HMMA.1688.F32", "fp16", 2048),
        ("HMMA.1688.F16", "fp16", 2048),
        ("HMMA.1688.F32.BF16", "bf16", 2048),
        ("HMMA.1684.F32.TF32", "tf32", 1024),
        ("HMMA.1688.F32.TF32", "tf32", 2048),
        ("HMMA.16816.F32", "fp16", 4096),
        ("HMMA.16816.F32.BF16", "bf16", 4096),
        ("IMMA.8816.S8.S8.SAT", "int8", 2048),
        ("IMMA.16816.U8.S8", "int8", 4096),
        ("IMMA.16832.S8.S8.SAT", "int8", 8192),
        ("IMMA.8832.S4.S4", "int4", 4096),
        ("IMMA.16864.U4.U4", "int4", 16384),
        ("BMMA.88128.XOR.POPC", "int1", 16384),
        ("BMMA.168256.AND.POPC", "int1", 65536),
        ("DMMA.884", "fp64", 512),
        ("DMMA.8x8x4", "fp64", 512),
        ("DMMA.16x8x16", "fp64", 4096),
        ("QMMA.16832.F32.E4M3.E4M3", "fp8", 8192),
        ("QMMA.16832.F16.E5M2.E4M3", "fp8", 8192),
        ("QMMA.16832.F32.E3M2.E2M1", "fp6", 8192),
        ("QMMA.SF.16832.F32.E4M3.E4M3.E8", "fp8", 8192),
        ("QMMA.16816.F32.E4M3.E4M3", "fp8", 4096),
        ("OMMA.SF.16864.F32.E2M1.E2M1.E8", "fp4", 16384),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", "fp4", 16384),
    ],
)
def test_warp_wide_shapes_count_two_operations_a_multiply_add(opcode: str, dtype: str, ops: int) -> None:
    """An opcode's digits are M, N and K of one warp's product with 2MNK operations; its suffix names the type."""
    op = tensor_op(opcode)
    assert op is not None
    assert (op.dtype, op.ops, op.warpgroup, op.sparse) == (dtype, ops, False, False)


@for_all(
    "opcode, dtype, ops",
    [
        ("HGMMA.64x64x16.F32", "fp16", 32768),
        ("HGMMA.64x256x16.F32.BF16", "bf16", 131072),
        ("HGMMA.64x128x8.F32.TF32", "tf32", 32768),
        ("IGMMA.64x128x32.S8.S8", "int8", 131072),
        ("QGMMA.64x8x32.F32.E4M3.E4M3", "fp8", 8192),
        ("BGMMA.64x8x256.AND.POPC", "int1", 65536),
    ],
)
def test_warpgroup_shapes_count_a_quarter_for_each_warp(opcode: str, dtype: str, ops: int) -> None:
    """Four warps issue one 64xNxK product together, so each count is a quarter of 2MNK."""
    op = tensor_op(opcode)
    assert op is not None
    assert (op.dtype, op.ops, op.warpgroup) == (dtype, ops, True)


@for_all(
    "opcode, ops",
    [
        ("HMMA.SP.16832.F32.BF16", 8192),
        ("HMMA.SP.16816.F32", 4096),
        ("IMMA.SP.16864.S8.S8", 16384),
        ("QMMA.SP.16864.F32.E4M3.E4M3", 16384),
        ("OMMA.SF.SP.168128.F32.E2M1.E2M1.E8", 32768),
        ("HGMMA.SP.64x64x32.F32.BF16", 65536),
    ],
)
def test_sparse_opcodes_count_their_nominal_work(opcode: str, ops: int) -> None:
    """A 2:4 sparse instruction is marked, and counts its nominal product."""
    op = tensor_op(opcode)
    assert op is not None
    assert (op.sparse, op.ops) == (True, ops)


@for_all(
    "opcode, half",
    [
        ("HMMA.16816.F16", True),
        ("HMMA.1688.F16", True),
        ("HMMA.884.F16.F16.STEP0", True),
        ("HGMMA.64x64x16.F16", True),
        ("QMMA.16832.F16.E4M3.E4M3", True),
        ("HMMA.16816.F32", False),
        ("HMMA.16816.F32.BF16", False),
        ("IMMA.16832.S8.S8", False),
    ],
)
def test_half_accumulation_is_told_from_float(opcode: str, *, half: bool) -> None:
    """fp16 accumulators have their own roof on some chips, so the opcode's accumulator type is kept."""
    op = tensor_op(opcode)
    assert op is not None
    assert op.half_accumulate is half


@for_all(
    "opcode", ["HFMA2.MMA", "FFMA", "UTCHMMA", "UTCQMMA.2CTA", "HMMA", "HMMA.F32", "HMMA.999.F32", "HMMAX.16816", ""]
)
def test_no_shape_is_guessed(opcode: str) -> None:
    """`HFMA2.MMA` is not a matrix instruction, tcgen05 has no shape, and an unknown shape stays unknown."""
    assert tensor_op(opcode) is None


def test_volta_half_accumulation_takes_two_steps_and_not_four() -> None:
    """NVIDIA's assembler makes two steps from an `mma.m8n8k4` with fp16 results: 4 x 2x8x8x4 = 2,048 FLOPs."""
    op = tensor_op("HMMA.884.F16.F16.STEP0")
    assert op is not None
    assert 2 * op.ops == 2048


def test_fp4_operands_of_the_fp8_instruction_are_not_held_against_the_fp4_roof() -> None:
    """QMMA runs fp4 operands at its own rate, which NVIDIA counts as `src_fp4_fp6`, separately from OMMA."""
    op = tensor_op("QMMA.16832.F32.E2M1.E2M1")
    assert op is not None
    assert op.dtype == "fp6"


@for_all(
    "opcode, expected",
    [
        ("UTCHMMA", True),
        ("UTCHMMA.2CTA", True),
        ("UTCQMMA", True),
        ("UTCIMMA", True),
        ("UTCOMMA.4X", True),
        ("UTCBAR", False),
        ("UTCCP.T.S", False),
        ("UTCATOMSWS", False),
        ("HMMA.16816.F32", False),
        ("UTMALDG.2D", False),
    ],
)
def test_tcgen05_products_are_recognised(opcode: str, *, expected: bool) -> None:
    """Only matrix products among the tcgen05 opcodes count as such, not copies and barriers."""
    assert is_tcgen05(opcode) is expected


@for_all(
    "opcodes, group",
    [
        ("FFMA FADD.FTZ FMUL FFMA2 FSETP.GT.AND FMNMX", "FP32"),
        ("DFMA DSETP.MAX.AND", "FP64"),
        ("HFMA2.MMA HADD2.F32 HMUL2", "FP16"),
        ("HMMA.16816.F32.BF16 IMMA.16832.S8.S8 HGMMA.64x128x16.F32 UTCHMMA.2CTA QMMA OMMA.SF", "matrix products"),
        ("MUFU.EX2", "special functions"),
        ("F2F.F64.F32 I2F I2FP.F32.S32 F2FP.BF16.PACK_AB F2I.FTZ.U32", "conversions"),
        ("LDG.E.128 STG.E LD.E ATOMG.E.ADD RED.E.ADD", "global memory"),
        ("LDL.LU STL.64", "local memory"),
        ("LDS.128 STS LDSM.16.M88.4 ATOMS.ADD", "shared memory"),
        ("LDGSTS.E.BYPASS.128 UTMALDG.2D UBLKCP", "asynchronous copies"),
        ("IMAD.WIDE IADD3.X LOP3.LUT ISETP.GE.AND SHF.R.U32.HI LEA.HI.X POPC VIADD", "integer"),
        ("MOV IMAD.MOV.U32 SEL PRMT S2R CS2R.32", "moves and selects"),
        ("SHFL.BFLY VOTE.ANY REDUX.SUM", "between threads"),
        ("BAR.SYNC.DEFER_BLOCKING DEPBAR.LE WARPSYNC MEMBAR.SC.GPU", "synchronisation"),
        ("BRA.U BSSY EXIT RET.REL.NODEC NOP CALL.ABS", "control"),
        ("LDC.64 ULDC.64 LDCU.128", "constants"),
        ("UIADD3 ULOP3.LUT UMOV USHF.L.U32", "uniform data path"),
        ("TEX.SCR SULD.D.BA", "textures and surfaces"),
        ("QUUX.7 ", "other"),
    ],
)
def test_opcodes_are_grouped_by_what_they_are_for(opcodes: str, group: str) -> None:
    """Modifiers are ignored, except on a multiply-add that moves a register."""
    assert {opcode_group(opcode) for opcode in opcodes.split()} == {group}


def test_arithmetic_with_flop_is_grouped_by_its_type() -> None:
    """Every opcode with FLOPs is in the group of its type, so that mix and FLOPs agree."""
    for opcode, (dtype, _) in THREAD_FLOP.items():
        assert opcode_group(opcode) == dtype.upper(), opcode
