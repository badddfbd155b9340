"""Names of a trace as they are shown."""

from __future__ import annotations

import re

_STEP = re.compile(r"^ProfilerStep#(?:\d+|\*)(?:/|$)")


def without_step(nvtx_range: str | None) -> str:
    """Leave out the range that PyTorch's profiler opens around each step, which says nothing of the place."""
    return _STEP.sub("", nvtx_range or "")
