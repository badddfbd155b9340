from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loops import for_all

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.forecast import LAUNCH_FLOOR_S, Forecast, forecast, held_bytes
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.rows import DTYPES
from rooflens.model.predict.sizes import check_shape, checked_sizes
from rooflens.model.roofline.datasheets import Datasheet, load_datasheets


def gpu(short_name: str) -> Datasheet:
    """Find a GPU by its short name."""
    return next(gpu for gpu in load_datasheets() if gpu.id == short_name)


H100 = gpu("h100-sxm")


def predicted(operation: str, dtype: str = "bf16", on: Datasheet = H100, **sizes: int) -> Forecast:
    """Predict by names."""
    return forecast(OPERATIONS[operation], sizes, dtype, on)


S000 = "000_dad60b6475847542.txt"
S001 = "001_95f198b24555a0d3.txt"
S002 = "002_7be5d04cd9b0ba0e.txt"
S003 = "003_53bb5ae78f88c801.txt"
S004 = "004_20b1d30282d329e1.txt"
"""The documents behind this tool, by file name; each figure below is worked out in one of them."""

EXACT = 1e-12
"""The formula is the seed's own: only the last bit may differ."""
THREE_DIGITS = 5e-3
"""The seed prints three digits, or leaves out what vanishes: a vector beside its matrix, a result beside its sums."""


@for_all(
    "operation, dtype, sizes, intensity, tolerance, seed",
    [
        ("elementwise", "fp32", {"n": 1 << 20}, 0.125, EXACT, S001 + ": 1 FLOP on 4 + 4 bytes"),
        ("saxpy", "fp32", {"n": 1 << 26}, 2 / 12, EXACT, S002 + ": 2 FLOP on 12 bytes"),
        ("dot", "bf16", {"n": 1 << 20}, 0.5, 1e-5, S004 + ": (2N - 1) / (4N + 2)"),
        ("gemm", "bf16", {"m": 128, "n": 128, "k": 128}, 128 / 3, EXACT, S003 + ": N / 3 in bf16"),
        ("gemm", "bf16", {"m": 1024, "n": 1024, "k": 1024}, 1024 / 3, EXACT, S003 + ": N / 3 in bf16"),
        ("gemm", "bf16", {"m": 4096, "n": 4096, "k": 4096}, 4096 / 3, EXACT, S003 + ": N / 3, where it prints N / 6"),
        ("gemm", "fp32", {"m": 4092, "n": 4092, "k": 4092}, 4092 / 6, EXACT, S001 + ": N / 6 in fp32"),
        ("gemm", "fp16", {"m": 16384, "n": 12288, "k": 4096}, 2587, 1e-4, S002 + ": prefill, query, key and value"),
        ("gemv", "fp16", {"m": 4096, "k": 4096}, 1.0, 1e-3, S002 + ": weights dominate"),
        ("attention-decode", "fp16", {"kv_heads": 8, "length": 8192}, 4.0, 1e-3, S002 + ": grouped queries, 4 to 1"),
        ("gemm", "fp32", {"m": 4096, "n": 4096, "k": 4096, "tile": 1}, 0.25, 1e-3, S000 + ": naive, no reuse"),
        (
            "gemm",
            "fp32",
            {"m": 1 << 20, "n": 1 << 20, "k": 1 << 20, "tile": 64},
            16.0,
            1e-3,
            S000 + ": a tile of 64 x 64",
        ),
        (
            "attention-naive",
            "bf16",
            {"heads": 1, "width": 64, "length": 512},
            52.2,
            THREE_DIGITS,
            S003 + ": prints 52.1",
        ),
        (
            "attention-naive",
            "bf16",
            {"heads": 1, "width": 64, "length": 2048},
            61.4,
            THREE_DIGITS,
            S003 + ": prints 61.1",
        ),
        ("attention-flash", "bf16", {"heads": 1, "width": 64, "length": 2048}, 1044, EXACT, S003 + ": prints 340.7"),
        ("layernorm", "bf16", {"width": 4096}, 0.875, EXACT, S003 + ": prints 0.9, one row"),
    ],
)
def test_intensities_of_the_seeds(  # noqa: PLR0913, PLR0917 - one column each
    operation: str, dtype: str, sizes: dict[str, int], intensity: float, tolerance: float, seed: str
) -> None:
    """The table gives every intensity that the founding documents calculate by hand."""
    assert predicted(operation, dtype, **sizes).intensity == pytest.approx(intensity, rel=tolerance), seed


@pytest.mark.parametrize(
    ("on", "dtype", "ridge", "tolerance"),
    [
        ("h100-sxm", "bf16", 295.2, 1e-3),  # S000, S001, S003: 989 / 3.35; the whitepaper has 989.4
        ("h100-sxm", "fp32", 20.0, 2e-3),  # S003: 67 / 3.35; the whitepaper has 66.9
        ("a100-sxm4-80gb", "bf16", 156, 0.02),  # S003: 312 / 2.0; the datasheet has 2.039 TB/s
        ("a100-sxm4-40gb", "bf16", 208, 0.04),  # S000: 312 / 1.5; the datasheet has 1.555 TB/s
    ],
)
def test_ridges_of_the_seeds(on: str, dtype: str, ridge: float, tolerance: float) -> None:
    """Peak over bandwidth gives the ridges quoted in the documents, up to rounding."""
    assert predicted("gemm", dtype, gpu(on), m=1, n=1, k=1).ridge == pytest.approx(ridge, rel=tolerance)


def test_share_of_the_roof_of_a_measured_kernel() -> None:
    """120 TFLOP/s at 64 FLOP/B on an H100 is 56 % of 214.4 TFLOP/s, as calculated in the seed S003."""
    roof = predicted("custom", flop=64, bytes=1).roof_flop_per_s
    assert roof == pytest.approx(214.4e12)
    assert roof is not None
    assert 120e12 / roof == pytest.approx(0.56, abs=0.005)


def test_regimes_of_one_product_at_three_sizes() -> None:
    """A bf16 product on an H100 leaves the slope between N = 512 and 1024 (S000 and S003); a launch takes longer."""
    found = [predicted("gemm", m=n, n=n, k=n) for n in (128, 512, 1024, 8192)]
    assert [one.longest for one in found] == ["t_memory_s", "t_memory_s", "t_math_s", "t_math_s"]
    assert [one.regime for one in found] == ["overhead", "overhead", "overhead", "compute"]


def test_fusion_halves_the_bytes() -> None:
    """Two functions in one kernel move half of the bytes of two kernels, for the same FLOPs (S000 and S001)."""
    apart = 2 * predicted("elementwise", "fp32", n=1000).moved_bytes
    fused = predicted("elementwise", "fp32", n=1000, flops=2)
    assert fused.moved_bytes == apart / 2
    assert fused.flop == 2 * predicted("elementwise", "fp32", n=1000).flop


def test_a_decoder_block_is_the_sum_of_its_parts() -> None:
    """FLOPs, bytes and floor of a composite operation are sums over its parts."""
    whole = predicted("transformer-block")
    for field in ("flop", "moved_bytes", "t_math_s", "t_memory_s", "t_lower_s"):
        assert getattr(whole, field) == pytest.approx(sum(getattr(part, field) for part in whole.parts))


def test_products_of_a_decoder_take_two_flops_a_weight_and_token() -> None:
    """A Llama 3 8B decode step does 2 FLOPs for each of its weights in products: 7.5e9 of 8.03e9 parameters."""
    step = predicted("decode", length=1)
    products = [part for part in step.parts if "projection" in part.label or part.label.startswith(("query", "logits"))]
    # 32 x (4096 x 6144 + 4096 x 4096 + 3 x 4096 x 14336) + 4096 x 128256, by hand from its published configuration
    assert sum(part.flop for part in products) == 2 * 7_504_658_432


def test_decode_reads_the_weights_once_for_the_whole_batch() -> None:
    """Tokens per second grow with the batch while most of the bytes are weights."""
    one, many = predicted("decode", batch=1), predicted("decode", batch=16)
    assert one.tokens_per_s is not None
    assert many.tokens_per_s is not None
    assert 10 < many.tokens_per_s / one.tokens_per_s < 16


def test_a_causal_mask_halves_the_work_of_attention() -> None:
    """A token sees itself and those before it: L (L + 1) / 2 pairs."""
    full, masked = predicted("attention-flash", length=3), predicted("attention-flash", length=3, causal=1)
    assert masked.flop / full.flop == pytest.approx(6 / 9)


def test_a_convolution_counts_its_results() -> None:
    """A 3 x 3 kernel over 5 x 5 without padding and a step of 2 gives 2 x 2 results."""
    small = predicted("conv2d", "fp32", in_channels=2, out_channels=3, height=5, image_width=5, stride=2, padding=0)
    assert small.flop == 2 * 3 * 2 * 2 * 2 * 9
    assert small.moved_bytes == 4 * (2 * 25 + 3 * 2 * 9 + 3 * 4)


def test_a_type_the_gpu_has_no_pipe_for_is_refused() -> None:
    """A T4 has no bf16 tensor cores: the error lists the types it has, as they are written in options."""
    with pytest.raises(InputError, match="no published peak for bf16") as caught:
        predicted("gemm", "bf16", gpu("t4"), m=1, n=1, k=1)
    assert caught.value.hint == "it has: fp64, fp32, fp16, int8"


@pytest.mark.parametrize(
    "sizes", [{"m": 1, "n": 1}, {"m": 1, "n": 1, "k": 0}, {"m": 1, "n": 1, "k": 1, "q": 1}, {"m": -1, "n": 1, "k": 1}]
)
def test_sizes_are_checked(sizes: dict[str, int]) -> None:
    """A missing, unknown or nonsensical size is a usage error."""
    with pytest.raises(UsageError):
        predicted("gemm", **sizes)


@pytest.mark.parametrize(
    ("operation", "sizes", "words"),
    [
        ("transformer-block", {"hidden": 100, "heads": 32}, "`hidden` must be a multiple of `heads`"),
        ("prefill", {"hidden": 16, "heads": 32}, "`hidden` must be a multiple of `heads`"),
        ("attention-flash", {"heads": 32, "kv_heads": 64, "length": 8}, "`heads` must be a multiple of `kv_heads`"),
        (
            "conv2d",
            {"in_channels": 3, "out_channels": 8, "height": 2, "image_width": 9, "kernel": 7},
            "larger than the padded image",
        ),
    ],
)
def test_sizes_that_do_not_fit_one_another_are_refused(operation: str, sizes: dict[str, int], words: str) -> None:
    """A head of width 0, a group of no heads and a kernel larger than its image are usage errors."""
    with pytest.raises(UsageError, match=words):
        check_shape(checked_sizes(OPERATIONS[operation], sizes))


def test_switches_are_on_or_off() -> None:
    """A causal mask of 7 is a user's mistake."""
    with pytest.raises(UsageError, match="`causal` must be 0 to 1, not 7"):
        predicted("attention-flash", length=8, causal=7)


def test_a_copy_and_a_fill_compute_nothing() -> None:
    """An elementwise kernel may have no FLOPs, read nothing or write nothing."""
    assert (predicted("elementwise", n=8, flops=0).flop, predicted("elementwise", n=8, flops=0).moved_bytes) == (0, 32)
    assert predicted("elementwise", n=8, flops=0, reads=0).moved_bytes == 16
    assert predicted("elementwise", n=8, writes=0).intensity == 0.5


def test_a_sort_counted_by_hand_may_have_no_flops() -> None:
    """For 6.7 GB without FLOPs memory is the limiter: 2 ms at 3.35 TB/s, and intensity 0."""
    sort = predicted("custom", "fp32", flop=0, bytes=6_700_000_000)
    assert (sort.regime, sort.intensity) == ("memory", 0)
    assert sort.t_lower_s == pytest.approx(2.0e-3, rel=1e-3)


def test_a_tile_never_moves_less_than_every_operand_once() -> None:
    """A tile larger than the result reads its operands once; a tile beyond the edge counts as whole."""
    once = predicted("gemm", m=128, n=128, k=128).moved_bytes
    assert predicted("gemm", m=128, n=128, k=128, tile=256).moved_bytes == once
    # Two columns of tiles read the left operand twice, three rows of them the right one three times.
    assert predicted("gemm", m=5, n=4, k=7, tile=2).moved_bytes == 2 * (5 * 7 * 2 + 7 * 4 * 3 + 5 * 4)


def test_products_run_on_cuda_cores_where_there_are_no_tensor_cores() -> None:
    """Pascal has no tensor cores: an fp16 product runs at the rate of its fp16 pipe."""
    assert predicted("gemm", "fp16", gpu("gtx-1070-ti"), m=8, n=8, k=8).peak == "fp16"


def test_a_million_of_everything_overflows_nothing() -> None:
    """With every size at a million, including those with defaults, all amounts stay finite."""
    for operation in OPERATIONS.values():
        result = forecast(operation, {s.name: min(s.most, 10**6) for s in operation.sizes}, "bf16", H100)
        assert math.isfinite(result.flop)
        assert 0 < result.t_lower_s < math.inf


def _supported(operation: str, dtype: str, on: Datasheet, sizes: dict[str, int]) -> Forecast | None:
    try:
        return forecast(OPERATIONS[operation], sizes, dtype, on)
    except InputError:
        return None


def _sizes(operation: str, value: int) -> dict[str, int]:
    """Give every size without a default the same value."""
    return {size.name: value for size in OPERATIONS[operation].sizes if size.default is None}


def _on_every_gpu(operation: str, dtype: str, value: int) -> list[tuple[Datasheet, Forecast]]:
    """Predict an operation on all GPUs with a peak for its type."""
    sizes = _sizes(operation, value)
    tried = ((on, _supported(operation, dtype, on, sizes)) for on in load_datasheets())
    return [(on, result) for on, result in tried if result is not None]


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(deadline=None, max_examples=20)
@given(value=st.integers(1, 500_000), larger=st.integers(1, 500_000), dtype=st.sampled_from(DTYPES))
def test_every_forecast_holds_together(operation: str, dtype: str, value: int, larger: int) -> None:
    """On every GPU, up to a million: bounds are ordered and finite, more is never less, and there is a regime."""
    less, more = _on_every_gpu(operation, dtype, value), _on_every_gpu(operation, dtype, value + larger)
    assert [on for on, _ in less] == [on for on, _ in more]
    for (_, small), (_, large) in zip(less, more, strict=True):
        for field in ("flop", "moved_bytes", "t_lower_s"):
            assert getattr(small, field) <= getattr(large, field)
    for on, result in (*less, *more):
        _check_bounds(on, result)
        _check_regime(result)


def _check_bounds(on: Datasheet, result: Forecast) -> None:
    for number in (result.flop, result.moved_bytes, result.t_lower_s, result.intensity, result.ridge):
        assert math.isfinite(number)
    assert result.moved_bytes > 0
    slack = 1 + 1e-9
    times_s = [getattr(result, name) for name in ("t_math_s", "vector_s", "special_s", "issue_s")]
    times_s += [result.t_memory_s, result.l2_s, result.t_comms_s]
    assert max(times_s) <= result.t_lower_s * slack
    assert result.t_lower_s <= result.t_upper_s * slack <= sum(times_s) * slack**2
    assert result.floor_s <= result.t_lower_s * slack
    assert result.t_without_dram_s <= result.floor_s * slack
    assert 0 <= result.share_of_peak <= on.above_boost * slack
    assert result.t_memory_s * on.dram_bandwidth.value == pytest.approx(result.moved_bytes)


def _share_on_cores(result: Forecast) -> float:
    return result.vector_flop / result.flop if result.flop and result.vector_s else 0.0


def _check_regime(result: Forecast) -> None:
    """A simple operation longer than its launch is compute-bound right of the ridge, unless other bounds decide."""
    if result.longest not in {"t_math_s", "t_memory_s"} or result.link:
        return
    if result.intensity != pytest.approx(result.ridge, rel=max(1e-6, 2 * _share_on_cores(result))):
        assert (result.longest == "t_math_s") == (result.intensity > result.ridge)
        usual = "compute" if result.longest == "t_math_s" else "memory"
        assert result.regime == (usual if result.t_lower_s >= LAUNCH_FLOOR_S else "overhead")


def test_counted_fp64_runs_on_the_pipe_of_fp64() -> None:
    """Given FLOPs need not be products: fp64 uses its own pipe, narrower types tensor cores."""
    pipes = {dtype: predicted("custom", dtype, flop=64, bytes=1).peak for dtype in ("fp64", "fp32", "tf32", "bf16")}
    assert pipes == {"fp64": "fp64", "fp32": "fp32", "tf32": "tensor_tf32", "bf16": "tensor_bf16"}
    assert predicted("custom", "fp64", flop=67, bytes=1).t_math_s == 67 / 33.5e12
    assert predicted("gemm", "fp64", m=8, n=8, k=8).peak == "tensor_fp64"


def test_floors_are_at_the_highest_clock_and_per_cents_of_the_rated_peak() -> None:
    """An RTX 4090 was seen at 2.82 GHz, 1.119 times its rated 2.52: a floor of 5.95 ms, 112 % of 165.2 TFLOP/s."""
    on = gpu("rtx-4090")
    step = predicted("gemm", on=on, m=8192, n=8192, k=8192)
    assert step.rated_flop_per_s == pytest.approx(165.2e12)
    assert step.peak_flop_per_s == pytest.approx(165.2e12 * 2.82 / 2.52)
    assert step.t_lower_s == pytest.approx(2 * 8192**3 / (165.2e12 * 2.82 / 2.52))
    assert step.share_of_peak == pytest.approx(2.82 / 2.52)
    assert step.clock_hz == 2.82e9
    # DRAM has a clock of its own.
    assert predicted("saxpy", "fp32", on, n=10**9).t_lower_s == pytest.approx(12e9 / 1.008e12)


def test_a_card_of_a_data_centre_has_the_floors_of_its_datasheet() -> None:
    """989.4 TFLOP/s of an H100 are at 1.83 GHz, for which its tensor peaks are stated."""
    step = predicted("gemm", m=8192, n=8192, k=8192)
    assert (step.peak_flop_per_s, step.rated_flop_per_s, step.clock_hz) == (989.4e12, 989.4e12, 1.83e9)
    assert step.share_of_peak == 1


@for_all(
    "dtype, on, pipe, peak",
    [
        ("fp16", "rtx-4090", "tensor_fp16", 165.2e12),
        ("fp16:fp32", "rtx-4090", "tensor_fp16", 165.2e12),
        ("fp16:fp16", "rtx-4090", "tensor_fp16_acc16", 330.3e12),
        ("fp8:fp16", "rtx-4090", "tensor_fp8_acc16", 660.6e12),
        ("fp16:fp16", "h100-sxm", "tensor_fp16_acc16", 989.4e12),
        ("fp8", "rtx-5090", "tensor_fp8", 419e12),
        ("mxfp8", "rtx-5090", "tensor_mxfp8", 838e12),
        ("mxfp4", "rtx-5090", "tensor_mxfp4", 1.676e15),
        ("nvfp4", "b200", "tensor_nvfp4", 9e15),
        ("mxfp8", "b200", "tensor_mxfp8", 4.5e15),
    ],
)
def test_sums_and_scales_have_peaks_of_their_own(dtype: str, on: str, pipe: str, peak: float) -> None:
    """Sums in fp16 are twice as fast on GeForce boards and no slower elsewhere; so are fp8 blocks with scales there."""
    step = predicted("gemm", dtype, gpu(on), m=8192, n=8192, k=8192)
    assert step.peak == pipe
    assert step.rated_flop_per_s == pytest.approx(peak)


@for_all("dtype, element", [("mxfp8", 1 + 1 / 32), ("mxfp4", 0.5 + 1 / 32), ("nvfp4", 0.5 + 1 / 16), ("fp8", 1)])
def test_scales_of_blocks_are_read_too(dtype: str, element: float) -> None:
    """A byte for each 32 elements, of nvfp4 for each 16; results in bf16."""
    step = predicted("gemm", dtype, gpu("b200"), m=1024, n=1024, k=1024)
    assert step.moved_bytes == 1024 * 1024 * (2 * element + 2)


@pytest.mark.parametrize("dtype", ["bf16:fp16", "fp16:bf16", "fp16:", "fp32:fp16", "mxfp8:fp16", "fp6"])
def test_types_and_sums_that_tensor_cores_do_not_have_are_refused(dtype: str) -> None:
    """Only fp16 and fp8 can be added up in fp16."""
    with pytest.raises(UsageError, match="no type"):
        predicted("gemm", dtype, m=8, n=8, k=8)


def test_older_tensor_cores_have_no_blocks_with_scales() -> None:
    """An H100 multiplies fp8, but applies no scales."""
    with pytest.raises(InputError, match="no published peak for mxfp8"):
        predicted("gemm", "mxfp8", m=8, n=8, k=8)


def test_the_softmax_of_attention_runs_on_cuda_cores() -> None:
    """Of (4 x 128 + 5) FLOPs a pair the five are no tensor work: 67.1 MFLOP a head take 1.00 us at 66.9 TFLOP/s."""
    step = predicted("attention-flash", heads=1, length=4096)
    pairs = 4096**2
    assert step.flop == 517 * pairs
    assert step.vector_flop == 5 * pairs
    assert step.t_math_s == pytest.approx(512 * pairs / 989.4e12)
    assert step.t_vector_s == pytest.approx(5 * pairs / 66.9e12)
    # In fp32 all of it runs there.
    whole = predicted("attention-flash", "fp32", heads=1, length=4096)
    assert (whole.vector_s, whole.t_math_s) == (0, pytest.approx(517 * pairs / 66.9e12))


def test_one_kernel_for_all_steps_moves_what_the_whole_must() -> None:
    """Experts: tokens and weights read, the result written; the activation is no pass of its own."""
    layer = predicted("moe", tokens=4096)
    weights = 8 * 3 * 4096 * 14336 + 4096 * 8
    moved = 2 * (weights + 2 * 4096 * 4096)
    products = sum(part.t_math_s for part in layer.parts if part.peak == "tensor_bf16")
    assert layer.t_fused_s == pytest.approx(max(products, moved / 3.35e12))
    assert layer.t_lower_s == pytest.approx(sum(part.t_lower_s for part in layer.parts))
    few = predicted("moe", tokens=16, experts=8)
    assert few.t_fused_s == pytest.approx(
        2 * (8 * 3 * 4096 * 14336 * (1 - 0.75**16) + 4096 * 8 + 2 * 16 * 4096) / 3.35e12
    )


@for_all(
    "name, sizes, alone",
    [
        ("attention", {"length": 4096}, "attention-flash"),
        ("attention", {"length": 4096, "causal": 1, "kv_heads": 8}, "attention-flash"),
        ("cross-entropy", {"tokens": 4096}, "cross-entropy-fused"),
    ],
)
def test_what_has_a_kernel_of_its_own_has_its_floor(name: str, sizes: dict[str, int], alone: str) -> None:
    """Attention and a loss in one kernel are in the table, too."""
    assert predicted(name, **sizes).t_fused_s == pytest.approx(predicted(alone, **sizes).t_lower_s)


def test_a_norm_with_its_residual_sum_reads_and_writes_twice() -> None:
    """As two kernels three and two arrays; as one kernel four."""
    apart = predicted("add-rmsnorm", rows=4096, width=8192)
    assert apart.moved_bytes == 2 * (5 * 4096 * 8192 + 8192)
    assert apart.t_fused_s == pytest.approx(2 * (4 * 4096 * 8192 + 8192) / 3.35e12)


def test_a_decoder_of_experts_reads_those_that_its_tokens_choose() -> None:
    """One token of two experts among eight reads two; all eight must be held."""
    dense, sparse = predicted("decode"), predicted("decode", experts=8)
    one = 3 * 4096 * 14336 * 2 * 32
    assert sparse.moved_bytes - dense.moved_bytes == pytest.approx(one, rel=0.01)
    sizes = checked_sizes(OPERATIONS["decode"], {"experts": 8})
    held = (
        held_bytes(OPERATIONS["decode"], sizes, "bf16"),
        held_bytes(OPERATIONS["decode"], {**sizes, "experts": 0}, "bf16"),
    )
    assert (held[0] or 0) - (held[1] or 0) == pytest.approx(7 * one, rel=0.01)


def test_without_overlap_all_times_add_up() -> None:
    """S004 bounds the time by T_math + T_comms where nothing overlaps; its communication is that with memory."""
    step = predicted("gemm", m=4096, n=4096, k=4096)
    assert step.t_upper_s == pytest.approx(step.t_math_s + step.t_memory_s), S004
    shared = predicted("gemm", m=4096, n=4096, k=4096, tensor_parallel=8)
    assert shared.t_upper_s == pytest.approx(shared.t_math_s + shared.t_memory_s + shared.t_comms_s), S004
