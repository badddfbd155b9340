"""Break reports, writers and disks on purpose, many times, and count what was lost: `make faults`.

    python benchmarks/faults.py [--scale 0.1] [CAMPAIGN]...

Each campaign prints how often it ran, how many faults it made, and what was lost: a report that was neither read nor
named, a kernel that changed, a store that cannot be read, a traceback, a file left behind. Exit status 1 with any loss.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from rooflens.ingest.columns.reading import read_rows
from rooflens.ingest.reports.encoded import UnknownContentError
from support.damage import certain_damage, flipped_copies
from support.hostile import ALL
from support.ncu_rep_writer import ReportSpec, encode_report
from support.plain_kernels import plain_kernel

from rooflens.errors import InputError
from rooflens.ingest.reports.read import comparable, read_bytes, read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.store.rows import ReportRows, report_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FIXTURES = Path(__file__).parents[1] / "fixtures" / "synthetic"
ROOFLENS = (sys.executable, "-m", "rooflens")
BATCH = 250
_ALIKE = 20
"""Kernels of a report that is read in columns."""

LONGEST_S = 600
_CAPBSET_DROP, _OVERRIDES = 24, (1, 2)  # what lets root write where nobody may: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class Count(Struct):
    """What became of a campaign."""

    seed: int = 1
    runs: int = 0
    faults: int = 0
    losses: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def lose(self, lost: bool, what: str) -> None:  # noqa: FBT001 - a condition and its name
        """Note a loss, if it is one."""
        if lost:
            self.losses.append(what)


def run(*arguments: object, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run rooflens to its end."""
    command = [*ROOFLENS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=LONGEST_S, preexec_fn=before)


def kernels_of(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """Return the kernels of `analyze --format json`; none where it printed nothing."""
    kernels: list[dict[str, Any]] = json.loads(done.stdout)["kernels"] if done.stdout else []
    return kernels


def told(kernels: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what must not change of kernels, whatever their report is called."""
    return sorted((k["name"], k["index"], k["duration_ns"], k["verdict"]["bound"]) for k in kernels)


def some_reports(folder: Path, count: int) -> Path:
    """Copy synthetic reports into a folder."""
    folder.mkdir()
    for path in sorted(FIXTURES.glob("*.ncu-rep"))[:count]:
        shutil.copy(path, folder)
    return folder


def damaged(count: Count, folder: Path, times: int) -> None:
    """Analyze damaged copies beside a whole report: each is read or named, and the whole one stays whole."""
    originals = [path.read_bytes() for path in sorted(FIXTURES.glob("*.ncu-rep"))]
    whole = shutil.copy(next(FIXTURES.glob("*.ncu-rep")), folder / "whole.ncu-rep")
    expected = told(kernels_of(run("analyze", whole, "--format", "json")))
    made, copies = 0, folder / "copies"
    while made < times:
        copies.mkdir()
        data = originals[count.runs % len(originals)]
        made_here = [*certain_damage(data), *flipped_copies(data, 2 * BATCH, seed=count.runs)]
        # Two flips may give one content, which is one report under two names: each content stands once.
        kinds = [(kind, content) for content, kind in {content: kind for kind, content in made_here}.items()]
        kinds = kinds[: min(BATCH, times - made)]
        for at, (_, content) in enumerate(kinds):
            (copies / f"{at}.ncu-rep").write_bytes(content)
        done = run("analyze", copies, whole, "--format", "json")
        found, said = kernels_of(done), done.stderr.decode(errors="replace")
        count.lose("Traceback" in said or done.returncode not in {0, 1}, f"batch {count.runs}: {said[-500:]}")
        count.lose(
            told([k for k in found if k["source"] == str(whole)]) != expected, f"batch {count.runs}: the whole one"
        )
        for at, (kind, _) in enumerate(kinds):
            name = str(copies / f"{at}.ncu-rep")
            is_read = any(kernel["source"] == name for kernel in found)
            count.seen["read" if is_read else "named"] += 1
            count.lose(not is_read and name not in said, f"batch {count.runs}: {kind} is neither read nor named")
        made, count.runs = made + len(kinds), count.runs + 1
        count.faults += len(kinds)
        shutil.rmtree(copies)


def columns(count: Count, folder: Path, times: int) -> None:  # noqa: ARG001 - as every campaign takes them
    """Read damaged copies of a report of launches that are alike, in columns and one by one: the same comes of both."""
    whole = encode_report(ReportSpec([*map(plain_kernel, range(_ALIKE))]))
    count.lose(_read_both_ways(whole)[1] != _ALIKE, "the whole one is not read in columns")
    for kind, content in islice(chain(certain_damage(whole), flipped_copies(whole, times, seed=count.seed)), times):
        count.runs, count.faults = count.runs + 1, count.faults + 1
        difference, row_count = _read_both_ways(content)
        count.seen["refused" if row_count is None else "in columns" if row_count else "one by one"] += 1
        count.lose(bool(difference), f"{kind} of seed {count.seed}: {difference}")


def _read_both_ways(data: bytes) -> tuple[str, int | None]:
    """Return where reading in columns differs from reading one by one, and how many kernels were read so.

    None where the report is refused.
    """
    found: list[dict[str, Any]] = []
    refused: list[str] = []
    row_count = 0
    for reader in (read_rows, None):
        try:
            report = read_bytes(data, "report", ReadOptions(raw="values", read_rows=reader))
        except (InputError, UnknownContentError) as error:
            refused.append(f"{type(error).__name__}: {error}")
            continue
        row_count += report.rows.num_rows if report.rows is not None else 0
        rows = ReportRows(report.run, report.kernels, None, report.raw, report.instances, report.rows)
        tables = report_tables(rows)
        found.append(
            {**{name: tables[name] for name in ("kernels", "hotspots")}, "metrics": comparable(tables["metrics"])}
        )
    if len(found) != 2:
        return "" if len(refused) == 2 and refused[0] == refused[1] else f"only one refuses: {refused}", None
    return ", ".join(name for name, table in found[0].items() if not table.equals(found[1][name])), row_count


def killed(count: Count, folder: Path, times: int) -> None:
    """Kill an ingest at any time: the store is whole, the next ingest completes it, and no process stays."""
    reports, chance = some_reports(folder / "reports", 12), random.Random(count.seed)  # noqa: S311 - repeatable
    (reports / "alike.ncu-rep").write_bytes(encode_report(ReportSpec([*map(plain_kernel, range(10 * _ALIKE))])))
    expected = told(_stored(reports, folder / "first")[1])
    started_s = time.monotonic()
    run("ingest", reports, "--store", folder / "second")
    longest_s = time.monotonic() - started_s
    while count.faults < times:
        number, store = count.runs, folder / f"store-{count.runs}"
        process = subprocess.Popen(
            [*ROOFLENS, "ingest", str(reports), "--store", str(store)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(chance.uniform(0.1, longest_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            count.faults += 1
        process.wait()
        count.runs += 1
        partly = run("analyze", "--store", store, "--format", "json") if store.is_dir() else None
        if partly is not None:
            kept = told(kernels_of(partly))
            count.seen["whole" if kept == expected else "nothing" if not kept else "part"] += 1
            count.lose(b"Traceback" in partly.stderr, f"kill {number}: {partly.stderr[-500:]!r}")
            count.lose(not set(kept) <= set(expected), f"kill {number}: the store holds what no report says")
        again, kernels = _stored(reports, store)
        count.lose(told(kernels) != expected, f"kill {number}: not completed: {again.stderr[-500:]!r}")
        count.lose(_lives(process.pid), f"kill {number}: a process stayed")
        shutil.rmtree(store)


def _stored(reports: Path, store: Path) -> tuple[subprocess.CompletedProcess[bytes], list[dict[str, Any]]]:
    done = run("ingest", reports, "--store", store)
    return done, kernels_of(run("analyze", "--store", store, "--format", "json"))


def _lives(group: int) -> bool:
    """Tell whether a process of a group is there after a moment."""
    for _ in range(40):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True


def together(count: Count, folder: Path, times: int) -> None:
    """Let two ingests write one store at once: it holds every report once."""
    reports = some_reports(folder / "reports", 12)
    expected = told(_stored(reports, folder / "first")[1])
    for number in range(times):
        store = folder / f"store-{number}"
        command = [*ROOFLENS, "ingest", str(reports), "--store", str(store)]
        both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
        said = [process.communicate(timeout=LONGEST_S)[1] for process in both]
        count.runs, count.faults = count.runs + 1, count.faults + 1
        count.lose(any(process.returncode for process in both), f"pair {number}: {said!r}")
        found = told(kernels_of(run("analyze", "--store", store, "--format", "json")))
        count.lose(found != expected, f"pair {number}: {len(found)} kernels, not {len(expected)}")
        shutil.rmtree(store)


def full(count: Count, folder: Path, times: int) -> None:
    """Let the disk be full after some bytes: an error that says so, nothing left half, and what was there stays."""
    reports = some_reports(folder / "reports", 12)
    expected = told(_stored(reports, folder / "first")[1])
    page = folder / "page.html"
    for number in range(times):
        most_bytes = int(10 ** random.Random(number).uniform(1, 5))  # noqa: S311 - repeatable
        store = folder / f"store-{number}"

        def fill(most_bytes: int = most_bytes) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

        for arguments in (("ingest", reports, "--store", store), ("report", reports, "-o", page, "--force")):
            old = page.read_bytes() if page.exists() else None
            done = run(*arguments, before=fill)
            count.runs, count.faults = count.runs + 1, count.faults + bool(done.returncode)
            count.lose(b"Traceback" in done.stderr, f"{most_bytes} B: {done.stderr[-500:]!r}")
            count.lose(bool(done.returncode) and not done.stderr, f"{most_bytes} B: nothing said")
            kept = page.read_bytes() if page.exists() else None
            count.lose(bool(done.returncode) and kept != old, f"{most_bytes} B: the page changed")
            left = [path.name for path in folder.iterdir() if "page" in path.name and path != page]
            count.lose(bool(left), f"{most_bytes} B: left {left}")
        count.lose(told(_stored(reports, store)[1]) != expected, f"{most_bytes} B: the store cannot be completed")
        shutil.rmtree(store)


def unwritable(count: Count, folder: Path, times: int) -> None:
    """Write where nobody may: an error with a hint, and nothing changes; a store that is only read still answers."""
    reports = some_reports(folder / "reports", 4)
    closed = folder / "closed"
    expected = told(_stored(reports, closed / "store")[1])
    for path in (closed, *closed.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)

    def obey() -> None:
        for capability in _OVERRIDES:
            ctypes.CDLL(None).prctl(_CAPBSET_DROP, capability, 0, 0, 0)

    more = shutil.copytree(reports, folder / "more")
    shutil.copy(max(FIXTURES.glob("*.ncu-rep")), more)
    before = sorted(str(path) for path in closed.rglob("*"))
    for _ in range(times):
        for arguments in (
            ("ingest", more, "--store", closed / "store"),
            ("ingest", more, "--store", closed / "new"),
            ("report", more, "-o", closed / "page.html"),
        ):
            done = run(*arguments, before=obey)
            count.runs, count.faults = count.runs + 1, count.faults + 1
            count.lose(done.returncode == 0, f"{arguments[0]}: went well")
            count.lose(b"Traceback" in done.stderr or b"error: " not in done.stderr, f"{done.stderr[-500:]!r}")
        read = run("analyze", "--store", closed / "store", "--format", "json", before=obey)
        count.runs += 1
        count.lose(told(kernels_of(read)) != expected, f"cannot be read: {read.stderr[-500:]!r}")
    count.lose(sorted(str(path) for path in closed.rglob("*")) != before, "files came or went")
    for path in (closed, *(path for path in closed.rglob("*") if path.is_dir())):
        path.chmod(0o755)


def changing(count: Count, folder: Path, times: int) -> None:
    """Replace and rewrite a report while it is read: one of the two comes back whole, or an error."""
    contents = [path.read_bytes() for path in sorted(FIXTURES.glob("*.ncu-rep"))[:2]]
    path, other, stop = folder / "same.ncu-rep", folder / "other", threading.Event()
    expected, pause = set(), random.Random(1)  # noqa: S311 - repeatable
    for data in contents:
        path.write_bytes(data)
        found = read_report(path, "same")
        expected.add((found.run.digest, tuple(kernel.name for kernel in found.kernels)))

    def change() -> None:
        while not stop.is_set():
            for data in contents:
                if count.faults % 2:
                    path.write_bytes(data)
                else:
                    other.write_bytes(data)
                    other.replace(path)
                count.faults += 1
                time.sleep(pause.uniform(0, 0.01))

    changer = threading.Thread(target=change)
    changer.start()
    try:
        while count.runs < times:
            try:
                found = read_report(path, "same")
            except InputError as error:
                if not path.stat().st_size:  # emptied, and about to be written: no read to speak of
                    time.sleep(0.001)
                    continue
                count.runs += 1
                count.seen["refused" if "changed" in str(error) else "cut"] += 1
                continue
            count.runs += 1
            count.seen["read"] += 1
            both = (found.run.digest, tuple(kernel.name for kernel in found.kernels))
            count.lose(both not in expected, f"read {count.runs}: digest and kernels of two reports")
    finally:
        stop.set()
        changer.join()


def hostile_names(count: Count, folder: Path, times: int) -> None:
    """Analyze reports with hostile file names: each is there, and nothing that steers a terminal is printed."""
    named = folder / "named"
    named.mkdir()
    data = next(FIXTURES.glob("*.ncu-rep")).read_bytes()
    for text in (*ALL, "\udcff raw \udc9b"):
        name = os.fsencode(text.replace("/", "_").replace("\0", "")[:60])[:200]
        (Path(os.fsdecode(os.fsencode(named))) / f"{os.fsdecode(name)}.ncu-rep").write_bytes(data)
    there = len(list(named.iterdir()))
    for _ in range(times):
        for form in ("table", "json", "csv", "md"):
            done = run("analyze", named, "--format", form)
            count.runs, count.faults = count.runs + 1, count.faults + there
            count.lose(b"Traceback" in done.stderr or done.returncode != 0, f"{form}: {done.stderr[-500:]!r}")
            printed = (done.stdout + done.stderr).decode(errors="replace")
            steering = {char for char in printed if not char.isprintable() and char not in "\n\r\t\ufeff\u3000 \xa0"}
            count.lose(bool(steering), f"{form}: printed {sorted(map(ascii, steering))}")
            if form == "json":
                found = {kernel["source"] for kernel in kernels_of(done)}
                count.lose(len(found) < 1, "json: no kernels")


CAMPAIGNS: dict[str, tuple[Callable[[Count, Path, int], None], int]] = {
    "damaged": (damaged, 10_000),
    "columns": (columns, 10_000),
    "killed": (killed, 200),
    "together": (together, 20),
    "full": (full, 30),
    "unwritable": (unwritable, 5),
    "changing": (changing, 3_000),
    "hostile-names": (hostile_names, 2),
}
"""What is done, and how often."""


def main() -> int:
    """Run the campaigns, print a line for each, and every loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the usual number of runs (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which processes are killed (1)")
    options = parser.parse_args()
    lost = 0
    print(f"{'campaign':<14}{'runs':>7}{'faults':>9}{'losses':>8}{'seconds':>9}  outcomes")
    for name in options.campaigns or CAMPAIGNS:
        campaign, times = CAMPAIGNS[name]
        count, started_s = Count(options.seed), time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                campaign(count, Path(folder), max(1, round(times * options.scale)))
            except subprocess.TimeoutExpired as error:
                count.losses.append(f"given up: {error}")
        seen = ", ".join(f"{number} {what}" for what, number in sorted(count.seen.items()))
        seconds = time.monotonic() - started_s
        print(f"{name:<14}{count.runs:>7}{count.faults:>9}{len(count.losses):>8}{seconds:>9.0f}  {seen}", flush=True)
        for loss in count.losses[:10]:
            print(f"    {loss}", flush=True)
        lost += len(count.losses)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
