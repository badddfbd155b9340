"""The section on another GPU, as words and rows: no browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support import samples
from support.samples import Sample

from rooflens.model.predict.other_gpu import change, gpu_roofs, standing, sum_up
from rooflens.model.roofline.datasheets import load_gpus
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_page
from rooflens.report.page.other_gpu import MAX_HOMES, MAX_ROWS, choices, story, used_precisions, what_if
from rooflens.report.page.other_gpu_sentences import factor_words
from rooflens.report.plane.plane import plane
from rooflens.report.roofline.datasheet import MAX_PIPES, datasheet_roofs

if TYPE_CHECKING:
    from rooflens.model.records import Analysis
    from rooflens.report.content import Page

GPUS = {gpu.id: gpu for gpu in load_gpus()}
NBSP = "\u00a0"
A100_80GB = replace(samples.A100, name="NVIDIA A100-SXM4-80GB")
H100 = replace(samples.A100, name="NVIDIA H100 80GB HBM3")
GEMM = Sample("gemm", "compute", 10_000, "tensor_bf16", {"dram": 1e10}, {"tensor_bf16": 2e12}, chip=A100_80GB)
COPY = Sample("copy", "memory", 6_000, "dram", {"dram": 1e10}, {}, chip=A100_80GB)
GATHER = Sample("gather", "latency", 4_000, None, {"dram": 1e9}, {"fp32": 1e9}, chip=A100_80GB)


def page_of(*what: Sample | Analysis) -> Page:
    """Make a page of samples and records."""
    analyses = [samples.analysis(one, i) if isinstance(one, Sample) else one for i, one in enumerate(what)]
    return build_page([samples.run()], analyses, "attention", default_thresholds())


def section(page: Page) -> str:
    """Write the section without its data block."""
    return re.sub(r"<script.*?</script>", "", str(what_if(page)), flags=re.DOTALL)


def data(page: Page) -> dict[str, Any]:
    """Read the data block of the section."""
    found = re.search(r'id="what-if-data">(.*?)</script>', str(what_if(page)), re.DOTALL)
    assert found is not None
    blocks: dict[str, Any] = json.loads(found[1])
    return blocks


def words(gpu: str, *what: Sample | Analysis) -> list[str]:
    """Read the answer, the body and the aside for one GPU, with plain spaces."""
    return [text.replace(NBSP, " ") for text in data(page_of(*what))[gpu]["words"]]


def plain(html: str) -> str:
    """Drop tags and runs of space."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).strip()


def test_the_answer_names_the_change_and_the_bounds() -> None:
    """One GEMM of three kernels changes walls from an A100 to an H100: the seeds' story in numbers."""
    head, body, aside = words("h100-sxm", GEMM, COPY, GATHER)
    assert head == (
        "1 kernel with 50 % of GPU time changes side on H100 80GB HBM3, from compute to memory. "
        "The lower bound of the 2 kernels at HBM or a FLOP pipe falls from 11.3 ms to 5.97 ms: 1.9x shorter."
    )
    assert body == "The HBM ridge of tensor bf16 moves from 153 to 295 FLOP/B: 1.6x the bandwidth, 3.2x the peak."
    assert aside == (
        "1 kernel with 20 % of GPU time stands at another wall (latency, overhead, caches, other pipes), "
        "or at an unknown one: the lower bound says nothing of its time."
    )


def test_a_slower_gpu_makes_the_bound_longer() -> None:
    """A factor below one is told the other way round."""
    head, _, _ = words("t4", COPY)
    assert head == (
        "No kernel changes side on Tesla T4. "
        "The lower bound of the only kernel at HBM or a FLOP pipe rises from 4.90 ms to 31.2 ms: 6.4x longer."
    )


def test_both_ways_are_counted() -> None:
    """Where kernels go to both sides, each side has its count."""
    to_compute = Sample("stencil", "memory", 5_000, "dram", {"dram": 1e9}, {"fp32": 1.5e10}, chip=H100)
    here_a100 = replace(GEMM, name="other")
    head, _, _ = words("a100-sxm4-40gb", to_compute, GEMM, here_a100)
    assert head.startswith("3 kernels with 100 % of GPU time change side on A100-SXM4-40GB: 2 to memory, 1 to compute.")


def test_its_own_gpu_has_datasheet_roofs_and_no_change() -> None:
    """Choosing the GPU that was profiled shows its datasheet, with no table of changes."""
    head, _, _ = words("a100-sxm4-80gb", GEMM)
    assert head.startswith("This is the GPU that was profiled. Its datasheet roofs, HBM 2.04 TB/s and tensor bf16 312")
    assert data(page_of(GEMM))["a100-sxm4-80gb"]["cells"] == []


def test_a_missing_type_is_said() -> None:
    """An fp8 kernel is not predicted for a GPU without an fp8 peak, and the page says why."""
    fp8 = replace(GEMM, flop={"tensor_fp8": 2e12}, chip=replace(H100, pipe_peaks={"tensor_fp8": 1.9e15}))
    head, _, aside = words("a100-sxm4-80gb", fp8)
    assert head == "Nothing can be predicted for A100-SXM4-80GB."
    assert aside == "1 kernel is not predicted: no tensor fp8 peak is published for A100-SXM4-80GB."
    view = data(page_of(fp8))["a100-sxm4-80gb"]
    assert view["cells"] == [""]
    assert view["row"][2:] == [[["\u2013", ""]], ["\u2013", ""]]


def test_cells_are_the_models_numbers() -> None:
    """Side, lower bound and change of each kernel are those of the model; latency has no change."""
    cells = [cell.replace(NBSP, " ") for cell in data(page_of(GEMM, COPY, GATHER))["h100-sxm"]["cells"]]
    assert cells == ["m|2.99 ms|2.1x shorter", "m|2.99 ms|1.6x shorter", "m|299 \u00b5s|\u2013"]


@pytest.mark.parametrize(
    ("factor", "text"),
    [(None, "\u2013"), (1.0, "the same"), (2.147, "2.1x shorter"), (0.5, "2.0x longer")],
)
def test_factors_have_a_direction(factor: float | None, text: str) -> None:
    """A bound that grows is longer, never `0.5x shorter`."""
    assert factor_words(factor) == text


def test_the_story_follows_three_generations() -> None:
    """In bf16 the ridge doubles from A100 to H100 and stays on B200, by their datasheets."""
    told = story(("tensor_bf16", "fp32"))
    assert told == ("tensor bf16", [("A100-SXM4-80GB", "153"), ("H100 80GB HBM3", "295"), ("B200", "292")])


def test_the_story_leaves_out_gpus_without_the_type() -> None:
    """An fp8 story starts with the H100; one GPU alone, or no precision, is no story."""
    told = story(("tensor_fp8",))
    assert told is not None
    assert [name for name, _ in told[1]] == ["H100 80GB HBM3", "B200"]
    assert (story(("tensor_fp4",)), story(())) == (None, None)


def test_ridges_read_without_scripts() -> None:
    """The page's own GPU and three generations stand in a plain table, with the kernels that change side."""
    text = plain(section(page_of(GEMM, COPY)))
    assert "A100-SXM4-80GB profiled here 2.04 TB/s 153 312 TFLOP/s" in text
    assert "H100 80GB HBM3 3.35 TB/s 295 989 TFLOP/s 1 62 % of GPU time" in text
    assert "B200 7.70 TB/s 292 2.25 PFLOP/s 1 62 % of GPU time" in text
    assert text.count("A100-SXM4-80GB 2.04 TB/s") == 0


def test_every_gpu_can_be_chosen_once() -> None:
    """The select holds each GPU, those of the page first, then by architecture, the newest first."""
    grouped = choices({"h100-sxm", "t4"})
    headings = [heading for heading, _ in grouped]
    assert headings[:3] == ["Profiled here", "Blackwell", "Hopper"]
    assert headings[-1] == "Pascal"
    assert grouped[0][1] == [
        ("h100-sxm", "H100 80GB HBM3: this GPU's datasheet"),
        ("t4", "Tesla T4: this GPU's datasheet"),
    ]
    ids = [key for _, options in grouped for key, _ in options]
    assert sorted(ids) == sorted(GPUS)


def test_a_mixed_page_compares_each_kernel_with_its_own_gpu() -> None:
    """Kernels of two GPUs are each compared with their own one, and both stand in the table."""
    page = page_of(GEMM, replace(GEMM, name="there", chip=H100))
    view = data(page)["h100-sxm"]
    assert view["words"][0].startswith("1 kernel with 50")
    assert view["words"][1] == ""
    assert [cell.split("|")[2] for cell in view["cells"]] == ["2.1x shorter", "the same"]
    assert section(page).count("profiled here") == 2


def test_a_page_of_many_gpus_names_a_few() -> None:
    """The table keeps the GPUs with most time, and counts the others."""
    names = [gpu.name for gpu in load_gpus() if "tensor_bf16" in gpu.peaks][: MAX_HOMES + 2]
    page = page_of(*(replace(GEMM, chip=replace(samples.A100, name=name)) for name in names))
    html = section(page)
    assert html.count("profiled here") == MAX_HOMES
    assert "2 more GPUs of this page, with less time, are left out" in html


def test_a_gpu_without_a_datasheet_is_marked() -> None:
    """Its kernels stand under the roofs of their report, and the page says what that does to the factors."""
    html = section(page_of(replace(GEMM, chip=replace(samples.A100, name="NVIDIA <b>Test</b>"))))
    assert "roofs of its report" in html
    assert "No datasheet of NVIDIA &lt;b&gt;Test&lt;/b&gt; is known" in html
    assert "Profiled here" not in html


def test_kernels_without_a_place_are_counted() -> None:
    """What lacks FLOPs or bytes is left out and counted; a page of such kernels says so and offers no choice."""
    without = replace(GEMM, flop=None)
    assert "1 kernel left out: its FLOPs or HBM bytes" in plain(section(page_of(COPY, without)))
    html = str(what_if(page_of(without)))
    assert "none can be placed on another GPU" in html
    assert "<select" not in html
    assert str(what_if(page_of(samples.failed()))) == ""


def test_launches_are_called_launches() -> None:
    """Where a kernel ran several times, rows are counted as launches."""
    assert "2 launches with 100 % of GPU time change side" in words("h100-sxm", GEMM, GEMM)[0]


def test_hostile_names_are_text() -> None:
    """Names made of markup stay text in the table, and stand in no data block."""
    page = build_page([samples.run()], samples.hostile(), "attention", default_thresholds())
    html = str(what_if(page))
    for name in samples.HOSTILE_NAMES:
        assert name not in html
    assert "&lt;script&gt;alert(1)" in html


def test_precisions_in_use_have_a_ridge_each() -> None:
    """Types that do a hundredth of any kernel's work are shown, the one with most FLOPs first."""
    mix = replace(GEMM, flop={"tensor_bf16": 2e12, "fp32": 3e10, "fp64": 1e9})
    found = [here for one in (mix, GATHER) if (here := standing(samples.analysis(one)))]
    assert used_precisions(found) == ("tensor_bf16", "fp32")


def test_what_the_page_holds_stays_small() -> None:
    """With 400 launches the words and cells of 60 GPUs take less than 100 kB, and the sentences count all."""
    page = build_page([samples.run()], samples.many(400), "attention", default_thresholds())
    blocks = data(page)
    size = len(json.dumps(blocks, ensure_ascii=False, separators=(",", ":")).encode())
    assert size / len(blocks) * 60 < 100_000
    assert all(len(view["cells"]) in {0, MAX_ROWS} for view in blocks.values())
    roofs = gpu_roofs(GPUS["b200"])
    found = [here for launch in page.timed if (here := standing(launch.analysis))]
    effect = sum_up(change(here, roofs) for here in found)
    assert effect.changed.count > MAX_ROWS
    assert f"{effect.changed.count:,} kernels" in blocks["b200"]["words"][0]


def test_datasheet_roofs_are_the_numbers_of_the_gpu() -> None:
    """A GPU has its bandwidth and the peaks that the plane's launches use, the highest first."""
    page = page_of(GEMM, GATHER)
    (h100,) = [one for one in datasheet_roofs(plane(page.gpus[0], page.timed)) if one.gpu == "h100-sxm"]
    assert (h100.name, h100.bytes_per_s) == ("H100 80GB HBM3", 3.35e12)
    assert h100.flop_per_s == ((989.4e12, "tensor bf16"), (66.9e12, "FP32"))


def test_datasheet_roofs_of_one_height_are_one_line() -> None:
    """Types with the same peak on a GPU share a line with two names; a type it lacks has none."""
    both = replace(GEMM, flop={"tensor_bf16": 2e12, "fp32": 1e12, "fp64": 1e12})
    page = page_of(both)
    (v100,) = datasheet_roofs(plane(page.gpus[0], page.timed), [GPUS["v100-sxm2"]])
    assert [name for _, name in v100.flop_per_s] == ["FP32", "FP64"]
    test_gpu = replace(GPUS["v100-sxm2"], peaks=dict.fromkeys(("fp32", "fp64"), GPUS["v100-sxm2"].peaks["fp64"]))
    (merged,) = datasheet_roofs(plane(page.gpus[0], page.timed), [test_gpu])
    assert merged.flop_per_s == ((7.8e12, "FP32, FP64"),)


def test_datasheet_roofs_stay_small() -> None:
    """The roofs of 60 GPUs with three pipes each take less than 10 kB, and the highest pipes are kept."""
    many = {f"tensor_{dtype}": 1e12 for dtype in ("bf16", "fp16", "tf32", "int8")} | {"fp32": 1e12}
    chip = replace(H100, pipe_peaks=dict.fromkeys(many, 1e15) | {"fp32": 6e13})
    page = page_of(replace(GEMM, flop=many, chip=chip))
    found = [one.row for one in datasheet_roofs(plane(page.gpus[0], page.timed))]
    assert all(len(row["flop"]) <= MAX_PIPES for row in found)
    assert len(json.dumps(found, separators=(",", ":"))) / len(found) * 60 < 10_000
    empty = page_of(COPY)
    assert datasheet_roofs(plane(empty.gpus[0], empty.timed)) == []
