"""Break reports, writers, memory and disks on purpose, many times, and count what was lost: `make faults`.

    python benchmarks/faults.py [--scale 0.1] [--reports FOLDER] [CAMPAIGN]...

Each campaign prints its number of runs and faults, and what was lost: a report that was neither read nor named, a
kernel that changed, a store that cannot be read, a traceback, a file left behind. Exit status 1 with any loss.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from executors import cluster
from support.bit_flips import bit_flips
from support.damage import certain_damage, flipped_copies
from support.hostile import ALL
from support.hostile_files import hostile_files
from support.hungry import HUNGRY
from support.mcp_server import Server, within
from support.nvidia_reads import read_all
from support.s3_campaign import every_fault, faulty_bucket
from support.same_report import differences_of
from support.timeline_attacks import attacks, try_timelines

from rooflens.errors import InputError
from rooflens.ingest.load import ingest_reports, read_group
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.model.records import Kernel, Run
from rooflens.model.store.dataset import Store, StoredReport, report_files
from rooflens.model.store.tables import ReportRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.model.unprofiled import Unprofiled

FIXTURES = Path(__file__).parents[1] / "fixtures" / "synthetic"
OUTCOMES = Path(__file__).parents[2] / "shared" / "outcomes" / "timelines"
_REAL_TIMELINES = ("algo64.sqlite", "hta_sampled_rank-0.json.gz", "hta_triton_example.json.gz")
ROOFLENS = (sys.executable, "-m", "rooflens")
BATCH = 250
MOST_BYTES = 1 << 20
"""Larger reports hold the same, and take longer."""
DIES = "kills.ncu-rep"
"""A report that kills the worker that reads it."""
_TOO_MUCH = ("more memory", "unpacks to more than")
"""What is said of a report that needs more memory, and of one that is refused before it is unpacked."""
MOST_KIB = 3_000_000
"""Address space of a process that reads a report that needs more."""
_ERROR = re.compile(r"^error: (.*?): (.*)", re.MULTILINE)
_OF_ONE, _OF_EACH = 6, 3
"""Reports that two writers write again and again, and kernels of each."""

LONGEST_S = 600
MOST_BESIDE_S, PATIENCE_S = 1.0, 2.0
"""How soon a call of the server is answered beside another one, and how long that other one may take."""
_CAPBSET_DROP, _OVERRIDES = 24, (1, 2)  # what lets root write anywhere: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class Count(Struct):
    """The results of a campaign."""

    seed: int
    reports: Sequence[Path]
    runs: int = 0
    faults: int = 0
    losses: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def lose(self, lost: bool, what: str) -> None:  # noqa: FBT001 - a condition and its name
        """Note a loss, if there is one."""
        if lost:
            self.losses.append(what)


def run(*arguments: object, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run rooflens to its end."""
    command = [*ROOFLENS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=LONGEST_S, preexec_fn=before)


def kernels_of(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """Return the kernels of `analyze --format json`; none if it printed nothing."""
    kernels: list[dict[str, Any]] = json.loads(done.stdout)["kernels"] if done.stdout else []
    return kernels


def told(kernels: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what must not change in kernels, whatever the name of their report."""
    return sorted((k["name"], k["index"], k["duration_ns"], k["verdict"]["bound"]) for k in kernels)


def some_reports(folder: Path, count: int) -> Path:
    """Copy synthetic reports into a folder."""
    folder.mkdir()
    for path in sorted(FIXTURES.glob("*.ncu-rep"))[:count]:
        shutil.copy(path, folder)
    return folder


def damaged(count: Count, folder: Path, times: int) -> None:
    """Read damaged copies beside a whole report: each is read or named, the same by analyze and by ingest."""
    originals = [path.read_bytes() for path in count.reports]
    whole = shutil.copy(count.reports[0], folder / "whole.ncu-rep")
    expected = kernels_of(run("analyze", whole, "--format", "json"))
    copies, store = folder / "copies", folder / "store"
    while count.faults < times:
        copies.mkdir()
        kinds = _damaged_copies(count, originals[count.runs % len(originals)], min(BATCH, times - count.faults))
        for at, (_, content) in enumerate(kinds):
            (copies / f"{at:03}.ncu-rep").write_bytes(content)
        done = run("analyze", copies, whole, "--format", "json")
        found, named = kernels_of(done), dict(_ERROR.findall(done.stderr.decode(errors="replace")))
        ingested, kept = _stored((copies, whole), store)
        also_named = dict(_ERROR.findall(ingested.stderr.decode(errors="replace")))
        for one in (done, ingested):
            is_odd = b"Traceback" in one.stderr or one.returncode not in {0, 1}
            count.lose(is_odd, f"batch {count.runs}: {one.stderr[-500:]!r}")
        count.lose(
            named != also_named, f"batch {count.runs}: refused by one only: {named.items() ^ also_named.items()}"
        )
        count.lose(_sorted(found) != _sorted(kept), f"batch {count.runs}: stored otherwise than analyzed")
        count.lose([k for k in found if k["source"] == str(whole)] != expected, f"batch {count.runs}: the whole one")
        read = {kernel["source"] for kernel in found}
        for at, (kind, _) in enumerate(kinds):
            name = str(copies / f"{at:03}.ncu-rep")
            count.seen["read" if name in read else "named"] += 1
            count.lose(name not in read | named.keys(), f"batch {count.runs}: {kind} is neither read nor named")
        count.faults, count.runs = count.faults + len(kinds), count.runs + 1
        shutil.rmtree(copies)
        shutil.rmtree(store)


def _damaged_copies(count: Count, data: bytes, most: int) -> list[tuple[str, bytes]]:
    """Damage a report in this many ways; each content occurs once, as two flips may give the same report."""
    seed = 1000 * count.seed + count.runs
    made = chain(certain_damage(data), flipped_copies(data, 2 * most, seed=seed))
    return [*islice(((kind, content) for content, kind in {content: kind for kind, content in made}.items()), most)]


def _sorted(kernels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(kernels, key=lambda kernel: (kernel["source"], kernel["index"]))


def readers(count: Count, folder: Path, times: int) -> None:
    """Compare with NVIDIA's module on damaged copies: what both can read is equal, or we report what is not."""
    options = ReadOptions(raw="all", texts_later=True)
    while count.faults < times:
        data = count.reports[count.runs % len(count.reports)].read_bytes()
        files = []
        for at, (_, content) in enumerate(_damaged_copies(count, data, min(BATCH, times - count.faults))):
            files.append(folder / f"{count.runs}-{at}.ncu-rep")
            files[-1].write_bytes(content)
        group = read_group(options, [Job(file, file.name) for file in files])
        ours = {outcome.job.path: outcome.result for outcome in group.outcomes}
        for file, theirs in zip(files, _by_nvidia(files, options), strict=True):
            who = [name for name, one in (("us", ours[file]), ("NVIDIA", theirs)) if isinstance(one, InputError)]
            what = f"refused by {' and '.join(who)}"
            if isinstance(found := ours[file], ReadReport) and isinstance(theirs, ReadReport):
                different = ", ".join(differences_of(found, theirs))
                is_told = bool(found.notes or found.loss)
                what = "equal" if not different else "noted" if is_told else "different"
                count.lose(what == "different", f"{file.name} of seed {count.seed}: {different}")
            count.seen[what] += 1
            file.unlink()
        count.faults, count.runs = count.faults + len(files), count.runs + 1


def _by_nvidia(files: Sequence[Path], options: ReadOptions) -> list[ReadReport | InputError]:
    """Read files with NVIDIA's module in one child, or in one each if it dies."""
    try:
        found: list[ReadReport | InputError] = in_child(read_all, files, options)
    except InputError as error:
        half = len(files) // 2
        return [error] if not half else [*_by_nvidia(files[:half], options), *_by_nvidia(files[half:], options)]
    return found


def flips(count: Count, folder: Path, times: int) -> None:  # noqa: ARG001 - as every campaign takes them
    """Flip bits of values: no command fails with a bug, and no guard has to catch one."""
    tally = bit_flips(count.reports, times, count.seed)
    count.runs = count.faults = tally.flips
    count.seen.update({"kernels failed": tally.failed, "reports refused": tally.refused})
    count.losses += [f"{number} x {bug} (first: {tally.after[bug]})" for bug, number in tally.bugs.most_common()]


def timelines(count: Count, folder: Path, times: int) -> None:
    """Read damaged and hostile timelines: no traceback, 10 s and 1 GB each, and a signal ends each within a second."""
    (folder / "made").mkdir()
    real = [path for path in sorted(OUTCOMES.glob("*")) if path.name in _REAL_TIMELINES]
    tally = try_timelines(folder, attacks(folder / "made", times, count.seed, real), real)
    count.runs, count.faults, count.losses = tally.runs, tally.count, tally.losses
    for (_, how), number in tally.outcomes.items():
        count.seen[how] += number
    for what, (most, kind) in tally.worst.items():
        count.seen[f"{what} at most ({kind})"] = round(most)


def killed(count: Count, folder: Path, times: int) -> None:
    """End ingest, analyze and report at any moment: their files are whole, and no process or temporary file is left."""
    reports, chance = some_reports(folder / "reports", 12), random.Random(count.seed)  # noqa: S311 - repeatable
    for file in [*reports.glob("arch_*.ncu-rep")]:
        with file.open("rb") as plain, gzip.open(f"{file}z", "wb") as packed:
            packed.write(plain.read())
        file.unlink()
    expected = told(_stored((reports,), folder / "first")[1])
    page, scratch = folder / "page.html", folder / "scratch"
    while count.faults < times:
        scratch.mkdir(exist_ok=True)
        store = folder / f"store-{count.runs}"
        command = chance.choice((("ingest", "--store", store), ("analyze",), ("report", "-o", page, "--force")))
        number = chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        what = f"{number.name} to {command[0]}, run {count.runs}"
        process = subprocess.Popen(
            [*ROOFLENS, command[0], str(reports), *map(str, command[1:])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        time.sleep(chance.uniform(0.05, 1.2))
        is_running = process.poll() is None
        process.send_signal(number)
        said = process.communicate(timeout=LONGEST_S)[1]
        count.runs, count.faults = count.runs + 1, count.faults + is_running
        count.seen[f"{command[0]} {number.name}"] += is_running
        count.lose(b"Traceback" in said, f"{what}: {said[-500:]!r}")
        count.lose(_lives(process.pid), f"{what}: a process stayed")
        left = [path.name for path in (*scratch.iterdir(), *folder.glob("*page*")) if path != page]
        count.lose(bool(left) and number != signal.SIGKILL, f"{what}: left {left}")
        count.lose(page.exists() and b"</html>" not in page.read_bytes()[-100:], f"{what}: half a page")
        shutil.rmtree(scratch)
        for path in folder.glob("*page*"):
            path.unlink()
        if command[0] == "ingest":
            _check_store(count, what, reports, store, expected)


def _check_store(count: Count, what: str, reports: Path, store: Path, expected: list[tuple[Any, ...]]) -> None:
    """Check that a store has the contents of some of the reports, and that the next ingest completes it."""
    if store.is_dir():
        partly = run("analyze", "--store", store, "--format", "json")
        kept = told(kernels_of(partly))
        count.seen["stored whole" if kept == expected else "stored in part" if kept else "stored nothing"] += 1
        count.lose(b"Traceback" in partly.stderr, f"{what}: {partly.stderr[-500:]!r}")
        count.lose(not set(kept) <= set(expected), f"{what}: the store holds what no report says")
    again, kernels = _stored((reports,), store)
    count.lose(told(kernels) != expected, f"{what}: not completed: {again.stderr[-500:]!r}")
    shutil.rmtree(store)


def _stored(reports: Sequence[Path], store: Path) -> tuple[subprocess.CompletedProcess[bytes], list[dict[str, Any]]]:
    done = run("ingest", *reports, "--store", store)
    return done, kernels_of(run("analyze", "--store", store, "--format", "json"))


def _lives(group: int) -> bool:
    """Tell whether a process of a group still exists after a moment."""
    for _ in range(40):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True


def together(count: Count, folder: Path, times: int) -> None:
    """Let two ingests write one store at once: it contains every report once."""
    reports = some_reports(folder / "reports", 12)
    expected = told(_stored((reports,), folder / "first")[1])
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


def writers(count: Count, folder: Path, times: int) -> None:
    """Kill three writers that replace each other's reports, one by one: what was committed stays, whole and once."""
    chance, known, store = random.Random(count.seed), set[str](), folder / "store"  # noqa: S311 - repeatable
    start = multiprocessing.get_context("spawn").Process
    while count.faults < times:
        several = [start(target=_write, args=(store, count.faults + more)) for more in range(3)]
        for writer in several:
            writer.start()
        until_s = time.monotonic() + LONGEST_S
        while not known and not Store(store).digests() and time.monotonic() < until_s:
            time.sleep(0.05)
        for writer in several:
            time.sleep(chance.uniform(0.3, 2.0))
            writer.kill()
            writer.join()
            wrong = _wrong_with(store, known)
            count.runs, count.faults = count.runs + 1, count.faults + 1
            count.lose(bool(wrong), f"kill {count.faults}: {wrong}")


def _write(folder: Path, seed: int) -> None:
    """Store reports in an endless loop, one to three at a time, each with another host."""
    chance = random.Random(seed)  # noqa: S311 - repeatable
    while True:
        rows = []
        for number in chance.sample(range(_OF_ONE), chance.randint(1, 3)):
            digest, source = f"{number:064x}", f"{number}.ncu-rep"
            kernels = [Kernel(digest, source, index, "k", "k", "ok") for index in range(_OF_EACH)]
            rows.append(
                ReportRows(Run(digest, source, 1, _OF_EACH, synthetic=True, host=str(chance.random())), kernels)
            )
        store = Store(folder)
        store.prepare()
        store.put([report_files(one) for one in rows])


def _wrong_with(folder: Path, known: set[str]) -> str:
    """Return what is wrong with a store, nothing if all is well, and add to what is known to be there."""
    found = list(Store.existing(folder).reports())
    reports = [one for one in found if isinstance(one, StoredReport)]
    digests = Counter(one.run.digest for one in reports)
    if len(reports) < len(found) or max(digests.values()) > 1:
        return f"{len(found) - len(reports)} damaged, {digests}"
    if lost := known - digests.keys():
        return f"lost {lost}"
    known |= digests.keys()
    return ", ".join(f"torn: {one.run.source}" for one in reports if len(one.kernels) != _OF_EACH)


def workers(count: Count, folder: Path, times: int) -> None:
    """Have one report of eleven kill its workers, in a pool and in Dask: it is named, the others are stored."""
    reports = some_reports(folder / "reports", 10)
    shutil.copy(max(FIXTURES.glob("*.ncu-rep")), reports / DIES)
    jobs = find_inputs([str(reports)]).jobs
    with ExitStack() as stack:
        executors = {"pool": "process:2"}
        try:
            executors["Dask"] = f"dask:{stack.enter_context(cluster(2, nannies=True)).address}"
        except ImportError:
            count.seen["without Dask"] = 1
        for number in range(times):
            for name, executor in executors.items():
                store = Store(folder / f"{name}-{number}")
                done = ingest_reports(jobs, store, unprofiled_of=_die, executor=executor)
                count.runs, count.faults = count.runs + 1, count.faults + 1
                named = [Path(source).name for source, _ in done.failures]
                count.seen[f"{name}: {done.report_count} stored, {len(named)} named"] += 1
                count.lose(named != [DIES], f"{name}: named {named}")
                count.lose(len(store.digests()) != 10, f"{name}: {len(store.digests())} stored")


def _die(path: Path) -> Unprofiled | None:
    """Kill the process that requests the un-profiled run of one report."""
    if path.name == DIES:
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def memory(count: Count, folder: Path, times: int) -> None:
    """Let one report of eleven need too much memory, in several ways: it is named, and ten are read."""
    reports = some_reports(folder / "reports", 10)
    expected = told(_stored((reports,), folder / "ten")[1])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_KIB << 10, MOST_KIB << 10))

    def limit_here() -> None:
        limit()
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])

    for number in range(times):
        for kind, (suffix, write) in HUNGRY.items():
            hungry = reports / f"hungry{suffix}"
            write(hungry)
            for place, before in (("here", limit_here), ("processes", limit)):
                store = folder / f"{kind}-{place}-{number}"
                executor = ("--executor", "process:2") if place == "processes" else ()
                started_s = time.monotonic()
                done = run("ingest", reports, "--store", store, *executor, before=before)
                found = run("analyze", reports, "--format", "json", before=before)
                count.seen[f"s {kind} {place}"] = round(time.monotonic() - started_s)
                stored = run("analyze", "--store", store, "--format", "json")
                for one, read in ((done, stored), (found, found)):
                    what = f"{kind}, {place}, {one.args[3]}"
                    count.runs, count.faults = count.runs + 1, count.faults + 1
                    named = _ERROR.findall(one.stderr.decode(errors="replace"))
                    is_told = [name for name, why in named if any(one in why for one in _TOO_MUCH)] == [str(hungry)]
                    count.lose(len(named) != 1 or not is_told, f"{what}: {one.stderr[-500:]!r}")
                    count.lose(one.returncode != 1, f"{what}: exit status {one.returncode}")
                    count.lose(told(kernels_of(read)) != expected, f"{what}: not ten reports")
            hungry.unlink()


def full(count: Count, folder: Path, times: int) -> None:
    """Let the disk be full after some bytes: the error says so, nothing is left half, and existing files stay."""
    reports = some_reports(folder / "reports", 12)
    expected = told(_stored((reports,), folder / "first")[1])
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
        count.lose(told(_stored((reports,), store)[1]) != expected, f"{most_bytes} B: the store cannot be completed")
        shutil.rmtree(store)


def unwritable(count: Count, folder: Path, times: int) -> None:
    """Write without permission: an error with a hint, and no change; a read-only store still answers."""
    reports = some_reports(folder / "reports", 4)
    closed = folder / "closed"
    closed.mkdir()
    expected = told(_stored((reports,), closed / "store")[1])
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
    """Replace and rewrite a report while it is read: the result is one of the two as a whole, or an error."""
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
                if not path.stat().st_size:  # emptied, and about to be written: nothing was read
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


def server(count: Count, folder: Path, times: int) -> None:
    """Open hostile files through the MCP server: a call beside each is answered within a second, and none stays."""
    root = some_reports(folder / "root", 1)
    good = next(root.iterdir()).name
    with Server(root) as asked:
        asked.timed("list_kernels", path=good)
        worst = (0.0, "")
        for kind, file in hostile_files(root, count.seed, each=times, is_large=True):
            hostile = asked.call("open_report", path=file.name)
            seconds = asked.timed("list_kernels", path=good)
            worst = max(worst, (seconds, kind))
            count.runs, count.faults = count.runs + 2, count.faults + 1
            count.lose(seconds > MOST_BESIDE_S, f"{seconds:.2f} s beside {kind}")
            is_answered = asked.said(hostile, PATIENCE_S) is not None
            count.seen["answered" if is_answered else "cancelled"] += 1
            if not is_answered:
                asked.cancel(hostile)
            file.unlink()
        asked.close()
        ended_s = within(lambda: not asked.processes())
        count.lose(ended_s is None, "a process stayed")
        count.seen["ms to its end"] = round(1000 * (ended_s or 0))
        count.seen[f"ms beside one at most ({worst[1]})"] = round(1000 * worst[0])


def s3(count: Count, folder: Path, times: int) -> None:
    """Let every request to S3 fail in every way: nothing is lost or stored twice, and no command says what is not."""
    with faulty_bucket(folder) as bucket:
        for what, state in bucket.states().items():
            every = every_fault(len(bucket.requests(state)))
            for name in list(every)[:: max(1, len(every) // times)]:
                bucket.check(f"{what}, {name}", state, every[name])
                count.runs, count.faults = count.runs + 1, count.faults + 1
        count.seen, count.losses = bucket.seen, bucket.wrong


CAMPAIGNS: dict[str, tuple[Callable[[Count, Path, int], None], int]] = {
    "damaged": (damaged, 1_000),
    "readers": (readers, 1_000),
    "flips": (flips, 300),
    "timelines": (timelines, 1_000),
    "killed": (killed, 120),
    "writers": (writers, 40),
    "together": (together, 20),
    "workers": (workers, 3),
    "memory": (memory, 1),
    "full": (full, 30),
    "unwritable": (unwritable, 5),
    "changing": (changing, 3_000),
    "hostile-names": (hostile_names, 2),
    "server": (server, 60),
    "s3": (s3, 10_000),
}
"""What is done, and how often."""


def main() -> int:
    """Run the campaigns, print a line for each, and every loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the usual number of runs (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which processes are killed (1)")
    parser.add_argument("--reports", type=Path, default=FIXTURES, help="folder of the reports that are damaged")
    options = parser.parse_args()
    reports = [path for path in sorted(options.reports.rglob("*.ncu-rep")) if path.stat().st_size <= MOST_BYTES]
    lost = 0
    print(f"{'campaign':<14}{'runs':>7}{'faults':>9}{'losses':>8}{'seconds':>9}  outcomes")
    if unknown := [name for name in options.campaigns if name not in CAMPAIGNS]:
        parser.error(f"no campaign is called {unknown[0]}: they are {', '.join(CAMPAIGNS)}")
    for name in options.campaigns or CAMPAIGNS:
        campaign, times = CAMPAIGNS[name]
        count, started_s = Count(options.seed, reports), time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = str(Path(folder, "cache"))
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
