"""Feed the readers mutated inputs for some minutes: `python -m fuzzing.fuzz --minutes 10`, from the folder `tests`.

With atheris (`pip install atheris`) the next input depends on the code reached; without it, on chance alone. An input
is kept in `found/` if its reader answers with anything but records or our errors, takes over ten seconds or needs over
4 GB: fix the reader, keep a small file, and `test_fuzz.py` reads it from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

SLOWEST_S = 10.0
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
    from fuzzing.targets import TARGETS  # noqa: PLC0415 - not before atheris had its say, in a process of its own

    names = [options.target] if options.target else list(TARGETS)
    seconds = options.minutes * 60 / len(names)
    found = 0
    for name in names:
        argv = [sys.executable, "-m", "fuzzing.fuzz_one", engine, name, str(seconds), str(options.seed)]
        print(f"{name}: {seconds:.0f} s by {engine}, seed {options.seed}", flush=True)
        found += subprocess.run(argv, check=False).returncode != 0
    print(f"{found} of {len(names)} targets have findings")
    return 1 if found else 0


def by_chance(name: str, seconds: float, seed: int) -> int:
    """Mutate inputs by chance alone; return the number of distinct findings kept."""
    from fuzzing.targets import FOUND, TARGETS  # noqa: PLC0415 - as above

    target, chance = TARGETS[name], Random(seed)  # noqa: S311 - repeatable, not secret
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    seeds, places, count = target.seeds(), set(), 0
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        data = chance.choice(seeds)
        for _ in range(chance.randint(1, CHANGES_AT_MOST)):
            data = target.mutate(data, chance)[:MOST_INPUT_BYTES]
        count += 1
        started_s = time.process_time()
        try:
            target.read(data)
            if time.process_time() - started_s > SLOWEST_S:
                raise TimeoutError(f"took {time.process_time() - started_s:.1f} s")  # noqa: TRY301 - told as all others
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = (type(error).__name__, last.filename, last.lineno)
            if place not in places:
                places.add(place)
                file = FOUND / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
                file.write_bytes(data)
                print(f"{file}: {''.join(traceback.format_exception(error))}", flush=True)
    print(f"{name}: {count} inputs, {len(places)} findings", flush=True)
    return len(places)


def by_coverage(name: str, seconds: float, seed: int) -> int:
    """Let atheris mutate inputs, half of them with our knowledge of the format; it ends the process at a finding."""
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
        limits = [f"-max_total_time={seconds:.0f}", f"-timeout={SLOWEST_S:.0f}", f"-rss_limit_mb={MOST_BYTES >> 20}"]
        limits += [
            f"-max_len={MOST_INPUT_BYTES}",
            f"-seed={seed % (1 << 31) or 1}",
            f"-artifact_prefix={FOUND}/{name}-",
        ]
        atheris.Setup([sys.argv[0], *limits, "-print_final_stats=1", folder], target.read, custom_mutator=change)
        atheris.Fuzz()
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
