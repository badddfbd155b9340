"""What the page's scripts know of each launch: the JSON block that selectors, charts and table share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.model import units

if TYPE_CHECKING:
    from rooflens.report.rows import Launch, Page

NAME_WIDTH = 400

FAILED = "failed"
"""Stands in place of a verdict for launches that have none because they failed."""


def items(page: Page) -> list[dict[str, Any]]:
    """List the launches in order of falling time; missing text is empty.

    Keys: `k` launch, `g` kernel, `n` launches it stands for, `cum` share of GPU time before it; the rest by name.
    """
    return [_item(launch) for launch in page.launches]


def precision(launch: Launch) -> str:
    """Name the type with most of the launch's FLOPs; empty without FLOPs."""
    flop = {dtype: amount for dtype, amount in launch.analysis.flop.items() if amount > 0}
    return max(flop, key=lambda dtype: flop[dtype], default="")


def _item(launch: Launch) -> dict[str, Any]:
    kernel = launch.analysis.kernel
    return {
        "k": launch.key,
        "g": launch.group_key,
        "n": launch.analysis.launches,
        "name": units.cut_middle(launch.shown, NAME_WIDTH),
        "gpu": launch.gpu,
        "bound": FAILED if launch.failed else launch.bound,
        "precision": precision(launch),
        "range": kernel.nvtx_range or "",
        "process": kernel.process or "",
        "device": "" if kernel.device is None else str(kernel.device),
        # A share without a duration is not known to be small, but it is in no top by time either.
        "cum": 1.0 if launch.duration_ns is None else round(min(launch.cumulative_share, 1.0), 6),
    }
