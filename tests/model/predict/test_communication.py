from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.loops import for_all

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.communication import all_reduced, exchanged, link_of, ring_reduced, share_of, tree_reduced
from rooflens.model.predict.forecast import LAUNCH_FLOOR_S, Forecast, forecast, swept
from rooflens.model.predict.forecast import predicted as predicted_at
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import Options
from rooflens.model.predict.sizes import check_shape, checked_sizes
from rooflens.model.roofline.datasheets import Datasheet, LinkKind, load_datasheets
from rooflens.model.verdict.thresholds import default_thresholds

GPUS = {gpu.id: gpu for gpu in load_datasheets()}
H100 = GPUS["h100-sxm"]

S004 = "004_20b1d30282d329e1.txt"
"""The document behind T_comms, by file name."""

GIB = 1 << 30


def predicted(
    operation: str, dtype: str = "bf16", on: Datasheet = H100, link: LinkKind | None = None, **sizes: int
) -> Forecast:
    """Predict by names."""
    return forecast(OPERATIONS[operation], sizes, dtype, on, Options(link=link))


def part(whole: Forecast, label: str) -> Forecast:
    """Find a step of a composite operation by its label."""
    return next(step for step in whole.parts if step.label == label)


def test_t_comms_of_the_seed_takes_both_directions_at_once() -> None:
    """S004 divides by NVLink's 900 GB/s, the sum of both directions; sending in one direction takes twice as long."""
    link = H100.links["nvlink"]
    assert link.bytes_per_s_total == 900e9, S004
    seed_s = GIB / 900e9
    assert predicted("send", bytes=GIB).t_comms_s == pytest.approx(2 * seed_s), S004


def test_the_floor_of_the_seed_holds_for_three_times() -> None:
    """S004's max(T_math, T_comms), with T_memory beside them."""
    step = predicted("gemm", m=4096, n=4096, k=4096, tensor_parallel=8)
    times_s = (step.t_math_s, step.t_memory_s, step.t_comms_s)
    assert step.t_lower_s == max(times_s), S004
    assert step.regime == "communication"


def ring(count: int) -> tuple[list[list[int]], list[int], list[int]]:
    """Carry out a ring all-reduce with real numbers, one per part.

    Returns:
        The final values of each GPU, and the number of parts each has sent after the reduce-scatter and in all.
    """
    held = [[100 * gpu + part for part in range(count)] for gpu in range(count)]
    sent, halfway = [0] * count, [0] * count
    for step in range(2 * (count - 1)):
        going = [(gpu, (gpu - step) % count) for gpu in range(count)]
        values = [held[gpu][which] for gpu, which in going]
        for (gpu, which), value in zip(going, values, strict=True):
            after = (gpu + 1) % count
            held[after][which] = held[after][which] + value if step < count - 1 else value
            sent[gpu] += 1
        if step == count - 2:
            halfway = list(sent)
    return held, halfway, sent


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_ring_sends_what_the_formulas_say(count: int) -> None:
    """Carried out, a ring gives every GPU the sums, and its GPUs send as much as the formulas say."""
    held, halfway, sent = ring(count)
    sums = [sum(100 * gpu + part for gpu in range(count)) for part in range(count)]
    assert held == [sums] * count
    assert set(halfway) == {exchanged(count, count)}
    assert set(sent) == {ring_reduced(count, count)}


def test_an_all_reduce_gives_away_its_whole_buffer_at_least() -> None:
    """Among two GPUs a ring needs no more than that; a ring of more, and two trees, up to twice as much."""
    assert all_reduced(GIB, 2) == ring_reduced(GIB, 2) == tree_reduced(GIB, 2) == GIB
    for count in (3, 8, 72):
        assert all_reduced(GIB, count) == GIB < ring_reduced(GIB, count) < tree_reduced(GIB, count) == 2 * GIB


@for_all(
    "operation, sizes, sent",
    [
        # A switch that adds up gets the buffer of an all-reduce once; all others send by themselves what they must.
        ("all-reduce", {"bytes": GIB, "gpus": 8}, GIB),
        ("all-reduce", {"bytes": GIB, "gpus": 2}, GIB),
        ("all-gather", {"bytes": GIB, "gpus": 8}, 7 / 8 * GIB),
        ("reduce-scatter", {"bytes": GIB, "gpus": 8}, 7 / 8 * GIB),
        ("all-to-all", {"bytes": GIB, "gpus": 4}, 3 / 4 * GIB),
        ("broadcast", {"bytes": GIB, "gpus": 8}, GIB),
        ("send", {"bytes": GIB}, GIB),
    ],
)
def test_bytes_that_a_gpu_sends(operation: str, sizes: dict[str, int], sent: float) -> None:
    """No algorithm gets by with less, over the link's bandwidth in one direction."""
    found = predicted(operation, **sizes)
    assert found.sent_bytes == sent
    assert found.t_comms_s == pytest.approx(sent / 450e9)
    assert (found.regime, found.flop) == ("communication", 0)


@for_all(
    "operation, gib",
    [
        ("all-reduce", 2),
        ("all-gather", 1),
        ("reduce-scatter", 1 + 1 / 4),
        ("all-to-all", 2 * 3 / 4),
        ("broadcast", 1),
        ("send", 1),
    ],
)
def test_device_memory_of_a_collective(operation: str, gib: float) -> None:
    """Among four GPUs, sent data is read once, and received data or results are written once."""
    sizes = {"bytes": GIB} if operation == "send" else {"bytes": GIB, "gpus": 4}
    assert predicted(operation, **sizes).moved_bytes == gib * GIB


def test_a_collective_sends_as_many_bytes_whatever_the_type() -> None:
    """Its size is in bytes."""
    assert len({predicted("all-reduce", dtype, bytes=1000).sent_bytes for dtype in ("fp32", "bf16", "fp8")}) == 1


def test_one_gpu_sends_nothing() -> None:
    """Without GPUs that share the work there is no link, and the third time is 0."""
    alone = predicted("gemm", m=64, n=64, k=64)
    assert (alone.sent_bytes, alone.t_comms_s) == (0, 0)
    assert (alone.link, alone.link_bytes_per_s, alone.link_intensity, alone.link_ridge) == (None, None, None, None)
    assert exchanged(1000, 1) == all_reduced(1000, 1) == 0


def test_a_split_product_sends_its_results() -> None:
    """Eight GPUs split k: an eighth of the FLOPs each, and m n elements in an all-reduce: k / 8 FLOP a byte.

    In bf16: 2 m n k / 8 over m n x 2 bytes.
    """
    step = predicted("gemm", m=1024, n=2048, k=4096, tensor_parallel=8)
    assert step.flop == 2 * 1024 * 2048 * 4096 / 8
    assert step.moved_bytes == 2 * (1024 * 512 + 512 * 2048 + 1024 * 2048)
    assert step.sent_bytes == 1024 * 2048 * 2
    assert step.link_intensity == pytest.approx(4096 / 8)


def test_ridge_of_a_link() -> None:
    """An H100 does 989.4 TFLOP/s and sends 450 GB/s: 2,199 FLOP a byte sent, 15,459 over PCIe's 64 GB/s."""
    assert predicted("gemm", m=8, n=8, k=8, tensor_parallel=2).link_ridge == pytest.approx(2198.7, abs=0.1)
    pcie = predicted("gemm", link="pcie", m=8, n=8, k=8, tensor_parallel=2)
    assert pcie.link_ridge == pytest.approx(15459.4, abs=0.1)


def test_a_split_product_leaves_its_link_at_the_ridge() -> None:
    """The ridge 2198.7 is at k / 8 for k = 17,589; from 8 x 2,198 + 1 on, the GPU with the largest share has 2,199."""
    row = swept(
        OPERATIONS["gemm"],
        {"m": "8192", "n": "8192", "k": "4096:65536:x2", "batch": "1", "tile": "0", "tensor_parallel": "8"},
        "bf16",
        H100,
    )
    ((sizes, regime),) = row.crossings
    assert (sizes["k"], regime) == (8 * 2198 + 1, "compute")


def test_eight_gpus_share_a_decoder() -> None:
    """Two all-reduces a block of one token send 2 x 32 x 4096 x 2 bytes; products are an eighth."""
    one, eight = predicted("decode"), predicted("decode", tensor_parallel=8)
    assert eight.sent_bytes == 2 * 32 * 4096 * 2
    for label in ("query, key and value", "output projection", "up projection", "down projection", "logits"):
        assert 8 * part(eight, label).flop == part(one, label).flop
    assert part(eight, "attention over the cache").moved_bytes * 8 == part(one, "attention over the cache").moved_bytes
    assert part(eight, "norms").flop == part(one, "norms").flop
    assert {step.label for step in eight.parts if step.sent_bytes} == {"output projection", "down projection"}


@pytest.mark.parametrize("operation", ["transformer-block", "prefill", "decode"])
def test_key_heads_are_copied_where_there_are_more_gpus(operation: str) -> None:
    """Sixteen GPUs and eight key heads: each GPU has two query heads and one key head, (2 + 2) x 128 columns."""
    shared = predicted(operation, tensor_parallel=16)
    sizes = checked_sizes(OPERATIONS[operation], {"tensor_parallel": 16})
    parts = OPERATIONS[operation].parts
    assert parts is not None
    steps = {step.label: step.sizes for step in parts(sizes)}
    assert steps["query, key and value"]["n"] == (2 + 2 * 1) * 128
    assert shared.link == "nvlink"


def test_a_block_of_one_gpu_is_what_it_was() -> None:
    """Sharing with no other GPU changes nothing: Llama 3 8B's projections have 4096 + 2 x 1024 columns."""
    block = predicted("transformer-block", length=16)
    assert part(block, "query, key and value").flop == 2 * 16 * 6144 * 4096
    assert part(block, "down projection").flop == 2 * 16 * 4096 * 14336


def test_experts_exchange_their_rows() -> None:
    """4096 tokens of two experts each on eight GPUs: 7 / 8 x 8192 rows x 4096 x 2 bytes are sent and returned."""
    layer = predicted("moe", tokens=4096, expert_parallel=8)
    each_way = 7 / 8 * 8192 * 4096 * 2
    assert part(layer, "dispatch and up projection").sent_bytes == each_way
    assert part(layer, "down projection and combine").sent_bytes == each_way
    assert layer.sent_bytes == 2 * each_way


def test_experts_do_their_tokens_wherever_they_are() -> None:
    """A GPU computes as many rows with all experts as with its share of them, and reads fewer weights."""
    alone, shared = predicted("moe", tokens=4096), predicted("moe", tokens=4096, expert_parallel=8)
    assert alone.flop == shared.flop
    weights = 3 * 4096 * 14336 * 2
    assert alone.moved_bytes - shared.moved_bytes == pytest.approx(7 * weights)
    assert (alone.sent_bytes, alone.link) == (0, None)


def test_few_tokens_wake_few_experts() -> None:
    """One token with two experts reads the weights of two, not of eight: 3 x 2 x 4096 x 14336 elements."""
    products = [step for step in predicted("moe", tokens=1).parts if "projection" in step.label]
    weights = 3 * 2 * 4096 * 14336 * 2
    assert sum(step.moved_bytes for step in products) == pytest.approx(weights, rel=1e-3)


def test_narrow_types_send_less() -> None:
    """Rows in fp8 take half the bytes of bf16, but their results return in bf16."""
    sizes = {"m": 4096, "n": 4096, "k": 4096, "groups": 4, "dispatch": 4, "combine": 4}
    wide, narrow = (predicted("grouped-gemm", dtype, **sizes) for dtype in ("bf16", "fp8"))
    assert wide.sent_bytes == 3 / 4 * 4096 * 4096 * (2 + 2)
    assert narrow.sent_bytes == 3 / 4 * 4096 * 4096 * (1 + 2)


def test_more_experts_than_there_are_is_refused() -> None:
    """A token cannot use nine of eight experts."""
    with pytest.raises(UsageError, match="cannot have 9 of 8 experts"):
        check_shape(checked_sizes(OPERATIONS["moe"], {"tokens": 1, "top_k": 9}))


def test_a_collective_takes_two_gpus() -> None:
    """An all-reduce on a single GPU is a user's mistake."""
    with pytest.raises(UsageError, match="`gpus` must be 2 to"):
        predicted("all-reduce", bytes=1, gpus=1)


@for_all(
    "gpu, count, wanted, kind",
    [
        ("h100-sxm", 8, None, "nvlink"),
        ("h100-sxm", 8, "pcie", "pcie"),
        ("h100-pcie", 2, None, "nvlink"),
        ("h100-pcie", 3, None, "pcie"),
        ("h200-nvl", 4, None, "nvlink"),
        ("h200-nvl", 8, None, "pcie"),
        ("rtx-4090", 2, None, "pcie"),
        ("rtx-3090", 2, None, "nvlink"),
        ("gb200", 72, None, "nvlink"),
    ],
)
def test_the_fastest_link_that_joins_so_many(gpu: str, count: int, wanted: LinkKind | None, kind: str) -> None:
    """NVLink if there is one; a bridge joins two boards or four, and more of them use PCIe."""
    assert link_of(GPUS[gpu], count, wanted).kind == kind


@pytest.mark.parametrize(
    ("gpu", "wanted", "words"),
    [
        ("rtx-4090", "nvlink", "it has no NVLink$"),
        ("h100-pcie", "nvlink", "its NVLink bridge joins 2 GPUs$"),
        ("gb200", "pcie", "its PCIe is not known$"),
        ("rtx-4090-laptop", None, "it has no NVLink and its PCIe is not known$"),
        ("jetson-thor", None, "it has no NVLink and it has no PCIe$"),
    ],
)
def test_a_link_that_is_not_there_is_told_from_one_not_known(gpu: str, wanted: LinkKind | None, words: str) -> None:
    """No link, a link that does not reach, and a link that no document states give three different errors."""
    with pytest.raises(InputError, match=f"(?m){words}"):
        predicted("all-reduce", on=GPUS[gpu], link=wanted, bytes=1000, gpus=8)


def test_a_gpu_without_a_link_computes_alone() -> None:
    """A Jetson has no link to others, and a product on one GPU needs none."""
    assert predicted("gemm", "fp16", GPUS["jetson-thor"], m=8, n=8, k=8).link is None


def test_what_is_shorter_than_its_launches_is_overhead() -> None:
    """Like a verdict, a forecast calls a kernel of 5 us overhead-bound; a part of 32 blocks has 32 launches."""
    assert default_thresholds().overhead_duration_ns == LAUNCH_FLOOR_S * 1e9
    norm = part(predicted("decode"), "norms")
    assert norm.t_lower_s < norm.count * LAUNCH_FLOOR_S
    assert norm.regime == "overhead"
    assert predicted("decode").regime == "memory"
    assert predicted("decode", tensor_parallel=32).regime == "overhead"


def test_the_gpu_with_most_counts() -> None:
    """Ten columns over four GPUs: one has three."""
    assert [share_of(10, gpus) for gpus in (1, 4, 10, 16)] == [10, 3, 1, 1]


@pytest.mark.parametrize(
    ("operation", "sizes"), [("moe", {"tokens": 64, "expert_parallel": 5}), ("decode", {"tensor_parallel": 33})]
)
def test_work_that_gpus_cannot_share_is_refused(operation: str, sizes: dict[str, int]) -> None:
    """8 experts cannot be split over 5 GPUs, nor 32 heads over 33."""
    with pytest.raises(UsageError, match=r"multiple of `expert_parallel`|cannot split 32 heads"):
        check_shape(checked_sizes(OPERATIONS[operation], sizes))


NCCL_TESTS = Path(__file__).with_name("nccl_tests.csv")
"""What nccl-tests printed on three generations of NVLink, as people have published it, with addresses."""


def test_no_published_collective_is_faster_than_its_floor_and_bus_bandwidth_is_theirs() -> None:
    """23 lines of five machines: 1.3 to 12 times the floor, and the bandwidths that stand there, to the last digit."""
    rows = list(csv.DictReader(NCCL_TESTS.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 23
    assert {row["link"] for row in rows} == {"NVLink 3", "NVLink 4", "NVLink 5"}
    wrong = []
    for row in rows:
        sizes = {"bytes": int(row["bytes"])} | ({"gpus": int(row["gpus"])} if row["operation"] != "send" else {})
        options = Options(gpu=row["gpu"], measured_ms=float(row["time_us"]) / 1e3)
        found = predicted_at(row["operation"], sizes, options).steps[0][1]
        assert found.measured_s is not None
        rates = [(found.algorithm_bytes_per_s, "algbw_gb_per_s"), (found.bus_bytes_per_s, "busbw_gb_per_s")]
        wrong += [f"{row}: {rate}" for rate, name in rates if rate != pytest.approx(1e9 * float(row[name]), rel=5e-4)]
        if not 1.3 < found.measured_s / found.floor_s < 12 or GPUS[row["gpu"]].links["nvlink"].name != row["link"]:
            wrong.append(f"{row}: floor {found.floor_s}")
    assert wrong == []


@for_all(
    "on, gpus, link, taken",
    [
        ("h100-sxm", 8, None, {"SHARP": 9 / 8 * GIB, "ring": 1.75 * GIB, "tree": 2 * GIB}),
        ("gb200", 72, None, {"SHARP": 73 / 72 * GIB, "ring": 71 / 36 * GIB, "tree": 2 * GIB}),
        ("a100-sxm4-80gb", 8, None, {"ring": 1.75 * GIB, "tree": 2 * GIB}),
        ("h100-pcie", 2, None, {"ring": GIB, "tree": GIB}),
        ("h100-sxm", 8, "pcie", {"ring": 1.75 * GIB, "tree": 2 * GIB}),
    ],
)
def test_algorithms_of_an_all_reduce(on: str, gpus: int, link: LinkKind | None, taken: dict[str, float]) -> None:
    """Switches add up from NVLink 4 on; bridges, PCIe and older NVLink do not."""
    found = predicted("all-reduce", on=GPUS[on], link=link, bytes=GIB, gpus=gpus)
    assert {one.name: one.sent_bytes for one in found.algorithms} == pytest.approx(taken)
    assert [one.time_s for one in found.algorithms] == sorted(one.time_s for one in found.algorithms)
    for one in found.algorithms:
        assert one.time_s == pytest.approx(one.sent_bytes / (found.link_bytes_per_s or 0))
    ring = next(one for one in found.algorithms if one.name == "ring")
    assert ring.bus_bytes_per_s == pytest.approx(found.link_bytes_per_s)


@pytest.mark.parametrize("operation", ["all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"])
def test_other_collectives_reach_their_floor_by_themselves(operation: str) -> None:
    """One algorithm sends no more than it must, at the bus bandwidth of the link."""
    (one,) = predicted(operation, bytes=GIB).algorithms
    assert one.time_s == predicted(operation, bytes=GIB).t_comms_s
    assert one.bus_bytes_per_s == pytest.approx(450e9)


def test_a_network_of_a_given_rate_takes_the_place_of_a_link() -> None:
    """50 GB/s each way, as a port of 400 Gbit/s; it joins any number of GPUs, also those without a link."""
    options = Options(network_gb_per_s=50)
    found = forecast(OPERATIONS["all-gather"], {"bytes": GIB, "gpus": 512}, "bf16", GPUS["jetson-thor"], options)
    assert (found.link, found.link_bytes_per_s) == ("network", 50e9)
    assert found.t_comms_s == pytest.approx(511 / 512 * GIB / 50e9)
    with pytest.raises(UsageError, match="a link and a network"):
        forecast(OPERATIONS["send"], {"bytes": 1}, "bf16", H100, Options(network_gb_per_s=50, link="pcie"))


def test_experts_of_a_decoder_are_shared_like_its_other_layers() -> None:
    """Eight GPUs have an eighth of each expert; the sum over experts ends in the all-reduce of the layer."""
    one, eight = predicted("decode", experts=8), predicted("decode", experts=8, tensor_parallel=8)
    for label in ("up projection", "down projection"):
        assert 8 * part(eight, label).flop == part(one, label).flop
    assert part(eight, "weighted sum").sent_bytes == 32 * 4096 * 2
    assert eight.sent_bytes == 2 * 32 * 4096 * 2
