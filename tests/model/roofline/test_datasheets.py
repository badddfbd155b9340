from __future__ import annotations

import csv
import functools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from msgspec import Struct
from support.loops import for_all

from rooflens.cache import keep, kept
from rooflens.errors import InputError
from rooflens.model.roofline import datasheets as gpu_module
from rooflens.model.roofline.datasheets import (
    Datasheet,
    Link,
    Quantity,
    datasheet_of,
    index_by_name,
    load_datasheets,
    memory_label,
    parse_datasheet,
)

GPUS = load_datasheets()
FOLDER = Path(gpu_module.__file__).parents[2] / "gpus"

FP32_LANES = {
    "6.0": 64,
    "6.1": 128,
    "7.0": 64,
    "7.2": 64,
    "7.5": 64,
    "8.0": 64,
    "8.6": 128,
    "8.7": 128,
    "8.9": 128,
    "9.0": 128,
    "10.0": 128,
    "10.3": 128,
    "10.7": 128,
    "11.0": 128,
    "12.0": 128,
    "12.1": 128,
}
"""FP32 FMA lanes of one SM (CUDA C++ Programming Guide, arithmetic throughput)."""

TENSOR_FP16_PER_FP32 = {
    "7.0": (8,),
    "7.2": (8,),
    "7.5": (4, 8),
    "8.0": (16,),
    "8.6": (2, 4),
    "8.7": (8,),
    "8.9": (2, 4),
    "9.0": (4, 16),
    "10.0": (32,),
    "10.3": (32,),
    "10.7": (32,),
    "11.0": (32,),
    "12.0": (2, 4),
}
"""Dense tensor fp16 rate (fp32 accumulation) over the fp32 rate; of two, the lower is that of boards which halve it."""

BOARDS_OF_HALF_RATE = re.compile(r"GeForce|A10G$|L40$|L20$|H20$")
"""Boards whose datasheets give fp32 accumulation half the rate of the chip, the H20 a quarter."""

BOARDS_OF_ONE_NAME = frozenset({"gtx-1650", "jetson-agx-orin", "jetson-agx-xavier", "jetson-thor", "rtx-3080"})
"""Files whose display name stands for boards of other memory or other SMs, too."""

FLOP_PER_INSTRUCTION = {"dfma": ("fp64", 2), "ffma": ("fp32", 2), "hfma": ("fp16", 4)}
"""Pipe of each counted FMA, and its operations; a half FMA is packed."""

DENSE_TENSOR_COUNTERS = {
    "tensor_fp64": ("src_fp64",),
    "tensor_tf32": (
        "op_hgmma_src_tf32_dst_fp32_sparsity_off",
        "src_tf32_dst_fp32_sparsity_off",
        "op_hmma_src_tf32_dst_fp32_sparsity_off",
    ),
    "tensor_bf16": (
        "op_hgmma_src_bf16_dst_fp32_sparsity_off",
        "src_bf16_dst_fp32_sparsity_off",
        "op_hmma_src_bf16_dst_fp32_sparsity_off",
    ),
    "tensor_fp16": (
        "op_hgmma_src_fp16_sparsity_off",
        "src_fp16_dst_fp32_sparsity_off",
        "op_hmma_src_fp16_dst_fp32_sparsity_off",
        "src_fp16_bf16_tf32_dst_fp32",
    ),
    "tensor_fp16_acc16": (
        "op_hgmma_src_fp16_sparsity_off",
        "src_fp16_dst_fp16_sparsity_off",
        "op_hmma_src_fp16_dst_fp16_sparsity_off",
        "src_fp16_dst_fp16",
    ),
    "tensor_fp8": ("src_fp8_sparsity_off", "src_fp8_dst_fp32_sparsity_off"),
    "tensor_fp8_acc16": ("src_fp8_dst_fp16_sparsity_off",),
    "tensor_fp4": ("src_fp4_dst_fp32_sparsity_off",),
    "tensor_int8": (
        "op_igmma_src_int8_sparsity_off",
        "src_int8_sparsity_off",
        "op_imma_src_int8_sparsity_off",
        "src_int8",
    ),
    "tensor_int4": ("src_int4_sparsity_off", "src_int4"),
    "tensor_int1": ("op_bgmma_src_int1", "src_int1"),
}
"""Tensor counters whose peak is the chip's dense one, the fastest way to issue first."""

VALID = """
names = ["NVIDIA Test"]
compute_capability = "9.0"
chip = "gh100"
sm_count = { value = 132, unit = "SM", source = "a datasheet" }
boost_clock = { value = 1.98e9, unit = "Hz", source = "a datasheet" }
dram_bandwidth = { value = 4.8e12, unit = "byte/s", source = "a datasheet" }

[peaks]
fp32 = { value = 67e12, unit = "op/s", source = "a datasheet" }

[links]
pcie = { none = "a datasheet" }

[links.nvlink]
generation = 4
width = 18
joins = 2
bytes_per_s_per_direction = 450e9
bytes_per_s_total = 900e9
source = "a datasheet"
"""

each_gpu = for_all("gpu", GPUS, lambda gpu: gpu.name)


UNITS = {
    **dict.fromkeys(("boost_clock", "base_clock", "tensor_boost_clock", "highest_clock"), "Hz"),
    **dict.fromkeys(("special_rate", "issue_rate"), "op/s"),
    **dict.fromkeys(("dram_bandwidth", "l2_bandwidth"), "byte/s"),
    **dict.fromkeys(("dram_size", "l2_size"), "byte"),
    "sm_count": "SM",
}


def quantities(gpu: Datasheet) -> dict[str, Quantity]:
    """Return every number of a GPU under its key in the file."""
    found = {key: getattr(gpu, key) for key in UNITS}
    found |= {f"peaks.{key}": peak for key, peak in gpu.peaks.items()}
    return {key: quantity for key, quantity in found.items() if quantity is not None}


SCHEMA = Draft202012Validator(json.loads(gpu_module.schema_text()))
"""What editors check a GPU file by."""


def test_every_file_is_loaded() -> None:
    """Each TOML file gives one GPU."""
    assert len(GPUS) == len(list(FOLDER.glob("*.toml"))) >= 106


@each_gpu
def test_every_number_has_its_unit_and_a_source(gpu: Datasheet) -> None:
    """Units are from the schema's closed set, and every source is non-empty."""
    for key, quantity in quantities(gpu).items():
        assert quantity.unit == UNITS.get(key, "op/s")
        assert len(quantity.source) > 10, key


@each_gpu
def test_fp32_peak_follows_from_lanes_and_clock(gpu: Datasheet) -> None:
    """SMs x lanes x two operations x boost clock gives the datasheet's rounded fp32 peak."""
    expected = gpu.sm_count.value * FP32_LANES[gpu.compute_capability] * 2 * gpu.boost_clock.value
    assert gpu.peaks["fp32"].value == pytest.approx(expected, rel=0.02)


@each_gpu
def test_derived_peaks_are_the_product_their_source_shows(gpu: Datasheet) -> None:
    """A derived peak is the product of the file's own SM count and the clock it is stated for."""
    formula = re.compile(r"derived: (\d+) SM x (\d+) (?:FLOP|op)/SM/clk x ([\d.]+) GHz \(.+\)")
    for key, peak in gpu.peaks.items():
        if peak.source.startswith("derived"):
            match = formula.fullmatch(peak.source)
            assert match is not None, key
            sms, rate, clock_ghz = (float(group) for group in match.groups())
            assert (sms, clock_ghz * 1e9) == pytest.approx((gpu.sm_count.value, gpu.clock_of(key).value))
            assert peak.value == pytest.approx(sms * rate * clock_ghz * 1e9, rel=1e-3)


SPECIAL_AND_ISSUED = {
    "6.0": (16, 64),
    "6.1": (32, 128),
    **dict.fromkeys(("7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "12.0"), (16, 128)),
    "10.3": (32, 128),
}
"""Special functions and thread instructions of an SM and cycle (CUDA C++ Programming Guide); others are not known."""


@each_gpu
def test_rates_beside_the_peaks_follow_from_the_generation(gpu: Datasheet) -> None:
    """Special functions and issued instructions: SMs x rate x boost clock, as the source says; none for a new chip."""
    rates = SPECIAL_AND_ISSUED.get(gpu.compute_capability, (None, None))
    for rate, quantity in zip(rates, (gpu.special_rate, gpu.issue_rate), strict=True):
        assert (rate is None) == (quantity is None)
        if quantity is not None:
            assert quantity.value == pytest.approx(gpu.sm_count.value * (rate or 0) * gpu.boost_clock.value, rel=1e-4)
            assert quantity.source.startswith(f"derived: {gpu.sm_count.value:.0f} SM x {rate} op/SM/clk x ")


def test_floors_are_for_the_highest_clock_seen_or_assumed() -> None:
    """A card with GeForce's boost runs above its rated clock: as somebody saw, else 1.15 times, marked as assumed."""
    of = {gpu.id: gpu for gpu in GPUS}
    assert of["rtx-4090"].fastest_clock.value == 2.82e9
    assert "github.com/" in of["rtx-4090"].fastest_clock.source
    assumed = of["rtx-4080"].fastest_clock
    assert assumed.value == pytest.approx(1.15 * 2.505e9)
    assert assumed.source.startswith("assumed: 1.15 x")
    for gpu in GPUS:
        if gpu.highest_clock is not None:
            assert gpu.boost_clock.value < gpu.highest_clock.value < 1.4 * gpu.boost_clock.value
            assert "github.com/" in gpu.highest_clock.source


@each_gpu
def test_data_centre_cards_stop_at_their_boost_clock(gpu: Datasheet) -> None:
    """Of those no clock is assumed, so that their floors are those of the datasheet."""
    is_free = any(re.search(r"GeForce|RTX|T400", name) for name in gpu.names) and gpu.id != "rtx-pro-6000-server"
    assert (gpu.above_boost > 1) == is_free
    if not is_free:
        assert gpu.fastest_clock == gpu.boost_clock


@each_gpu
def test_blocks_with_scales_share_the_pipe_of_their_width(gpu: Datasheet) -> None:
    """Tensor cores that apply scales came with fp4; GeForce boards of CC 12 do fp8 with scales twice as fast."""
    for key, plain in gpu_module.BLOCK_SCALED.items():
        peak = gpu.peak(key)
        assert (peak is not None) == ({"tensor_fp4", plain} <= gpu.peaks.keys()), key
        if peak is not None and key in gpu.peaks:
            assert gpu.compute_capability == "12.0"
            assert peak.value == pytest.approx(2 * gpu.peaks[plain].value, rel=1e-3)
            assert peak.value == pytest.approx(gpu.peaks["tensor_fp8_acc16"].value, rel=1e-3)
        elif peak is not None:
            assert peak == gpu.peaks[plain]


@each_gpu
def test_l2_returns_more_than_memory_and_as_its_source_shows(gpu: Datasheet) -> None:
    """Bytes per cycle times the boost clock give the bandwidth of L2."""
    if gpu.l2_bandwidth is None:
        return
    match = re.fullmatch(r"derived: (\d+) byte/clk x ([\d.]+) GHz \(.+\)", gpu.l2_bandwidth.source)
    assert match is not None
    rate, clock_ghz = int(match[1]), float(match[2])
    assert clock_ghz * 1e9 == pytest.approx(gpu.boost_clock.value)
    assert gpu.l2_bandwidth.value == pytest.approx(rate * clock_ghz * 1e9, rel=1e-3)
    assert gpu.l2_bandwidth.value > 2 * gpu.dram_bandwidth.value


@each_gpu
def test_tensor_peaks_are_whole_rates_at_the_clock_they_are_stated_for(gpu: Datasheet) -> None:
    """Divided by SMs and that clock, a tensor peak is a power of two, or three times one, within datasheet rounding.

    The widest is the B200's 2.2 PFLOPS of sparse tf32, for 2.25. Left out: the H800's fp64 of one digit, and the H20
    and Rubin, whose cap and clocks are not published.
    """
    for key, peak in gpu.peaks.items():
        if key.startswith("tensor") and key != "tensor_fp64" and gpu.id not in {"h20", "rubin"}:
            rate = peak.value / gpu.sm_count.value / gpu.clock_of(key).value
            exponents = [math.log2(rate), math.log2(rate / 3)]
            assert min(abs(exponent - round(exponent)) for exponent in exponents) < math.log2(1.025), (key, rate)


@for_all(
    "name, flop_per_cycle",
    [
        ("NVIDIA H100 80GB HBM3", 132 * 4096),
        ("NVIDIA H200", 132 * 4096),
        ("NVIDIA GH200 480GB", 132 * 4096),
        ("NVIDIA H100 PCIe", 114 * 4096),
        ("NVIDIA H100 NVL", 132 * 4096),
        ("NVIDIA B200", 148 * 8192),
        ("NVIDIA A100-SXM4-80GB", 108 * 2048),
        ("NVIDIA GeForce RTX 4090", 128 * 512),
    ],
)
def test_full_rate_is_the_whole_published_peak_at_any_clock(name: str, flop_per_cycle: float) -> None:
    """A tensor core per SM quarter does 1024 dense bf16 FLOPs per cycle on Hopper: then the share is 1.000."""
    clock_hz = 1.41e9
    gpu = datasheet_of(name)
    assert gpu is not None
    peak = gpu.peak_at(clock_hz, "tensor_bf16")
    assert peak is not None
    assert flop_per_cycle * clock_hz / peak == pytest.approx(1.0, abs=2e-3)


def test_fp64_on_tensor_cores_is_stated_for_the_boost_clock() -> None:
    """The H100's 66.9 TFLOP/s are 256 FLOPs per cycle on 132 SMs at 1.98 GHz, while its bf16 peak is for 1.83 GHz."""
    gpu = datasheet_of("NVIDIA H100 80GB HBM3")
    assert gpu is not None
    assert (gpu.clock_of("tensor_fp64").value, gpu.clock_of("tensor_bf16").value) == (1.98e9, 1.83e9)
    assert gpu.peak_at(1e9, "tensor_fp64") == pytest.approx(132 * 256 * 1e9, rel=2e-3)


@each_gpu
def test_halved_peaks_are_half_of_the_sparse_figure(gpu: Datasheet) -> None:
    """If a datasheet gives only the sparse rate, the file has half of the figure quoted in its source."""
    for peak in gpu.peaks.values():
        if match := re.search(r"half of the sparse ([\d.]+) ([TP])", peak.source):
            assert peak.value * 2 == pytest.approx(float(match[1]) * {"T": 1e12, "P": 1e15}[match[2]])


@each_gpu
def test_tensor_rates_are_the_dense_ones(gpu: Datasheet) -> None:
    """No dense tensor rate exceeds what its element size allows next to bf16, as a sparse figure would.

    Rubin doubled fp8 and fp4 alone, at a clock that NVIDIA does not publish.
    """
    wider = 2.2 if gpu.chip == "gr100" else 1
    times_bf16 = {
        "tensor_tf32": 0.5,
        "tensor_fp16": 1,
        "tensor_fp16_acc16": 2,
        "tensor_fp8": 2 * wider,
        "tensor_fp8_acc16": 4,
        "tensor_fp4": 8 * wider,
        "tensor_int8": 4,
        "tensor_int4": 8,
        "tensor_int1": 32,
    }
    bf16 = gpu.peaks.get("tensor_bf16")
    for key, factor in times_bf16.items():
        if bf16 is not None and key in gpu.peaks:
            assert gpu.peaks[key].value <= bf16.value * factor * 1.01, key


@each_gpu
def test_tensor_fp16_stands_to_fp32_as_the_architecture_has_it(gpu: Datasheet) -> None:
    """The architecture sets the ratio, halved on some boards; data-centre boards from Hopper on state a lower clock."""
    if "tensor_fp16" in gpu.peaks:
        nominal = TENSOR_FP16_PER_FP32[gpu.compute_capability]
        expected = nominal[0] if BOARDS_OF_HALF_RATE.search(gpu.name) else nominal[-1]
        ratio = gpu.peaks["tensor_fp16"].value / gpu.peaks["fp32"].value
        lowest = 0.86 if float(gpu.compute_capability) in {9.0, 10.0, 10.3, 10.7} else 0.98
        assert lowest <= ratio / expected <= 1.02


@each_gpu
def test_bf16_runs_at_the_rate_of_fp16_and_tf32_at_half_of_it(gpu: Datasheet) -> None:
    """On tensor cores both 16-bit types share one rate, and tf32 has half of it."""
    if "tensor_bf16" in gpu.peaks:
        fp16 = gpu.peaks["tensor_fp16"].value
        assert gpu.peaks["tensor_bf16"].value == pytest.approx(fp16, rel=0.005)
        assert gpu.peaks["tensor_tf32"].value == pytest.approx(fp16 / 2, rel=0.03)


@each_gpu
def test_bandwidth_lies_where_memory_of_its_time_does(gpu: Datasheet) -> None:
    """In bytes per second, not gigabytes or bits: from a 64-bit GDDR6 board to eight stacks of HBM4."""
    assert 80e9 <= gpu.dram_bandwidth.value <= (22e12 if gpu.memory_kind == "HBM4" else 10e12)


@each_gpu
def test_the_base_clock_lies_below_the_boost_clock(gpu: Datasheet) -> None:
    """The base clock, if published, is the lower of the two."""
    if gpu.base_clock is not None:
        assert gpu.base_clock.value < gpu.boost_clock.value


NVLINK_RATES = {1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9, 6: 100e9}
"""Bytes per second of one NVLink in one direction, by generation."""

NARROW_NVLINK = 14.0625e9
"""The same of the bridges of GA102 boards (NVIDIA Ampere GA102 whitepaper, 2021)."""

PCIE_RATES = {3: 1e9, 4: 2e9, 5: 4e9, 6: 8e9}
"""Nominal bytes per second of one PCIe lane in one direction, by generation; NVIDIA's figures are sixteen of these."""


@each_gpu
def test_a_link_carries_what_its_generation_and_width_allow(gpu: Datasheet) -> None:
    """The number of links times the rate of their generation, for each direction."""
    for kind, link in gpu.links.items():
        narrow = kind == "nvlink" and gpu.chip == "ga102"
        rate = NARROW_NVLINK if narrow else (NVLINK_RATES if kind == "nvlink" else PCIE_RATES)[link.generation]
        assert link.bytes_per_s_per_direction == link.width * rate, kind
        assert link.bytes_per_s_total == 2 * link.width * rate, kind
        assert len(link.source) > 10


@each_gpu
def test_every_file_says_whether_there_is_nvlink(gpu: Datasheet) -> None:
    """Each file has a link, or its absence, with its source; PCIe is open only if a laptop or a CPU's link decides."""
    assert ("nvlink" in gpu.links) != ("nvlink" in gpu.absent_links)
    assert all(len(source) > 10 for source in gpu.absent_links.values())
    told = {*gpu.links, *gpu.absent_links}
    assert "pcie" in told or re.search(r"Laptop|Max-Q Design|GH200|GB200|GB300|GB10|Rubin", gpu.name)


@for_all(
    "name, total_gb_per_s",
    [
        ("Tesla P100-SXM2-16GB", 160),
        ("Tesla V100-SXM2-32GB", 300),
        ("NVIDIA A100-SXM4-80GB", 600),
        ("NVIDIA A800-SXM4-80GB", 400),
        ("NVIDIA A30", 200),
        ("NVIDIA A40", 112.5),
        ("NVIDIA H100 80GB HBM3", 900),
        ("NVIDIA H100 PCIe", 600),
        ("NVIDIA H100 NVL", 600),
        ("NVIDIA H800", 400),
        ("NVIDIA H20", 900),
        ("NVIDIA H200", 900),
        ("NVIDIA GH200 480GB", 900),
        ("NVIDIA B200", 1800),
        ("NVIDIA B300 SXM6 AC", 1800),
        ("NVIDIA GB200", 1800),
        ("NVIDIA GB300", 1800),
        ("NVIDIA GeForce RTX 3090", 112.5),
        ("NVIDIA GeForce RTX 2080 Ti", 100),
    ],
)
def test_nvlink_is_the_figure_of_the_datasheet(name: str, total_gb_per_s: float) -> None:
    """Datasheets give the sum of both directions; one GPU sends half of it."""
    gpu = datasheet_of(name)
    assert gpu is not None
    assert gpu.links["nvlink"].bytes_per_s_total == total_gb_per_s * 1e9


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090", "NVIDIA L40S", "Tesla T4", "Tesla V100-PCIE-16GB"])
def test_no_nvlink_is_not_an_unknown_one(name: str) -> None:
    """The files of boards with only PCIe say so."""
    gpu = datasheet_of(name)
    assert gpu is not None
    assert "nvlink" in gpu.absent_links
    assert "pcie" in gpu.links


def test_names_do_not_repeat() -> None:
    """No two files have the same display name."""
    names = [name for gpu in GPUS for name in gpu.names]
    assert len(index_by_name(GPUS)) == len(names)


def test_a_name_claimed_twice_is_an_error() -> None:
    """A name in two files is refused, even if case and manufacturer are spelled differently."""
    other = VALID.replace("NVIDIA Test", "test")
    with pytest.raises(InputError, match="two GPU files claim the name `test`"):
        index_by_name([parse_datasheet("a.toml", VALID), parse_datasheet("b.toml", other)])


def test_every_name_finds_its_own_file() -> None:
    """A look-up reads only files that contain the name, and finds the same as an index of all files."""
    by_name = {name: gpu for gpu in GPUS for name in gpu.names}
    assert {name: datasheet_of(name) for name in by_name} == by_name
    assert datasheet_of("") is None
    assert datasheet_of("H") is None


def test_gpu_files_are_read_anew_where_the_cache_holds_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cached contents are used only if they were made from these files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load_datasheets.__wrapped__() == GPUS
    good = kept("gpus.json")
    assert good is not None
    other = json.loads(good)
    other["files"]["t4.toml"]["chip"] = "gh100"
    keep("gpus.json", json.dumps(other).encode())
    changed = next(gpu for gpu in load_datasheets.__wrapped__() if gpu.id == "t4")
    assert changed.chip == "gh100"  # so this is where it is read from
    for bad in (json.dumps(other | {"digest": "0"}).encode(), b"", b"[]", b'{"digest": 1}'):
        keep("gpus.json", bad)
        assert load_datasheets.__wrapped__() == GPUS
        assert kept("gpus.json") == good


@pytest.mark.parametrize("name", ["NVIDIA H200", "nvidia h200", "H200", " NVIDIA H200 "])
def test_lookup_ignores_case_and_maker(name: str) -> None:
    """Older drivers omit the manufacturer in the display name, so it is ignored."""
    gpu = datasheet_of(name)
    assert gpu is not None
    assert gpu.name == "NVIDIA H200"


@for_all(
    "name, file",
    [
        ("Tesla T4", "t4"),
        ("NVIDIA A30", "a30"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA GH200 120GB", "gh200-480gb"),
        ("NVIDIA GB200", "gb200"),
        ("GeForce RTX 2080", "rtx-2080"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"),
        ("GeForce GTX 1080", "gtx-1080"),
        ("NVIDIA GeForce GTX 1650", "gtx-1650"),
        ("NVIDIA T400 4GB", "t400"),
        ("Tesla V100-PCIE-16GB", "v100-pcie"),
        ("Xavier", "jetson-agx-xavier"),
        ("Orin", "jetson-agx-orin"),
        ("NVIDIA Thor", "jetson-thor"),
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA A800-SXM4-80GB", "a800-sxm4-80gb"),
        ("NVIDIA L20", "l20"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090-d"),
        ("NVIDIA GeForce RTX 3070 Ti Laptop GPU", "rtx-3070-ti-laptop"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", "rtx-4060-laptop"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "rtx-5090-laptop"),
        ("NVIDIA RTX 4000 Ada Generation", "rtx-4000-ada"),
    ],
)
def test_names_are_found_as_drivers_spell_them(name: str, file: str) -> None:
    """A display name leads to its file, and not to a sibling's."""
    gpu = datasheet_of(name)
    assert gpu is not None
    assert gpu.id == file


@for_all(
    "name, key, operations_per_cycle",
    [
        ("NVIDIA GeForce RTX 4090", "tensor_fp16_acc16", 128 * 1024),
        ("NVIDIA GeForce RTX 4090", "tensor_fp16", 128 * 512),
        ("NVIDIA GeForce RTX 4090", "tensor_fp8_acc16", 128 * 2048),
        ("NVIDIA GeForce RTX 3090", "tensor_fp16_acc16", 82 * 1024),
        ("NVIDIA GeForce RTX 2080 Ti", "tensor_fp16_acc16", 68 * 1024),
        ("NVIDIA L40", "tensor_fp16_acc16", 142 * 1024),
        ("NVIDIA L40S", "tensor_fp16_acc16", 142 * 1024),
        ("NVIDIA L40S", "tensor_fp16", 142 * 1024),
        ("Tesla T4", "tensor_fp16_acc16", 40 * 1024),
        ("Tesla T4", "tensor_int4", 40 * 4096),
        ("NVIDIA A100-SXM4-40GB", "tensor_int1", 108 * 32768),
        ("NVIDIA B300 SXM6 AC", "tensor_fp4", 148 * 3 * 16384),
    ],
)
def test_accumulation_in_fp16_is_twice_as_fast_on_some_boards_only(
    name: str, key: str, operations_per_cycle: float
) -> None:
    """GeForce boards and the L40 halve fp32 accumulation; other GPUs have one rate, stated once."""
    gpu = datasheet_of(name)
    assert gpu is not None
    assert gpu.peak_at(1e9, key) == pytest.approx(operations_per_cycle * 1e9, rel=0.005)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "tensor_int4"),
        ("NVIDIA GeForce RTX 5090", "tensor_int4"),
        ("Tesla V100-SXM2-32GB", "tensor_int8"),
        ("NVIDIA A100-SXM4-40GB", "tensor_fp8_acc16"),
        ("NVIDIA GeForce GTX 1660 Ti", "tensor_fp16_acc16"),
    ],
)
def test_a_type_that_a_chip_lacks_has_no_peak(name: str, key: str) -> None:
    """Hopper and Blackwell dropped int4, Ampere has no fp8, and TU116 no tensor cores: None rather than 0."""
    gpu = datasheet_of(name)
    assert gpu is not None
    assert gpu.peak(key) is None


@for_all("name", [None, "", "NVIDIA", "NVIDIA H2", "NVIDIA H100", "GeForce RTX 4060 Laptop", "GH200"])
def test_lookup_never_guesses(name: str | None) -> None:
    """A name that is in no file finds nothing, however similar."""
    assert datasheet_of(name) is None


def test_a_valid_file_gives_every_field() -> None:
    """A file without optional keys is read in full, and the missing values are None."""
    gpu = parse_datasheet("test.toml", VALID)
    assert gpu == Datasheet(
        id="test",
        names=("NVIDIA Test",),
        compute_capability="9.0",
        chip="gh100",
        sm_count=Quantity(132.0, "SM", "a datasheet"),
        boost_clock=Quantity(1.98e9, "Hz", "a datasheet"),
        dram_bandwidth=Quantity(4.8e12, "byte/s", "a datasheet"),
        peaks={"fp32": Quantity(67e12, "op/s", "a datasheet")},
        base_clock=None,
        l2_size=None,
        links={"nvlink": Link("nvlink", 4, 18, 450e9, 900e9, "a datasheet", joins=2)},
        absent_links={"pcie": "a datasheet"},
    )


@for_all(
    "old, new, message",
    [
        ('chip = "gh100"', 'chip = "gh100"\nl3_size = 1', "GPU file `t.toml`: Object contains unknown field `l3_size`"),
        ("fp32 =", "fp3 =", "GPU file `t.toml`: `peaks`: Invalid enum value 'fp3'"),
        (
            "{ value = 67e12,",
            "{ value = 67e12, scale = 1,",
            "`peaks.fp32`: Object contains unknown field `scale`",
        ),
        ('chip = "gh100"\n', "", "GPU file `t.toml`: Object missing required field `chip`"),
        ("value = 132, ", "", "GPU file `t.toml`: Object missing required field `value` - at `sm_count`"),
        ('unit = "Hz"', 'unit = "GHz"', "GPU file `t.toml`: Invalid enum value 'GHz' - at `boost_clock.unit`"),
        ("value = 132", "value = 0", "GPU file `t.toml`: Expected `float` > 0.0 - at `sm_count.value`"),
        ("value = 132", "value = true", "GPU file `t.toml`: Expected `float`, got `bool` - at `sm_count.value`"),
        ("value = 132", "value = nan", "GPU file `t.toml`: Expected `float` > 0.0 - at `sm_count.value`"),
        ('["NVIDIA Test"]', '"NVIDIA Test"', "GPU file `t.toml`: Expected `array`, got `str` - at `names`"),
        ('["NVIDIA Test"]', '[" "]', "GPU file `t.toml`: Expected `str` matching regex '\\\\S' - at `names[0]`"),
        (
            '{ value = 1.98e9, unit = "Hz", source = "a datasheet" }',
            "1.98e9",
            "got `float` - at `boost_clock`",
        ),
        ("names =", "names", "GPU file `t.toml` is not valid TOML"),
        (
            "[links.nvlink]",
            "[links.infiniband]",
            "Invalid enum value 'infiniband'",
        ),
        (
            "{ none =",
            '{ source = "x", none =',
            "`links.pcie`: Object contains unknown field `source`",
        ),
        ('none = "a datasheet"', 'none = " "', "`links.pcie`: Expected `str` matching regex"),
        ("width = 18\n", "", "GPU file `t.toml`: `links.nvlink`: Object missing required field `width`"),
        ("generation = 4\n", "generation = 4.5\n", "`links.nvlink`: Expected `int`, got `float` - at `generation`"),
        ("total = 900e9", "total = 450e9", "`links.nvlink`: `bytes_per_s_total` must be twice the rate of a direction"),
    ],
)
def test_a_bad_file_is_an_error_that_names_file_and_key(old: str, new: str, message: str) -> None:
    """Each mistake is reported with the file, the key and where to look."""
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        parse_datasheet("t.toml", VALID.replace(old, new, 1))
    assert caught.value.hint == "`rooflens/gpus/h200.toml` of the package is a complete file"
    if "not valid TOML" not in message and "twice" not in message and "nan" not in new:  # what a schema cannot say
        assert not SCHEMA.is_valid(tomllib.loads(VALID.replace(old, new, 1)))


def test_every_file_keeps_to_the_schema() -> None:
    """Editors that know the schema find no fault in a file of the package, nor in the one of these tests."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.toml"))} | {"test": VALID}
    documents = {name: tomllib.loads(text) for name, text in texts.items()}
    wrong = [f"{name}: {fault.message}" for name, one in documents.items() for fault in SCHEMA.iter_errors(one)]
    assert len(texts) > 100
    assert not wrong, "\n".join(wrong)


class Device(Struct, frozen=True):
    """A GPU as one report recorded it.

    Attributes:
        attributes: Device attributes by name without their prefix.
        rates: Peak per SM and clock by counter, zeros (a failed kernel's) left out.
    """

    report: str
    gpu: Datasheet
    attributes: Mapping[str, float]
    rates: Mapping[str, float]


@functools.cache
def recorded_devices(corpus: Path) -> tuple[Device, ...]:
    """Read the device of every report, in the corpus and in the folder of cases beside it, that has one."""
    paths = sorted([*corpus.glob("*.ncu-rep"), *(corpus.parent / "cases").glob("*.ncu-rep")])
    return tuple(device for path in paths for device in _recorded(path))


def _recorded(path: Path) -> Iterator[Device]:
    import ncu_report  # noqa: PLC0415  # only tests of the corpus need NVIDIA's reader

    actions = [action for group in ncu_report.load_report(str(path)) for action in group]
    for action in actions[:1]:
        name = action.metric_by_name("device__attribute_display_name").as_string()
        gpu = datasheet_of(name)
        assert gpu is not None, f"{path.name}: no file for `{name}`"
        values = {
            name.removeprefix("device__attribute_"): float(action.metric_by_name(name).as_double())
            for name in action.metric_names()
            if name.startswith(("device__attribute_", "nvlink__")) and not name.endswith("display_name")
        }
        yield Device(path.name, gpu, values, _rates(actions, values["multiprocessor_count"]))


def _rates(actions: list[object], sm_count: float) -> dict[str, float]:
    wanted = [f"sm__sass_thread_inst_executed_op_{name}_pred_on" for name in FLOP_PER_INSTRUCTION]
    wanted += [f"sm__ops_path_tensor_{name}" for names in DENSE_TENSOR_COUNTERS.values() for name in names]
    rates = {}
    for action in actions:
        for name in wanted:
            metric = action.metric_by_name(f"{name}.sum.peak_sustained")  # type: ignore[attr-defined]
            if metric is not None and 0 < metric.as_double() < math.inf:
                rates[name] = metric.as_double() / sm_count
    return rates


RAM_TYPES = {15.0: ("HBM2", "HBM2e"), 17.0: ("GDDR6",)}
"""The driver's number for a kind of memory, where it names one: HBM3, GDDR6X and GDDR7 are all 0."""


@pytest.mark.corpus
def test_the_kind_of_memory_is_the_driver_s(corpus: Path) -> None:
    """Reports store the driver's number of the kind, which tells HBM2 and GDDR6, and no file contradicts it."""
    checked = 0
    for device in recorded_devices(corpus):
        kind, number = device.gpu.memory_kind, device.attributes.get("ram_type")
        if kind is not None and number is not None:
            told = {name for names in RAM_TYPES.values() for name in names}
            assert kind in RAM_TYPES[number] if number in RAM_TYPES else kind not in told, device.report
            checked += 1
    assert checked >= 20


@for_all(
    "names, label",
    [
        (["NVIDIA H100 80GB HBM3"], "HBM3"),
        (["NVIDIA H100 PCIe"], "HBM2e"),
        (["NVIDIA GeForce RTX 4090"], "GDDR6X"),
        (["Tesla T4", "NVIDIA A40"], "GDDR6"),
        (["Tesla T4", "NVIDIA H200"], "DRAM"),
        (["NVIDIA GeForce GTX 1650"], "DRAM"),
        (["some GPU"], "DRAM"),
        (["Tesla T4", None], "DRAM"),
        ([], "DRAM"),
    ],
)
def test_memory_is_called_by_its_kind_where_it_is_one(names: list[str | None], label: str) -> None:
    """GPUs of one kind share its name; two kinds, boards that differ and unknown GPUs give DRAM."""
    assert memory_label(*names) == label


@each_gpu
def test_only_boards_that_differ_leave_their_kind_of_memory_out(gpu: Datasheet) -> None:
    """Every other file names its kind of memory."""
    differ = {"gtx-1650", "rtx-3060-ti", "rtx-4070"}
    assert (gpu.memory_kind is None) == (gpu.id in differ)


@pytest.mark.corpus
def test_every_gpu_of_the_corpus_has_a_file(corpus: Path) -> None:
    """Each display name in the manifest of the corpus is known."""
    with (corpus / "manifest.tsv").open(encoding="utf-8", newline="") as lines:
        names = {row["gpu"] for row in csv.DictReader(lines, delimiter="\t")} - {"", None}
    assert sorted(name for name in names if datasheet_of(name) is None) == []


@pytest.mark.corpus
def test_identity_agrees_with_the_device_attributes(corpus: Path) -> None:
    """SM count, compute capability and L2 size are those the driver reported to ncu."""
    for device in recorded_devices(corpus):
        attributes, gpu = device.attributes, device.gpu
        major, minor = attributes["compute_capability_major"], attributes["compute_capability_minor"]
        assert gpu.sm_count.value == attributes["multiprocessor_count"], device.report
        assert gpu.compute_capability == f"{major:.0f}.{minor:.0f}", device.report
        if gpu.l2_size is not None:
            assert gpu.l2_size.value == attributes["l2_cache_size"], device.report


@pytest.mark.corpus
def test_dram_bandwidth_agrees_with_bus_and_memory_clock(corpus: Path) -> None:
    """Bus width times twice the memory clock (two bits a pin and cycle) gives the published bandwidth.

    Within 1 %, since datasheets round to two or three digits (7.7 TB/s for 7.67). Two bits hold for every kind of
    memory here, GDDR6X and GDDR7 too: the driver counts their clock that way.
    """
    for device in recorded_devices(corpus):
        if device.gpu.id in BOARDS_OF_ONE_NAME:
            continue
        pins, clock_khz = device.attributes["global_memory_bus_width"], device.attributes["memory_clock_rate"]
        expected = pins / 8 * 2 * clock_khz * 1e3
        assert device.gpu.dram_bandwidth.value == pytest.approx(expected, rel=0.01), device.report


@pytest.mark.corpus
def test_boost_clock_agrees_with_the_driver_s_clock(corpus: Path) -> None:
    """The driver's top clock is the boost clock; board partners may raise a GeForce's, here by up to 5 %."""
    for device in recorded_devices(corpus):
        if device.gpu.id in BOARDS_OF_ONE_NAME:
            continue
        ratio = device.attributes["clock_rate"] * 1e3 / device.gpu.boost_clock.value
        assert 0.999 <= ratio <= (1.05 if "GeForce" in device.gpu.name else 1.001), device.report


@pytest.mark.corpus
def test_the_generation_of_pcie_is_the_driver_s(corpus: Path) -> None:
    """The driver numbers the generations of the GPU's own PCIe from 0; a host of an older one does not count.

    A GH200's is its CPU's link, of one lane.
    """
    checked = 0
    for device in recorded_devices(corpus):
        generation = device.attributes.get("gpu_pci_ext_gpu_gen")
        if generation is not None and "pcie" in device.gpu.links:
            assert device.gpu.links["pcie"].generation == generation + 1, device.report
            checked += 1
    assert checked >= 25


@pytest.mark.corpus
def test_nvlink_carries_what_reports_of_several_gpus_say(corpus: Path) -> None:
    """Over the pairs of GPUs that are joined, the report's bandwidth is that of one GPU, both ways.

    Within 5 %, since it counts the line and not the datasheet's round figure: 629 GB/s for 600, 1752 for 1800.
    """
    seen = set()
    for device in recorded_devices(corpus):
        pairs, both = (device.attributes.get(f"nvlink__{name}") for name in ("count_logical", "bandwidth"))
        if pairs and both:
            assert device.gpu.links["nvlink"].bytes_per_s_total == pytest.approx(both / pairs, rel=0.05), device.report
            seen.add(device.gpu.id)
    assert seen >= {"b200", "h800", "a100-pcie-40gb"}


@pytest.mark.corpus
def test_vector_peaks_agree_with_the_reports_rates(corpus: Path) -> None:
    """A report's FMA rate per SM and clock, at the boost clock, is the file's peak.

    Within 5 %, since the largest rounding is the H800's fp64 (1 TFLOP/s for 1.045).
    """
    for device in recorded_devices(corpus):
        cycles_per_s = device.gpu.sm_count.value * device.gpu.boost_clock.value
        for name, (key, operations) in FLOP_PER_INSTRUCTION.items():
            rate = device.rates.get(f"sm__sass_thread_inst_executed_op_{name}_pred_on")
            if rate is not None:
                peak = device.gpu.peaks[key].value
                assert peak == pytest.approx(rate * operations * cycles_per_s, rel=0.05), (device.report, key)


@pytest.mark.corpus
def test_tensor_peaks_agree_with_the_reports_dense_rates(corpus: Path) -> None:
    """A report's dense tensor rate times SMs and the clock that the peak is stated for is the peak."""
    checked = 0
    for device in recorded_devices(corpus):
        for key, names in DENSE_TENSOR_COUNTERS.items():
            found = [rate for name in names if (rate := device.rates.get(f"sm__ops_path_tensor_{name}"))]
            peak = device.gpu.peak(key)
            if found and peak is not None:
                expected = device.gpu.sm_count.value * found[0] * device.gpu.clock_of(key).value
                assert peak.value == pytest.approx(expected, rel=0.01), (device.report, key)
                checked += 1
    assert checked >= 35
