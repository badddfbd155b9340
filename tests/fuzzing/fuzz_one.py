"""Fuzz one target in its own process: `python -m fuzzing.fuzz_one ENGINE TARGET SECONDS SEED`."""

from __future__ import annotations

import sys

from fuzzing.fuzz import by_chance, by_coverage

if __name__ == "__main__":
    engine, name, seconds, seed = sys.argv[1:]
    run = by_coverage if engine == "atheris" else by_chance
    run(name, float(seconds), int(seed))
