"""NVIDIA's own verdicts, read from the rule results a report holds, and whether ours agree with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rooflens.model.records import Level, Nvidia, Rule, Verdict, held_once
from rooflens.model.verdict.bottleneck import is_lsu_full

NVIDIA_RULE = "nvidia_rule"
"""The finding that stands for a rule of NVIDIA's which none of ours covers."""

BROKEN = re.compile(r"returned an error:|^Traceback|\.py:\d+|could not be found", re.MULTILINE)
"""Rules that say only that they could not run: the report lacks the metrics they read."""

_ACHIEVED = re.compile(
    r"achieved\s+(?:close to\s+)?(?P<fp32>[\d.]+)% of this device's fp32 peak performance"
    r"\s+and\s+(?:close to\s+)?(?P<fp64>[\d.]+)% of its fp64 peak",
    re.IGNORECASE,
)
_FIGURES_ONLY = re.compile(r"fp32 (?P<fp32>[\d.]+) %, fp64 (?P<fp64>[\d.]+) % of peak")
"""How published figures (`fixtures/publish.py`) say the same two numbers without NVIDIA's words."""

_TITLE_OF_TEXT = (
    ("low compute throughput and memory bandwidth", "Latency Issue"),
    ("grid is too small", "Small Grid"),
    ("of the available compute or memory performance", "High Throughput"),
    ("Compute is more heavily utilized than Memory", "High Compute Throughput"),
    ("Memory is more heavily utilized than Compute", "High Memory Throughput"),
    ("Compute and Memory are well-balanced", "Balanced Throughput"),
)
"""Old versions and exports give the bottleneck no title: a phrase of the text -> the title of later reports."""

SAME_CLASSES: Mapping[str, frozenset[str]] = {
    "High Throughput": frozenset({"at_roof"}),
    "High Memory Throughput": frozenset({"memory"}),
    "High Compute Throughput": frozenset({"compute"}),
    "Balanced Throughput": frozenset({"balanced"}),
    "Latency Issue": frozenset({"latency", "overhead"}),
    "Small Grid": frozenset({"latency", "overhead"}),
}
"""NVIDIA's bottleneck -> the classes of ours that say the same; `at_roof` is any class at its roof.

NVIDIA has no class for launches that are too short: its rule calls them a latency issue.
"""


def agrees(bottleneck: str | None, verdict: Verdict, l1: Level) -> bool | None:
    """Return whether a verdict agrees with NVIDIA's rule; None if we do not know the rule's class.

    NVIDIA counts the load and store instructions on both of its sides: where they lead, it calls the kernel balanced.
    """
    same = SAME_CLASSES.get(bottleneck or "")
    if same is None:
        return None
    if bottleneck == "Balanced Throughput" and is_lsu_full(verdict.resource, l1):
        return True
    return verdict.bound in same or (verdict.at_roof and "at_roof" in same)


def read_nvidia(rules: Iterable[Rule]) -> Nvidia:
    """Read bottleneck class and per cents of the fp32 and fp64 peak; None if the report has no such rule."""
    bottleneck = fp32 = fp64 = None
    for rule in rules:
        if rule.identifier == "SOLBottleneck":
            titles = (title for phrase, title in _TITLE_OF_TEXT if phrase in rule.message)
            bottleneck = bottleneck or rule.title or next(titles, None)
        elif rule.identifier == "SOLFPRoofline":
            match = _ACHIEVED.search(rule.message) or _FIGURES_ONLY.search(rule.message)
            fp32, fp64 = (float(match["fp32"]), float(match["fp64"])) if match else (fp32, fp64)
    return held_once(Nvidia(bottleneck, fp32, fp64))
