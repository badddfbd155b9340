"""The section on another GPU, as words and rows: no browser."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.samples import Sample

from rooflens.model.predict.other_gpu import change, gpu_roofs, standing, sum_up
from rooflens.model.records import Analysis
from rooflens.model.roofline.datasheets import load_datasheets
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.page import other_gpu
from rooflens.report.page.other_gpu import MAX_HOMES, MAX_ROWS, story, used_precisions, what_if
from rooflens.report.plane.plane import plane
from rooflens.report.roofline.datasheet import MAX_PIPES, datasheet_roofs, gpu_choices

GPUS = {gpu.id: gpu for gpu in load_datasheets()}
NBSP = "\u00a0"
A100_80GB = replace(samples.A100, name="NVIDIA A100-SXM4-80GB")
H100 = replace(samples.A100, name="NVIDIA H100 80GB HBM3")
GEMM = Sample("gemm", "compute", 10_000, "tensor_bf16", {"dram": 1e10}, {"tensor_bf16": 2e12}, chip=A100_80GB)
COPY = Sample("copy", "memory", 6_000, "dram", {"dram": 1e10}, {}, chip=A100_80GB)
GATHER = Sample("gather", "latency", 4_000, None, {"dram": 1e9}, {"fp32": 1e9}, chip=A100_80GB)


def page_of(*what: Sample | Analysis) -> Content:
    """Make a page of samples and records."""
    analyses = [samples.analysis(one, i) if isinstance(one, Sample) else one for i, one in enumerate(what)]
    return build_content([samples.report(analyses)], "attention", default_thresholds())


def section(page: Content) -> str:
    """Write the section without its data block."""
    return re.sub(r"<script.*?</script>", "", str(what_if(page)), flags=re.DOTALL)


def data(page: Content) -> dict[str, Any]:
    """Read the data block of the section."""
    found = re.search(r'id="what-if-data">(.*?)</script>', str(what_if(page)), re.DOTALL)
    assert found is not None
    blocks: dict[str, Any] = json.loads(found[1])
    return blocks


def plain(html: str) -> str:
    """Drop tags and runs of space."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).strip()


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
    """The page's own GPU and three generations stand in a plain table, with the kernels that switch."""
    text = plain(section(page_of(GEMM, COPY)))
    assert "A100-SXM4-80GB profiled here 2.04 TB/s 153 312 TFLOP/s" in text
    assert "H100 80GB HBM3 3.35 TB/s 295 989 TFLOP/s 1 62 % of GPU time" in text
    assert "B200 7.70 TB/s 292 2.25 PFLOP/s 1 62 % of GPU time" in text
    assert text.count("A100-SXM4-80GB 2.04 TB/s") == 0


def test_every_gpu_can_be_chosen_once() -> None:
    """The select holds each GPU, those of the page first, then by architecture, the newest first."""
    grouped = gpu_choices({"h100-sxm", "t4"})
    headings = [heading for heading, _ in grouped]
    assert headings[:4] == ["Profiled here", "Rubin", "Blackwell", "Hopper"]
    assert headings[-1] == "Pascal"
    assert grouped[0][1] == [
        ("h100-sxm", "H100 80GB HBM3: this GPU's datasheet"),
        ("t4", "Tesla T4: this GPU's datasheet"),
    ]
    ids = [key for _, options in grouped for key, _ in options]
    assert sorted(ids) == sorted(GPUS)


def test_the_page_holds_the_models_numbers() -> None:
    """What the script writes sentences from is what the model sums up, with the roofs of each datasheet."""
    page = page_of(GEMM, COPY, GATHER)
    numbers = data(page)
    assert (numbers["main"], numbers["labels"]["tensor_bf16"]) == ("tensor_bf16", "tensor bf16")
    assert set(numbers["gpus"]) == set(GPUS)
    found = [here for launch in page.timed if (here := standing(launch.analysis))]
    for key in ("t4", "h100-sxm", "b200"):
        roofs = gpu_roofs(GPUS[key])
        effect = sum_up(change(here, roofs) for here in found)
        gpu = numbers["gpus"][key]
        assert gpu["bandwidth"] == roofs.bandwidth_bytes_per_s
        assert gpu["peaks"] == {name: roofs.peaks_per_s[name] for name in gpu["peaks"]}
        assert gpu["told"] == {
            "count": effect.told.count,
            "here_s": effect.lower_here_s,
            "there_s": effect.lower_there_s,
        }
        assert gpu["missing"] == dict(effect.missing)
    assert [kernel["bytes"] for kernel in numbers["kernels"]] == [here.load.moved_bytes for here in found]


def test_a_mixed_page_compares_each_kernel_with_its_own_gpu() -> None:
    """Kernels of two GPUs are each compared with their own one, and both stand in the table."""
    page = page_of(GEMM, replace(GEMM, name="there", chip=H100))
    numbers = data(page)
    assert numbers["here"] is None
    assert numbers["gpus"]["h100-sxm"]["to"] == {"memory": 1, "compute": 0}
    assert section(page).count("profiled here") == 2


def test_a_page_of_many_gpus_names_a_few() -> None:
    """The table keeps the GPUs with most time, and counts the others."""
    names = [gpu.name for gpu in load_datasheets() if "tensor_bf16" in gpu.peaks][: MAX_HOMES + 2]
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
    """What lacks FLOPs or bytes is left out and counted; a page of such kernels has no such section."""
    without = replace(GEMM, flop=None)
    assert "1 kernel left out: its FLOPs or DRAM bytes" in plain(section(page_of(COPY, without)))
    assert section(page_of(without)) == ""


def test_launches_of_a_kernel_are_one_row() -> None:
    """The table holds a kernel once, with the lower bounds of all its launches added up."""
    (once, twice) = (data(page_of(*[GEMM] * times))["kernels"] for times in (1, 2))
    assert [kernel["launches"] for kernel in twice] == [2]
    assert twice[0]["lower_s"] == once[0]["lower_s"]
    assert plain(section(page_of(GEMM, GEMM))).count("gemm x2") == 1


def test_many_ridges_are_folded() -> None:
    """The table of ridges stands open for one GPU, and is folded where the page holds several."""
    assert "Ridges of" not in section(page_of(GEMM))
    several = [replace(GEMM, chip=replace(samples.A100, name=name)) for name in ("NVIDIA A", "NVIDIA B", "NVIDIA C")]
    assert "<summary>Ridges of 6 GPUs</summary>" in section(page_of(*several))


def test_hostile_names_are_text() -> None:
    """Names made of markup stay text in the table, and stand in no data block."""
    page = build_content([samples.report(samples.hostile())], "attention", default_thresholds())
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
    """With 400 launches the numbers of 60 GPUs take less than 40 kB, and count all launches."""
    page = build_content([samples.report(samples.many(400))], "attention", default_thresholds())
    numbers = data(page)
    size = len(json.dumps(numbers, ensure_ascii=False, separators=(",", ":")).encode())
    assert size / len(numbers["gpus"]) * 60 < 40_000
    assert len(numbers["kernels"]) == MAX_ROWS
    assert sum(numbers["gpus"]["b200"]["to"].values()) > MAX_ROWS


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
    test_gpu = dataclasses.replace(
        GPUS["v100-sxm2"], peaks=dict.fromkeys(("fp32", "fp64"), GPUS["v100-sxm2"].peaks["fp64"])
    )
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


def test_only_the_longest_of_very_many_kernels_are_put_on_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels beyond a number are on no GPU and in no count, and the page says how many they are."""
    monkeypatch.setattr(other_gpu, "MAX_COUNTED", 1)
    page = page_of(COPY, GEMM)
    assert data(page)["gpus"]["h100-sxm"]["told"]["count"] == 1
    assert data(page)["kernels"][0]["ops"] == {"tensor_bf16": 2e12}
    assert "This counts the kernels with the most GPU time; 1 kernel with less is not." in plain(section(page)).replace(
        NBSP, " "
    )
    monkeypatch.undo()
    assert "Counted are" not in section(page)
