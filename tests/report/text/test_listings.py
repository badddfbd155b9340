from __future__ import annotations

import pytest
from msgspec import Struct

from rooflens.model.roofline.datasheets import matching_datasheets
from rooflens.report.text.listings import gpu_details, gpu_table, metric_names, metrics_table, passes_text
from rooflens.report.writers.terminal import to_terminal


class Metric(Struct, frozen=True):
    """A metric as in a collection."""

    name: str
    kind: str = "hardware"
    meaning: str = "bytes moved"
    detail: str = "quick"


METRICS = (
    Metric("dram__bytes.sum"),
    Metric("sass__inst_executed_per_opcode_with_modifier_all", "sass", "warp instructions [by opcode]"),
    Metric("group:smsp__pcsamp_warp_stall_reasons", "sampling", "what warps wait for", "standard"),
)


def printed(width: int, passes: int | None) -> str:
    """Print the table as on a terminal of this width."""
    return to_terminal((metrics_table("gh100", "standard", METRICS, passes),), width)


def test_the_table_shows_every_metric_and_the_cost() -> None:
    """The title gives the cost of the collection, and each metric has a line with its unchanged meaning."""
    lines = [line.rstrip() for line in printed(140, 3).splitlines()]
    assert lines[0] == "gh100, standard: 3 metrics, 3 hardware passes, one SASS collection, warp sampling"
    assert [line.split()[0] for line in lines[2:]] == [metric.name for metric in METRICS]
    assert lines[3].endswith("warp instructions [by opcode]")


def test_names_are_whole_on_a_narrow_terminal() -> None:
    """No name is cut if it alone fits the terminal."""
    assert all(metric.name in printed(100, 3) for metric in METRICS)


def test_passes_read_well() -> None:
    """A single pass is singular, and an unknown count is called unknown."""
    assert passes_text(METRICS[:1], 1) == "1 hardware pass"
    assert passes_text(METRICS[:2], None) == "passes not counted, one SASS collection"


def test_names_are_printed_bare() -> None:
    """`--names` gives one name per line, suitable for `ncu --metrics`."""
    assert metric_names(METRICS[:2]) == "dram__bytes.sum\nsass__inst_executed_per_opcode_with_modifier_all"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("h100-pcie", ("NVLink 4", "300 GB/s each way, 600 GB/s both ways, joins 2")),
        ("h100-pcie", ("PCIe 5", "64.0 GB/s each way, 128 GB/s both ways")),
        ("rtx-4090", ("NVLink", "none")),
    ],
)
def test_a_gpu_lists_its_links(name: str, lines: tuple[str, str]) -> None:
    """Each link has both figures; its absence is stated, and an unknown link has no line."""
    assert lines in gpu_cells(name)


def test_an_unknown_link_is_left_out() -> None:
    """The link between a GB200 and PCIe boards is not in its documents."""
    assert not [cell for cell, _ in gpu_cells("gb200") if cell.startswith("PCIe")]


@pytest.mark.parametrize(
    ("name", "link"),
    [("h100-sxm", "NVLink 4 450 GB/s"), ("rtx-4090", "PCIe 4 32.0 GB/s"), ("jetson-thor", "-")],
)
def test_the_list_of_gpus_has_the_fastest_link(name: str, link: str) -> None:
    """NVLink before PCIe, in one direction; a GPU with neither has none."""
    table = gpu_table(matching_datasheets(name))
    place = [column.heading for column in table.columns].index("link")
    assert [row[place] for row in table.rows] == [link]


def gpu_cells(name: str) -> list[tuple[str, str]]:
    """Return the first two columns of a GPU's table."""
    (gpu,) = matching_datasheets(name)
    return [(str(first), str(second)) for first, second, *_ in gpu_details(gpu).rows]


def test_a_peak_has_the_unit_of_its_type() -> None:
    """Floating-point types in FLOP/s as everywhere else; integers, and instructions, in OP/s."""
    values = dict(gpu_cells("h100-sxm"))
    assert values["fp32"] == "66.9 TFLOP/s"
    assert values["tensor int8"] == "1.98 POP/s"
    assert values["issued instructions"].endswith(" TOP/s")
    (row,) = gpu_table(matching_datasheets("h100-sxm")).rows
    assert "989 TFLOP/s" in row


def test_a_gpu_has_the_ridge_of_each_peak_and_the_bandwidth_of_its_l2() -> None:
    """989 TFLOP/s of bf16 over 3.35 TB/s are 295 FLOP/B; a T4, without L2 bandwidth in its file, has none."""
    (gpu,) = matching_datasheets("h100-sxm")
    ridges = {str(row[0]): str(row[2]) for row in gpu_details(gpu).rows}
    assert (ridges["tensor bf16"], ridges["fp32"], ridges["DRAM"]) == ("295", "20.0", "")
    assert ("L2 to the SMs" in ridges, "L2 to the SMs" in dict(gpu_cells("t4"))) == (
        gpu.l2_bandwidth is not None,
        False,
    )
    a100 = dict(gpu_cells("a100-sxm4-40gb"))
    assert a100["L2 to the SMs"].endswith("TB/s")


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("a100-pcie-80", ["a100-pcie-80gb"]),
        ("Rubin", ["rubin"]),
        ("h200 nvl", ["h200-nvl"]),
        ("5090", ["rtx-5090-laptop", "rtx-5090"]),
    ],
)
def test_a_gpu_is_found_by_any_part_of_its_names(part: str, found: list[str]) -> None:
    """A part of the short name or display name finds every GPU that contains it."""
    assert [gpu.id for gpu in matching_datasheets(part)] == found
