"""The six classes of verdicts, as verdicts and the cases of workloads name them."""

from typing import Literal

Bound = Literal["memory", "compute", "latency", "overhead", "balanced", "unknown"]
BOUNDS: tuple[Bound, ...] = ("memory", "compute", "latency", "overhead", "balanced", "unknown")
