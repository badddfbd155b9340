"""The rate of the link to the host, and what L2 filled over it."""

from __future__ import annotations

import pytest
from support.loops import for_all

from rooflens.ingest.reports.resolve import resolve


def value(stored: dict[str, float], name: str) -> float | None:
    """Resolve one counter; None when it is absent."""
    return resolve(stored).values.get(name)


PCIE = "device__attribute_gpu_pci_ext_"


@for_all(
    "attributes, bytes_per_s",
    [
        ({"gpu_link_rate": 8000.0, "gpu_link_width": 16.0}, 8e9 * 16 / 8 * 128 / 130),
        ({"gpu_link_rate": 5000.0, "gpu_link_width": 16.0}, 5e9 * 16 / 8 * 0.8),
        ({"gpu_link_rate": 16000.0, "gpu_link_width": 16.0, "downstream_link_width": 8.0}, 16e9 * 8 / 8 * 128 / 130),
        ({"gpu_link_rate": 32000.0, "gpu_link_width": 16.0, "downstream_link_rate": 8000.0}, 8e9 * 2 * 128 / 130),
        ({"gpu_link_rate": 8000.0, "gpu_link_width": 16.0, "downstream_link_rate": 0.0}, 8e9 * 16 / 8 * 128 / 130),
        ({"gpu_link_rate": 8000.0}, None),
        ({"gpu_link_rate": 0.0, "gpu_link_width": 16.0}, None),
    ],
)
def test_the_link_to_the_host_is_as_fast_as_its_slower_end(
    attributes: dict[str, float], bytes_per_s: float | None
) -> None:
    """The rate is rate x lanes / 8 less the encoding: 8 of 10 bits up to PCIe 2, 128 of 130 above; 0 is unknown."""
    stored = {f"{PCIE}{name}": value for name, value in attributes.items()}
    expected = None if bytes_per_s is None else pytest.approx(bytes_per_s)
    assert value(stored, "host_link_peak_bytes_per_s") == expected


def test_chips_joined_to_their_host_have_another_link_or_none() -> None:
    """NVLink-C2C carries 450 GB/s per direction, whatever PCIe does; with shared memory there is no link."""
    pcie = {f"{PCIE}gpu_link_rate": 32000.0, f"{PCIE}gpu_link_width": 1.0}
    assert value({**pcie, "c2clink__present": 1.0}, "host_link_peak_bytes_per_s") == 450e9
    assert value({**pcie, "device__attribute_integrated": 1.0}, "host_link_peak_bytes_per_s") is None


def test_fills_from_the_host_are_counted_or_worked_out() -> None:
    """0.25 % of 4,000,000 slice cycles are 10,000 sectors of 32 bytes; a count takes precedence."""
    of_cycles = {
        "lts__d_sectors_fill_sysmem.avg.pct_of_peak_sustained_elapsed": 0.25,
        "lts__cycles_elapsed.sum": 4e6,
        "lts__t_sectors_srcunit_tex_aperture_sysmem_op_read_lookup_miss.sum": 7.0,
    }
    assert value(of_cycles, "host_read_bytes") == pytest.approx(320_000)
    assert value({**of_cycles, "lts__d_sectors_fill_sysmem.sum": 10.0}, "host_read_bytes") == 320
    del of_cycles["lts__cycles_elapsed.sum"]
    assert value(of_cycles, "host_read_bytes") == 224
