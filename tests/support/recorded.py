"""A recording as described in the manifest, and the options to record only a few."""

from __future__ import annotations

from stored import Entry

ENTRY = Entry(
    path="h200/saxpy.ncu-rep",
    gpu="NVIDIA H200",
    workload="saxpy",
    case="n28",
    parameters={"n": 268_435_456},
    dtype="fp32",
    detail="standard",
    command="rooflens collect saxpy --case n28 --detail standard --clock-control none",
    clock_control="none",
    driver="580.65.06",
    ncu="2025.3.1.0",
    date="2025-11-21",
    kernels=1,
    ncu_passes=4,
    wall_ns=1_000_000,
    iterations=20,
    launches=20,
)


def only(*names: str) -> tuple[str, ...]:
    """Return the options that record only these."""
    return tuple(part for name in names for part in ("--only", name))
