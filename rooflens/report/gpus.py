"""The GPUs with datasheet numbers, as a table and one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from rooflens.model.gpu import find_gpu, load_gpus
from rooflens.model.units import si, significant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.gpu import Gpu

_COLUMNS = ("fp64", "fp32", "tensor_bf16", "tensor_fp8")


def matching_gpus(name: str) -> tuple[Gpu, ...]:
    """Find GPUs by short name, by display name, or by any part of it."""
    wanted = name.strip().casefold()
    exact = next((gpu for gpu in load_gpus() if gpu.id == wanted), None) or find_gpu(name)
    if exact is not None:
        return (exact,)
    return tuple(gpu for gpu in load_gpus() if any(wanted in known.casefold() for known in gpu.names))


def gpu_table(gpus: Sequence[Gpu]) -> Table:
    """Make a table of GPUs: datasheet bandwidth and dense peaks at boost clock."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("gpu", "short name", "CC", "SMs", "boost", "DRAM", *(name.replace("_", " ") for name in _COLUMNS)):
        table.add_column(heading, justify="left" if heading in {"gpu", "short name"} else "right", no_wrap=True)
    for gpu in gpus:
        peaks = [si(gpu.peaks[name].value, "op/s") if name in gpu.peaks else "-" for name in _COLUMNS]
        table.add_row(
            gpu.name.removeprefix("NVIDIA "),
            gpu.id,
            gpu.compute_capability,
            f"{gpu.sm_count.value:.0f}",
            si(gpu.boost_clock.value, "Hz"),
            si(gpu.dram_bandwidth.value, "B/s"),
            *peaks,
        )
    return table


def gpu_details(gpu: Gpu) -> Table:
    """Make a table of one GPU's numbers, each with its source."""
    table = Table(box=None, pad_edge=False, header_style="bold", title=gpu.name, title_justify="left")
    for heading in ("number", "value", "source"):
        table.add_column(heading)
    for label, quantity in _quantities(gpu).items():
        table.add_row(label, quantity[0], quantity[1])
    return table


def _quantities(gpu: Gpu) -> dict[str, tuple[str, str]]:
    rows = {"SMs": (significant(gpu.sm_count.value), gpu.sm_count.source)}
    named = {
        "boost clock": gpu.boost_clock,
        "base clock": gpu.base_clock,
        "DRAM": gpu.dram_bandwidth,
        "L2": gpu.l2_size,
    }
    named |= {key.replace("_", " "): quantity for key, quantity in gpu.peaks.items()}
    units = {"byte": "B", "byte/s": "B/s"}
    for label, quantity in named.items():
        if quantity is not None:
            rows[label] = (si(quantity.value, units.get(quantity.unit, quantity.unit)), quantity.source)
    return rows
