"""Check the catalogue: one name for each quantity, made from its place in JSON, and words for all of them."""

from __future__ import annotations

from collections import Counter

from rooflens.analyzing import analyze_paths
from rooflens.model.catalogue import KERNEL, PLACE, TOTALS, flat_name, kernel_quantities, quantities
from rooflens.model.records import Hotspot, Place
from rooflens.model.summary import summarize
from rooflens.report.overview.kernels import shown

NAMES = {
    ("bytes", "dram"): "dram_bytes",
    ("intensity", "l2"): "l2_intensity",
    ("levels", "smem", "share"): "smem_share",
    ("levels", "dram", "bytes_per_s"): "dram_bytes_per_s",
    ("flop", "fp32"): "fp32_flop",
    ("verdict", "bound"): "verdict_bound",
    ("nvidia", "bottleneck"): "nvidia_bottleneck",
    ("duration_ns",): "duration_ns",
}


def test_flat_names_follow_one_rule_and_are_unique() -> None:
    """The item comes first, then the quantity; other groups precede; no two quantities have the same name."""
    assert {path: flat_name(path) for path in NAMES} == NAMES
    names = Counter([*(one.name for one in quantities()), *(key.name for key in TOTALS)])
    assert [name for name, count in names.items() if count > 1] == []
    assert [one.name for one in quantities() if one.name != flat_name(one.path)] == []


def test_every_key_has_a_meaning() -> None:
    """Reference, schema and hints explain each key, and numbers in flat tables have a unit."""
    keys = [*KERNEL.keys, *TOTALS, *(one.key for one in quantities())]
    without = [key.name for key in keys if not key.meaning and key.name not in {"dram", "l2", "l1", "smem"}]
    assert without == []
    assert [one.name for one in quantities() if one.kind == "real" and not one.key.unit] == []


def test_a_quantity_is_the_same_in_json_and_in_flat_tables(fixtures: object) -> None:
    """A cell's value is at its path in the launch's JSON, and can be written for people."""
    offenders = []
    for analysis in analyze_paths([f"{fixtures}/synthetic", f"{fixtures}/published"]).reports[0].analyses:
        written = KERNEL.json(analysis)
        (kernel,) = summarize([analysis])
        for one in quantities():
            value = written
            for key in one.path:
                value = value.get(key) if value else None
            cell = one.key.shape.json(one.value(analysis))
            if cell != value or kernel_quantities()[one.name].value(kernel) != one.value(analysis):
                offenders.append((one.name, cell, value))
            assert shown(one, one.value(analysis))
    assert offenders == []


def test_a_place_in_a_library_is_that_of_the_program_with_the_header_behind() -> None:
    """File and line are the program's own, as texts name them; those of the header have keys of their own."""
    header = Hotspot("line", "/usr/local/cuda/include/mma.h", 9)
    for place, expected in (
        (Place(header, 0.5, ("gemm.cu", 70)), ("gemm.cu", 70, header.file, 9)),
        (Place(Hotspot("line", "gemm.cu", 40), 0.5), ("gemm.cu", 40, None, None)),
    ):
        assert PLACE.write is not None
        written = PLACE.write(place)
        assert tuple(written[key] for key in ("file", "line", "library_file", "library_line")) == expected
