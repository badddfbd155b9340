"""What timelines say of their communication: collectives by size and group, beside the link, exposed and hidden."""

from __future__ import annotations

from rooflens.format import count, si
from rooflens.model.program.communication import CollectiveLaunches


def told(one: CollectiveLaunches) -> str:
    """Say what is sent and how fast: `all-to-all of 289 MB over 8 GPUs: 43.3 of 300 GB/s`."""
    size = f" of {si(one.size_bytes, 'B')}" if one.size_bytes else ""
    gpus = f" over {count(one.gpus, 'GPU')}" if one.gpus else ""
    rate = one.bus_bytes_per_s
    if rate is None:
        return f"{one.name}{size}{gpus}"
    return f"{one.name}{size}{gpus}: {_of(si(rate, 'B/s'), one.link_bytes_per_s)}"


def _of(rate: str, link_bytes_per_s: float | None) -> str:
    """Write a rate and that of its link, the unit once where it is the same."""
    if link_bytes_per_s is None:
        return rate
    link = si(link_bytes_per_s, "B/s")
    number, _, unit = rate.partition(" ")
    return f"{number} of {link}" if link.endswith(f" {unit}") else f"{rate} of {link}"
