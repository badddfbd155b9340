"""Feed the readers mutated inputs for some minutes: `python -m fuzzing.fuzz --minutes 10`, from the folder `tests`.

With atheris (`pip install atheris`) the next input depends on the code reached; without it, on chance alone. An input
is kept in `found/` if its reader answers with anything but records or our errors, takes over ten seconds or needs over
4 GB: fix the reader, keep a small file, and `test_fuzz.py` reads it from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

SLOWEST_S, HANGS_S = 10.0, 120.0
MOST_BYTES = 4 << 30
MOST_INPUT_BYTES = 1 << 20
CHANGES_AT_MOST = 6


def main() -> int:
    """Fuzz each target for its share of the time; return 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together (10)")
    parser.add_argument("--target", help="one target, by default each in turn")
    parser.add_argument("--engine", choices=("atheris", "chance"), help="atheris where it is installed, else chance")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="of what chance does")
    options = parser.parse_args()
    engine = options.engine or ("atheris" if importlib.util.find_spec("atheris") else "chance")
    from fuzzing.targets import FOUND, TARGETS  # noqa: PLC0415 - not before atheris had its say, in a process of its own

    names = [options.target] if options.target else list(TARGETS)
    seconds = options.minutes * 60 / len(names)
    before = set(FOUND.iterdir())
    for name in names:
        argv = [sys.executable, "-m", "fuzzing.fuzz_one", engine, name, str(seconds), str(options.seed)]
        print(f"{name}: {seconds:.0f} s by {engine}, seed {options.seed}", flush=True)
        subprocess.run(argv, check=False)
    found = sorted(file.name for file in set(FOUND.iterdir()) - before)
    print(f"{len(found)} findings in {len(names)} targets", *found)
    return 1 if found else 0


class _Reading:
    """Reads inputs, and keeps the first at each place that fails."""

    def __init__(self, name: str) -> None:
        from fuzzing.targets import FOUND, TARGETS  # noqa: PLC0415 - as above

        self._folder, self._name, self._read = FOUND, name, TARGETS[name].read
        self._places: set[tuple[str, str, int | None]] = set()

    def __call__(self, data: bytes) -> None:
        """Read an input; a failure does not end the search."""
        started_s = time.process_time()
        try:
            self._read(data)
            if time.process_time() - started_s > SLOWEST_S:
                raise TimeoutError(f"took {time.process_time() - started_s:.1f} s")  # noqa: TRY301 - told as all others
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = (type(error).__name__, last.filename, last.lineno)
            if place not in self._places:
                self._places.add(place)
                file = self._folder / f"{self._name}-{hashlib.sha256(data).hexdigest()[:12]}"
                file.write_bytes(data)
                print(f"{file}: {''.join(traceback.format_exception(error))}", flush=True)


def by_chance(name: str, seconds: float, seed: int) -> None:
    """Mutate inputs by chance alone."""
    from fuzzing.targets import TARGETS  # noqa: PLC0415 - as above

    target, read, chance = TARGETS[name], _Reading(name), Random(seed)  # noqa: S311 - repeatable, not secret
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    seeds, count = target.seeds(), 0
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        data = chance.choice(seeds)
        for _ in range(chance.randint(1, CHANGES_AT_MOST)):
            data = target.mutate(data, chance)[:MOST_INPUT_BYTES]
        count += 1
        read(data)
    print(f"{name}: {count} inputs", flush=True)


def by_coverage(name: str, seconds: float, seed: int) -> None:
    """Let atheris mutate inputs, half of them with our knowledge of the format; it ends the process."""
    import atheris  # noqa: PLC0415 - an extra

    with atheris.instrument_imports(include=["rooflens.ingest", "rooflens.model", "rooflens.cli"]):
        from fuzzing.targets import FOUND, TARGETS  # noqa: PLC0415 - instrumented
    target = TARGETS[name]

    def change(data: bytes, most_bytes: int, number: int) -> bytes:
        if number % 2:
            changed: bytes = atheris.Mutate(data, most_bytes)
            return changed
        return target.mutate(data, Random(number))[:most_bytes]  # noqa: S311 - repeatable, not secret

    with tempfile.TemporaryDirectory() as folder:
        for at, data in enumerate(target.seeds()):
            (Path(folder) / str(at)).write_bytes(data)
        # By the clock; what is slow on a machine with nothing else to do is found by processor time.
        limits = [
            f"-max_total_time={seconds:.0f}",
            *(f"-{one}={HANGS_S:.0f}" for one in ("timeout", "report_slow_units")),
        ]
        limits += [
            f"-rss_limit_mb={MOST_BYTES >> 20}",
            f"-max_len={MOST_INPUT_BYTES}",
            f"-seed={seed % (1 << 31) or 1}",
            f"-artifact_prefix={FOUND}/{name}-",
        ]
        atheris.Setup([sys.argv[0], *limits, "-print_final_stats=1", folder], _Reading(name), custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
