"""Print how often `compare --fail-on` is wrong: false alarms with no change, and regressions it lets through.

Times are drawn from a normal distribution around 1, whose standard deviation is the noise. The judgement is the one of
`rooflens.model.compare`: ranges of both sides disjoint, and medians further apart than the threshold.
"""

from __future__ import annotations

import random
import sys

from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Spread, Timing

DRAWS = 100_000
FAIL_ON = 0.05
SEED = 20261121


def main(draws: int = DRAWS) -> None:
    """Print a table of rates for several noises and numbers of recordings."""
    print(f"{draws:,} draws; a change counts from {DEFAULT_THRESHOLD:.0%}, the gate is --fail-on {FAIL_ON:.0%}")
    print("noise  recordings  called a change, none is  gate fails, none is  gate catches +10 %")
    for noise in (0.01, 0.02, 0.03):
        for recordings in (2, 3, 5, 7):
            changed = rate(noise, recordings, 0.0, draws, DEFAULT_THRESHOLD, {"slower", "faster"})
            alarmed = rate(noise, recordings, 0.0, draws, FAIL_ON, {"slower"})
            caught = rate(noise, recordings, 0.1, draws, FAIL_ON, {"slower"})
            print(f"{noise:5.0%}  {recordings:10}  {changed:24.3%}  {alarmed:19.3%}  {caught:18.3%}")


def rate(noise: float, recordings: int, regression: float, draws: int, threshold: float, outcomes: set[str]) -> float:  # noqa: PLR0913, PLR0917 - the row of a table
    """Draw series and return how often the outcome is one of those given."""
    source = random.Random(SEED)  # noqa: S311 - a simulation
    hits = 0
    for _ in range(draws):
        base = tuple(source.gauss(1.0, noise) for _ in range(recordings))
        head = tuple(source.gauss(1.0 + regression, noise) for _ in range(recordings))
        hits += Timing(Spread(base), Spread(head)).outcome(threshold) in outcomes
    return hits / draws


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
