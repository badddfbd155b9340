"""Goals for the agreement of our findings with NVIDIA's rules: figures, and exceptions with their reasons."""

from __future__ import annotations

NVIDIA_ESTIMATE_PCT = 20.0
"""Results with at least this estimate count."""

RECALL = 0.95
"""Part of NVIDIA's results whose very topic is among our findings."""

FALSE_LIMITERS = 0.05
"""Part of the cases in which NVIDIA sees nothing and our finding says that this bounds the kernel."""

FINDINGS_A_KERNEL = 6
"""Findings that are more than notes."""

MOVES_WITH_EVIDENCE = 0.60
COLLECT_FIRST = 0.15
UNKNOWN = 0.10
"""Parts of the kernels: first move holds a number of the first finding's evidence; asks for counters; no verdict."""

FIRST_RANK_TIME = 0.10
"""Rank 1 of a report holds at least this part of its GPU time."""

RANK_EXCEPTIONS = 0.10
"""Part of the reports with several kernels that may say why not."""

MARKED_PLACES = 1.0
"""Part of NVIDIA's marked lines that are among our top three of the topic."""

Key = tuple[str, int, str]
"""Report, index of the kernel in it, and topic."""

MISSES: dict[Key, str] = {}
"""NVIDIA's results that no finding of ours matches, and why."""

RIGHT_LIMITERS: dict[Key, str] = {}
"""Limiters where NVIDIA's rules see nothing, and why they are right."""
