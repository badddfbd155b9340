"""Make the tables of docs/reference/gpus.md from the datasheets; the text around them is handwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generators.chips import rates
from generators.texts import table
from rooflens.format import MISSING
from rooflens.model.roofline.datasheets import LINK_KINDS, Datasheet, load_datasheets

if TYPE_CHECKING:
    from rooflens.model.roofline.datasheets import LinkKind

_HEAD = (
    *("GPU", "`--gpu`", "CC", "SMs", "boost GHz", "DRAM GB/s"),
    *("fp64", "fp32", "tensor fp16", "tensor fp8", "NVLink GB/s", "PCIe GB/s"),
)
_PEAKS = ("fp64", "fp32", "tensor_fp16", "tensor_fp8")


def tables() -> dict[str, list[str]]:
    """Return the table of all GPUs, and that of rates by generation."""
    return {"gpus": table(_HEAD, map(_row, load_datasheets())), "rates": rates()}


def _row(gpu: Datasheet) -> list[str]:
    peaks = (gpu.peaks.get(key) for key in _PEAKS)
    return [
        ", ".join(gpu.names),
        f"`{gpu.id}`",
        gpu.compute_capability,
        f"{gpu.sm_count.value:.0f}",
        f"{gpu.boost_clock.value / 1e9:.3f}",
        f"{gpu.dram_bandwidth.value / 1e9:.0f}",
        *(MISSING if peak is None else f"{peak.value / 1e12:.4g}" for peak in peaks),
        *(_link(gpu, kind) for kind in LINK_KINDS),
    ]


def _link(gpu: Datasheet, kind: LinkKind) -> str:
    """Return the bandwidth of a link in one direction, in words."""
    if kind in gpu.absent_links:
        return "none"
    return f"{gpu.links[kind].bytes_per_s_per_direction / 1e9:.4g}" if kind in gpu.links else MISSING
