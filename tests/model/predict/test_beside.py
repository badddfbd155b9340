"""Operations of inference and training compared with manual calculations, and bounds besides FLOPs and DRAM."""

from __future__ import annotations

import pytest

from rooflens.errors import UsageError
from rooflens.model.predict.communication import uneven
from rooflens.model.predict.forecast import Forecast, forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.sizes import check_shape, checked_sizes
from rooflens.model.roofline.datasheets import load_datasheets

GPUS = {gpu.id: gpu for gpu in load_datasheets()}
H100_CLOCK_HZ = 1.83e9
"""Of the tensor peaks of an H100 SXM, which has 132 SMs."""


def predicted(operation: str, dtype: str = "bf16", gpu: str = "h100-sxm", **sizes: int) -> Forecast:
    """Predict by names."""
    return forecast(OPERATIONS[operation], sizes, dtype, GPUS[gpu])


def part(whole: Forecast, label: str) -> Forecast:
    """Find a step by its label."""
    return next(step for step in whole.parts if step.label == label)


def test_an_exponential_costs_as_long_as_256_tensor_flops_on_an_h100() -> None:
    """16 special functions and 4096 dense FLOPs in bf16 a cycle and SM: 256 FLOPs each, those of a pair at d = 64.

    By hand: 2048^2 = 4,194,304 pairs / (16 x 132 x 1.83 GHz = 3.865e12 /s) = 1.085 us, and 256 x 4,194,304 FLOP /
    989.4e12 = 1.085 us.
    """
    found = predicted("attention-flash", heads=1, width=64, length=2048)
    assert found.special == 4_194_304
    assert found.t_special_s == pytest.approx(4_194_304 / (16 * 132 * H100_CLOCK_HZ))
    assert found.t_special_s == pytest.approx(256 * 4_194_304 / 989.4e12, rel=1e-3)


def test_narrow_heads_are_bound_by_exponentials() -> None:
    """At d = 32 there are 128 FLOPs of products per pair beside an exponential that takes as long as 256: twice."""
    narrow = predicted("attention-flash", heads=1, width=32, length=8192)
    assert (narrow.regime, narrow.longest) == ("compute", "t_special_s")
    assert narrow.t_lower_s / narrow.t_math_s == pytest.approx(256 / 128, rel=1e-3)
    assert predicted("attention-flash", heads=1, width=128, length=8192).longest == "t_math_s"


def test_a_causal_mask_saves_exponentials_too() -> None:
    """Three tokens see 6 of 9 pairs."""
    full, masked = (predicted("attention-flash", heads=1, length=3, causal=causal) for causal in (0, 1))
    assert (full.special, masked.special) == (9, 6)


def test_blackwell_ultra_does_twice_the_exponentials() -> None:
    """32 per cycle and SM on a B300, 16 on a B200, at their own clocks."""
    b200, b300 = (predicted("softmax", "fp32", gpu, rows=1024, width=4096) for gpu in ("b200", "b300"))
    cycles = [
        found.rates.special_per_s / GPUS[gpu].sm_count.value / GPUS[gpu].clock_of("fp32").value
        for found, gpu in ((b200, "b200"), (b300, "b300"))
    ]
    assert cycles == pytest.approx([16, 32])


def test_an_architecture_without_a_known_rate_has_no_bound_by_it() -> None:
    """Thor (compute capability 11.0) is in no table: no rate is invented, and the other bounds remain."""
    found = predicted("attention-flash", "fp16", "jetson-thor", heads=1, width=16, length=4096)
    assert found.longest == "t_vector_s"
    assert found.t_special_s is None


def test_exponentials_of_fp64_are_no_special_functions() -> None:
    """They are computed in software, so the rate of special functions, which have fp32 precision, does not apply."""
    assert predicted("softmax", "fp64", rows=8, width=8).t_special_s is None


def test_tiles_load_their_operands_from_l2() -> None:
    """A product of N = 4096 in tiles of 128: 2 x 4096^3 / 128 operand elements and 4096^2 results, of two bytes.

    By hand: 1,073,741,824 + 16,777,216 elements = 2.181e9 bytes / 10.1376e12 B/s = 215 us, where 4096^3 x 2 FLOP need
    139 us and DRAM 30 us.
    """
    tiled = predicted("gemm", m=4096, n=4096, k=4096, l2_tile=128)
    assert tiled.l2_bytes == 2 * (1_073_741_824 + 16_777_216)
    assert tiled.t_l2_s == pytest.approx(215e-6, rel=1e-2)
    assert (tiled.regime, tiled.longest) == ("memory", "t_l2_s")
    assert tiled.moved_bytes == predicted("gemm", m=4096, n=4096, k=4096).moved_bytes
    assert predicted("gemm", m=4096, n=4096, k=4096, l2_tile=256).longest == "t_math_s"


def test_a_gpu_whose_l2_is_not_known_is_not_bound_by_it() -> None:
    """The forecast equals that without tiles: a missing bandwidth is not guessed."""
    unknown = next(gpu for gpu in GPUS.values() if gpu.l2_bandwidth is None and "fp32" in gpu.peaks)
    tiled, whole = (predicted("gemm", "fp32", unknown.id, m=512, n=512, k=512, l2_tile=tile) for tile in (8, 0))
    assert (tiled.t_lower_s, tiled.t_l2_s) == (whole.t_lower_s, None)


def test_queries_of_a_tile_share_their_keys_in_l2() -> None:
    """512 tokens in tiles of 128: keys and values go to the SMs four times, query and result once.

    By hand: 512 x 128 elements x 2 x (1 + 4) x 2 bytes = 1,310,720; under a causal mask (4 + 1) / 2 times: 917,504.
    """
    for causal, wanted in ((0, 1_310_720), (1, 917_504)):
        assert predicted("attention-flash", heads=1, length=512, l2_tile=128, causal=causal).l2_bytes == wanted


def test_packed_weights_move_their_bits_scales_and_zero_points() -> None:
    """4096 x 4096 weights of 4 bits in groups of 128: 8,388,608 bytes, and 32 x 4096 scales of 2 and zeros of 1/2.

    By hand: 8,388,608 + 262,144 + 65,536 = 8,716,288 bytes; 16 rows of 4096 in and out in bf16 are 262,144 more. Each
    weight is unpacked once: 2 x 16,777,216 instructions / (128 x 132 x 1.83 GHz) = 1.085 us, below DRAM's 2.68 us.
    """
    found = predicted("quantized-gemm", m=16, n=4096, k=4096)
    assert found.moved_bytes == 8_716_288 + 262_144
    assert found.flop == predicted("gemm", m=16, n=4096, k=4096).flop
    assert found.issued == 2 * 16_777_216
    assert found.t_issue_s == pytest.approx(1.085e-6, rel=1e-3)
    assert found.t_lower_s == found.t_memory_s == pytest.approx(2.68e-6, rel=1e-3)
    symmetric = predicted("quantized-gemm", m=16, n=4096, k=4096, zeros=0)
    assert found.moved_bytes - symmetric.moved_bytes == 65_536


def test_each_row_of_tiles_unpacks_the_weights_again() -> None:
    """4096 rows in tiles of 128 unpack each weight 32 times."""
    once, tiled = (predicted("quantized-gemm", m=4096, n=4096, k=4096, l2_tile=tile).issued for tile in (0, 128))
    assert tiled == 32 * once


def test_a_decoder_with_packed_weights_reads_a_quarter() -> None:
    """Llama 3 8B's blocks have 6,979,321,856 weights: 4.15625 bits each instead of 16, nothing else changes.

    By hand: 32 x (4096 x 6144 + 4096^2 + 3 x 4096 x 14336) weights; groups of 128 add (16 + 4) / 128 bits to each.
    """
    wide, packed = predicted("decode"), predicted("decode", weight_bits=4)
    saved = 6_979_321_856 * (16 - 4.15625) / 8
    assert wide.moved_bytes - packed.moved_bytes == pytest.approx(saved)
    assert wide.flop == packed.flop


def test_a_cache_may_have_a_type_of_its_own() -> None:
    """8 key heads x 2048 tokens x 128 x keys and values: 4,194,304 elements, each a byte less in fp8 or int8."""
    wide, narrow = (predicted("attention-decode", kv_heads=8, length=2048, kv_bits=bits) for bits in (0, 8))
    assert wide.moved_bytes - narrow.moved_bytes == 4_194_304
    assert predicted("decode").moved_bytes - predicted("decode", kv_bits=8).moved_bytes == 32 * 4_194_304


def test_only_experts_that_a_token_chooses_are_read() -> None:
    """Of 256 experts, 16 tokens of 8 each choose 256 x (1 - (1 - 8 / 256)^16) = 101.96 by chance, not 128.

    By hand: 0.96875^16 = 0.60172, so 0.39828 of 256 experts of 3 x 7168 x 2048 weights each.
    """
    layer = predicted("moe", tokens=16, experts=256, top_k=8, hidden=7168, ffn=2048)
    products = part(layer, "dispatch and up projection"), part(layer, "down projection and combine")
    rows = 16 * 8 * (7168 + 2 * 2048 + 2048 + 7168)
    weights = sum(step.moved_bytes for step in products) / 2 - rows
    assert weights / (3 * 7168 * 2048) == pytest.approx(101.96, rel=1e-4)


def test_a_single_token_reads_exactly_its_experts() -> None:
    """For a single token the expectation is `top_k`, for very many tokens all experts."""
    for tokens, experts in ((1, 2), (100_000, 8)):
        up = part(predicted("moe", tokens=tokens), "dispatch and up projection")
        rows = 2 * tokens * (4096 + 2 * 14336)
        assert (up.moved_bytes / 2 - rows) / (2 * 4096 * 14336) == pytest.approx(experts)


def test_all_wait_for_the_busiest_gpu() -> None:
    """At 150 % of the mean, a GPU computes and returns half as many rows again; a single GPU has all rows."""
    even, uneven_one = (
        predicted("moe", tokens=4096, expert_parallel=8, imbalance_percent=percent) for percent in (100, 150)
    )
    for label in ("dispatch and up projection", "down projection and combine"):
        assert part(uneven_one, label).flop == 1.5 * part(even, label).flop
        assert part(uneven_one, label).sent_bytes == 1.5 * part(even, label).sent_bytes
    assert predicted("moe", tokens=64, imbalance_percent=150) == predicted("moe", tokens=64)
    with pytest.raises(UsageError, match="`imbalance_percent` must be 100 to"):
        predicted("moe", tokens=64, imbalance_percent=90)


def test_packed_experts_move_fewer_bytes() -> None:
    """All eight experts for 4096 tokens: 3 x 4096 x 14336 weights each, (16 - 4.15625) / 8 bytes less per weight."""
    wide, packed = predicted("moe", tokens=4096), predicted("moe", tokens=4096, weight_bits=4)
    assert wide.moved_bytes - packed.moved_bytes == pytest.approx(8 * 3 * 4096 * 14336 * (16 - 4.15625) / 8)


def test_groups_of_a_convolution_see_only_one_another() -> None:
    """Four channels to six in two groups, 5 x 5, kernel of 3 without padding: 3 x 3 results, two input channels each.

    By hand: 2 x 6 x 9 x 2 x 9 = 1944 FLOP; 4 x (4 x 25 + 6 x 2 x 9 + 6 x 9) = 1048 bytes in fp32.
    """
    sizes = {"in_channels": 4, "out_channels": 6, "height": 5, "image_width": 5, "padding": 0}
    found = predicted("conv2d", "fp32", **sizes, groups=2)
    assert (found.flop, found.moved_bytes) == (1944, 1048)
    with pytest.raises(UsageError, match="`out_channels` must be a multiple of `groups`"):
        check_shape(checked_sizes(OPERATIONS["conv2d"], {**sizes, "groups": 4}))


def test_a_depthwise_convolution_runs_on_the_cuda_cores() -> None:
    """64 channels of 56 x 56, padded kernel of 3: 2 x 64 x 3136 x 9 FLOP, images in and out, and 64 x 9 weights.

    The work equals `conv2d` with as many groups as channels, but it contains no matrix product.
    """
    found = predicted("depthwise-conv2d", channels=64, height=56, image_width=56)
    assert found.flop == 2 * 64 * 3136 * 9
    assert found.moved_bytes == 2 * (2 * 64 * 3136 + 64 * 9)
    assert found.peak == "fp32"
    grouped = predicted("conv2d", in_channels=64, out_channels=64, groups=64, height=56, image_width=56)
    assert (grouped.flop, grouped.moved_bytes) == (found.flop, found.moved_bytes)


def test_a_gradient_of_a_product_is_two_products() -> None:
    """Sizes of 2, 3 and 5: twice 60 FLOP; each reads the gradient of 6 elements and one operand, and writes the other.

    By hand: (6 + 15 + 10) + (10 + 6 + 15) = 62 elements of 2 bytes.
    """
    backward = predicted("gemm-backward", m=2, n=3, k=5)
    assert backward.flop == 2 * predicted("gemm", m=2, n=3, k=5).flop == 120
    assert backward.moved_bytes == 124
    assert len(backward.parts) == 2


def test_a_gradient_of_attention_is_five_products_for_two() -> None:
    """4 tokens, d = 8, one head: 16 pairs x (10 x 8 + 5) FLOP; 8 arrays of 32 elements and 4 sums of 4 bytes."""
    backward = predicted("attention-flash-backward", heads=1, width=8, length=4)
    assert backward.flop == 16 * 85
    assert backward.moved_bytes == 2 * 8 * 32 + 4 * 4
    assert backward.special == 16


def test_a_fused_loss_leaves_the_logits_on_chip() -> None:
    """8192 tokens, 128,256 words, hidden 4096, bf16: logits of 2.1 GB are written and read, or neither.

    By hand: 2 x 2 x 8192 x 128,256 bytes of logits apart; labels and losses are 12 bytes a token in both.
    """
    apart, fused = predicted("cross-entropy", tokens=8192), predicted("cross-entropy-fused", tokens=8192)
    assert apart.moved_bytes - fused.moved_bytes == 2 * 2 * 8192 * 128_256
    assert apart.flop == fused.flop == 8192 * 128_256 * (2 * 4096 + 5)


@pytest.mark.parametrize(
    ("dtype", "sizes", "bytes_each"),
    [
        ("fp32", {}, 28),  # gradient 4; mean, variance and weight 4 + 4 each
        ("bf16", {}, 22),  # gradient 2; mean and variance 8 each; weight 2 + 2
        ("bf16", {"master": 1}, 28),  # gradient 2; mean, variance and master 8 each; weight written, 2
        ("bf16", {"moment_bytes": 1}, 10),  # gradient 2; mean and variance 1 + 1 each; weight 2 + 2
    ],
)
def test_bytes_of_an_optimizer_step(dtype: str, sizes: dict[str, int], bytes_each: int) -> None:
    """AdamW moves this many bytes per parameter, so memory is its limiter everywhere."""
    found = predicted("adamw", dtype, n=1000, **sizes)
    assert found.moved_bytes == 1000 * bytes_each
    assert found.longest == "t_memory_s"


def test_sizes_that_gpus_cannot_split_evenly_are_named() -> None:
    """With 32 heads on six GPUs one has 6, as with 36; 16 GPUs copy each of 8 key heads twice."""
    six = {one.what: one for one in uneven(checked_sizes(OPERATIONS["decode"], {"tensor_parallel": 6}))}
    assert six["query heads"].most == 6
    assert six["query heads"].extra == pytest.approx(36 / 32 - 1)
    (copied,) = uneven(checked_sizes(OPERATIONS["decode"], {"tensor_parallel": 16}))
    assert (copied.what, copied.extra) == ("key heads", 1.0)
    assert not list(uneven(checked_sizes(OPERATIONS["decode"], {"tensor_parallel": 8})))
