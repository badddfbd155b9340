"""Print how often `compare --fail-on` is wrong: false alarms without a change, and regressions it lets through.

Kernels are judged, as with `--per-kernel`; a total of one kernel is judged alike. The judgement is that of
`rooflens.model.compare`. Times come from one of two sources:

- normal noise of a given size, as a share of the time;
- measured noise, if reports are given: launches of one kernel in one recording that executed equally many instructions
  did the same work. Each such group gives a spread, and a kernel's noise is that of a group drawn at random. These are
  launches within a recording: differences between runs of a program are added to this.

    python benchmarks/noise_gate.py
    python benchmarks/noise_gate.py --reports corpus/
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median, stdev

from rooflens.analyzing import analyze_paths
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Spread, Timing
from rooflens.model.compare.gate import DEFAULT_FLOOR_NS

DRAWS = 100_000
FAIL_ON = 0.05
SEED = 20261121
RECORDINGS = (2, 3, 5, 7)
REGRESSIONS = (0.10, 0.20)

Noise = Callable[[random.Random], float]
"""Draws the noise of a kernel: a standard deviation as a part of its time."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--reports", type=Path, help="folder of reports whose equal launches give the noise")
    given = parser.parse_args()
    print(f"{given.draws:,} draws; --fail-on {FAIL_ON:.0%}, --threshold {DEFAULT_THRESHOLD:.0%}, --floor 2us\n")
    if given.reports:
        groups = equal_launches(given.reports)
        print_groups(groups)
        for name, chosen in (("from one wave on", False), ("below one wave", True)):
            spreads = [spread for spread, _, below in groups if below is chosen]
            if spreads:
                noise: Noise = lambda source, spreads=spreads: source.choice(spreads)  # type: ignore[misc]  # noqa: E731
                for time_us in (10.0, 1000.0):
                    print_rates(f"as measured, {name}, {time_us:g} µs", noise, time_us, given.draws, below=chosen)
        return
    for below, time_us in ((False, 1000.0), (True, 1000.0), (False, 10.0)):
        for size in (0.01, 0.02, 0.03):
            where = "below one wave" if below else "from one wave on"
            print_rates(
                f"{size:.0%}, {where}, {time_us:g} µs", lambda _, size=size: size, time_us, given.draws, below=below
            )  # type: ignore[misc]


def print_rates(title: str, noise: Noise, time_us: float, draws: int, *, below: bool) -> None:
    """Print alarms without a change, the same if the head is recorded again, and caught regressions."""
    caught = "  ".join(f"catches +{regression:.0%}" for regression in REGRESSIONS)
    print(f"{title}\n  recordings  called a change  alarms   confirmed  {caught}")
    for recordings in RECORDINGS:
        rates = Rates(noise, recordings, time_us * 1e3, below=below)
        changed, alarmed, confirmed = rates.alarms(draws)
        found = "  ".join(f"{rates.caught(draws, regression):11.3%}" for regression in REGRESSIONS)
        print(f"  {recordings:10}  {changed:15.3%}  {alarmed:6.3%}  {confirmed:9.4%}  {found}")
    print()


class Rates:
    """Draws comparisons of one kernel and counts the judgements."""

    def __init__(self, noise: Noise, recordings: int, time_ns: float, *, below: bool) -> None:
        self._noise = noise
        self._recordings = recordings
        self._time_ns = time_ns
        self._under_wave = float(below)

    def alarms(self, draws: int) -> tuple[float, float, float]:
        """Without a change: how often one is seen, the gate fails, and fails again with the head recorded anew."""
        source = random.Random(SEED)  # noqa: S311 - a simulation
        changed = alarmed = confirmed = 0
        for _ in range(draws):
            size = self._noise(source)
            base, head = self._spread(source, size, 1.0), self._spread(source, size, 1.0)
            changed += self._timing(base, head).outcome() in {"slower", "faster"}
            if self._fails(base, head):
                alarmed += 1
                confirmed += self._fails(base, self._spread(source, size, 1.0))
        return changed / draws, alarmed / draws, confirmed / draws

    def caught(self, draws: int, regression: float) -> float:
        """How often the gate fails on a regression."""
        source = random.Random(SEED)  # noqa: S311 - a simulation
        hits = 0
        for _ in range(draws):
            size = self._noise(source)
            hits += self._fails(self._spread(source, size, 1.0), self._spread(source, size, 1.0 + regression))
        return hits / draws

    def _spread(self, source: random.Random, size: float, factor: float) -> Spread:
        return Spread(tuple(self._time_ns * factor * source.gauss(1.0, size) for _ in range(self._recordings)))

    def _timing(self, base: Spread, head: Spread) -> Timing:
        return Timing(base, head, self._under_wave)

    def _fails(self, base: Spread, head: Spread) -> bool:
        return self._timing(base, head).outcome(FAIL_ON, DEFAULT_FLOOR_NS) == "slower"


def equal_launches(reports: Path) -> list[tuple[float, Sequence[float], bool]]:
    """Find launches with the same work: spread over mean, times, and whether they are below one wave."""
    groups: defaultdict[tuple[object, ...], list[float]] = defaultdict(list)
    waves: dict[tuple[object, ...], float] = {}
    for report in analyze_paths([reports]).reports:
        for analysis in report.analyses:
            kernel = analysis.kernel
            executed = sum(kernel.warp_opcodes.values())
            key = (kernel.digest, kernel.name, kernel.grid, kernel.block, executed)
            if executed and kernel.duration_ns and not kernel.failed and "waves" in kernel.counters:
                groups[key].append(kernel.duration_ns)
                waves[key] = kernel.counters["waves"]
    return [(stdev(times) / fmean(times), times, waves[key] < 1) for key, times in groups.items() if len(times) > 1]


def print_groups(groups: Sequence[tuple[float, Sequence[float], bool]]) -> None:
    """Print the measured groups."""
    print("equal launches: kernels, launches, median of their spreads, largest spread, largest range")
    for name, below in (("from one wave on", False), ("below one wave", True)):
        found = [(spread, times) for spread, times, is_below in groups if is_below is below]
        if found:
            spreads = [spread for spread, _ in found]
            ranges = [max(times) - min(times) for _, times in found]
            print(
                f"  {name:16}  {len(found):3}  {sum(len(times) for _, times in found):4}  {median(spreads):.2%}  "
                f"{max(spreads):.2%}  {max(ranges):,.0f} ns"
            )
    print()


if __name__ == "__main__":
    main()
