"""Kill writers of a store at random moments, and count what was lost: `kill_writers.py [KILLS]`.

Two processes at once read a report at a time into one store, replacing what stands there; each is killed with SIGKILL
after a random time. After each kill every report that was ever committed must be there, whole and once.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rooflens.model.records import Kernel, Run
from rooflens.model.store.parts import PartWriter
from rooflens.model.store.reading import StoredReport
from rooflens.model.store.rows import ReportRows
from rooflens.model.store.store import Store

REPORTS, KERNELS = 6, 3


def write(folder: Path, seed: int) -> None:
    """Put reports into a store without end, in batches of one to three."""
    choice = random.Random(seed)  # noqa: S311 - no secret
    while True:
        with Store(folder).writing() as store:
            with PartWriter(store.place) as writer:
                for number in choice.sample(range(REPORTS), choice.randint(1, 3)):
                    writer.add_report(report(number, choice))
            store.commit(writer.summary)


def report(number: int, choice: random.Random) -> ReportRows:
    """Make a report that differs each time."""
    digest = f"{number:064x}"
    run = Run(digest, f"{number}.ncu-rep", 1, KERNELS, synthetic=True, host=str(choice.random()))
    counters = {"duration_ns": float(number)}
    return ReportRows(run, [Kernel(digest, run.source, i, "k", "k", "ok", counters=counters) for i in range(KERNELS)])


def check(folder: Path, known: set[str]) -> str:
    """Return what is wrong with a store; nothing where all is well. Adds to what is known to be there."""
    found = list(Store.existing(folder).reports())
    damaged = [one for one in found if not isinstance(one, StoredReport)]
    reports = [one for one in found if isinstance(one, StoredReport)]
    counts = Counter(one.run.digest for one in reports)
    if damaged or max(counts.values()) > 1:
        return f"damaged {damaged}, twice {counts}"
    if lost := known - counts.keys():
        return f"lost {lost}"
    if torn := [one.run.source for one in reports if len(one.kernels) != KERNELS]:
        return f"torn {torn}"
    known |= counts.keys()
    return ""


def main(kills: int) -> int:
    """Kill so many writers; return how many times something was wrong after it."""
    choice, wrong, known = random.Random(1), 0, set[str]()  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        with Store(folder).writing():
            pass
        for kill in range(0, kills, 2):
            command = [sys.executable, __file__, "--write", str(folder)]
            writers = [subprocess.Popen([*command, str(kill + i)], stderr=subprocess.DEVNULL) for i in range(2)]
            until_s = time.monotonic() + 600
            while not known and not Store(folder).digests() and time.monotonic() < until_s:
                time.sleep(0.05)
            for writer in writers:
                time.sleep(choice.uniform(0.3, 2.0))
                writer.kill()
                writer.wait()
                if said := check(folder, known):
                    wrong += 1
                    print(f"kill {kill}: {said}")
        with Store(folder).writing():
            pass
        left = [file for file in folder.rglob("*") if file.name.endswith(".partial")]
    print(f"{kills} kills, {wrong} times something was wrong, {len(left)} half files left after the next writer")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]), int(sys.argv[3]))
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 200) else 0)
