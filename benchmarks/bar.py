"""Hold the CPU of whole commands to what it was: against a commit, and beside NVIDIA's own loop over the same file.

    python benchmarks/bar.py [--base COMMIT] [--quick] [--growth]

Each line is one command over one file, as a process of its own with its children: its CPU over that of a yardstick at
the base and now. Yardsticks are a loop over NVIDIA's `ncu_report` that reads every value, `json.load` for a trace, and
`import click` for `--help`. Yardstick, base and now take turns, and medians count: other load slows all of them. A line
that takes 10 % more CPU than at the base is measured again; if it does in three runs of three, the exit status is 1.

The base is the last tag, else where this branch left origin/main, else the parent; without history there is none,
and the bar only prints. `--quick` takes smaller files, for CI. `--growth` prints how CPU grows with kernels instead.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from compileall import compile_dir
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from ingest import VALUES, cpu_and_peak, standard_report
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.encoded_code import report_of_loops
from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report
from support.tier_metrics import stored_metrics
from support.traces import host, kernel, launch, write_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"

MOST = 1.10
"""A line may take this much more CPU than at the base."""
RUNS, ROUNDS = 3, 3
"""A line fails in this many runs of as many; each is the median of this many rounds."""


class Sizes(Struct, frozen=True):
    """How large the files are."""

    own: int
    equal: int
    trace_events: int
    with_corpus: bool = True


FULL = Sizes(own=1000, equal=4000, trace_events=500_000)
QUICK = Sizes(own=300, equal=500, trace_events=20_000, with_corpus=False)


class Work(Struct, frozen=True):
    """One line: the arguments of `rooflens` over a file; `{file}` and `{page}` in them are replaced.

    Attributes:
        is_first: Nothing is kept of an earlier run: charts are built, as they are on a machine of CI.
    """

    title: str
    file: str
    arguments: tuple[str, ...]
    yardstick: str = "loop"
    is_first: bool = False


TABLE = ("analyze", "{file}")
JSON = ("analyze", "--format", "json", "{file}")
PAGE = ("report", "{file}", "--output", "{page}", "--force")

WORKS = (
    Work("--help", "", ("--help",), "import click"),
    Work("table of 154 kernels", "published", TABLE),
    Work("page of one report with code", "code", PAGE),
    Work("first page of one report with code", "code", PAGE, is_first=True),
    Work("own tier: table", "own", TABLE),
    Work("own tier: JSON", "own", JSON),
    Work("own tier: page", "own", PAGE),
    Work("equal work: JSON", "equal", JSON),
    Work("trace: table", "trace", TABLE, "json.load"),
    Work("corpus: table of 154 kernels", "corpus_154", TABLE),
    Work("corpus: page of one report with code", "corpus_code", PAGE),
)
SMALL = {"", "published", "code", "corpus_code"}
"""Files whose lines are run once before they count."""

YARDSTICKS = {
    "loop": VALUES,
    "json.load": "import json, sys; json.load(open(sys.argv[1], encoding='utf-8'))",
    "import click": "import click",
}


def make_files(folder: Path, sizes: Sizes) -> dict[str, Path]:
    """Make or find the files of the lines, by name; what lies only beside the checkout may be missing."""
    own, equal, code = (folder / f"{name}.ncu-rep" for name in ("own", "equal", "code"))
    own.write_bytes(standard_report(sizes.own))
    equal.write_bytes(equal_work(sizes.equal))
    report_of_loops(code, 1, 1, stored_metrics("gh100", "standard"))
    files = {
        "": folder,
        "published": ROOT / "fixtures" / "published" / "self-join-MiSTIC__profile.ncu-rep",
        "code": code,
        "own": own,
        "equal": equal,
        "trace": trace(folder / "trace.json", sizes.trace_events),
    }
    if sizes.with_corpus:
        files["corpus_154"] = CORPUS / "self-join-MiSTIC__profile.ncu-rep"
        files["corpus_code"] = CORPUS / "llm.c__adamw_coalsecing_shared.ncu-rep"
    return files


def equal_work(kernels: int) -> bytes:
    """Make a report of kernels that all do the same work, each under a name of its own and a little slower."""
    stored = stored_metrics("gh100", "standard")
    time = "gpu__time_duration.sum"
    return encode_report(
        ReportSpec(
            [
                KernelSpec(f"void kernel_{i}(float*, int)", {**stored, time: stored[time] * (1 + i / kernels)})
                for i in range(kernels)
            ]
        )
    )


def trace(path: Path, events: int) -> Path:
    """Write a trace of calls of 50 operators, each with its frame of Python, its launch and its kernel."""
    made = []
    for number in range(events // 4):
        m, at = 256 * (1 + number % 50), 20.0 * number
        args = {"Input Dims": [[m, 4096], [4096, 4096]], "Input type": ["c10::Half"] * 2, "Sequence number": number}
        made += [
            host("python_function", f"nn.Module: Block_{m}", at, 9.5, **{"Python id": number}),
            host("cpu_op", "aten::mm", at + 1, 8.25, **args),
            launch(at + 2, number + 1),
            kernel(f"sm90_gemm_{m}x4096", at + 5, 10.0 + m / 256, correlation=number + 1, **{"shared memory": 49152}),
        ]
    return write_trace(path, made, deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])


class Tree(Struct, frozen=True):
    """A package to measure: where it lies, and the folder of its caches."""

    place: Path
    home: Path

    def warm(self, works: Iterable[Work], files: Mapping[str, Path]) -> None:
        """Write bytecode and caches, which are not what is measured."""
        compile_dir(self.place / "rooflens", quiet=2)
        for work in works:
            self.cpu_s(work, files[work.file])

    def cpu_s(self, work: Work, file: Path) -> float:
        """Run a command once and return its CPU seconds."""
        given = {"{file}": str(file), "{page}": str(self.home / "page.html")}
        command = [sys.executable, "-m", "rooflens", *(given.get(one, one) for one in work.arguments)]
        return _cpu_s(command, self.home, self.place, os.devnull if work.is_first else None)


def _cpu_s(command: Sequence[str], home: Path, place: Path | None = None, cache: str | None = None) -> float:
    """Return the CPU seconds of a process and its children, which finds its package at `place`.

    Its cache is `cache`, by default below `home`. Bytecode is kept: without it most of a command would be the compiler.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env |= {"XDG_CACHE_HOME": cache or str(home / "cache"), "ROOFLENS_HOME": str(home / "home")}
    env |= {"PYTHONPATH": str(place)} if place else {}
    return cpu_and_peak(command, cwd=home, env=env)[0]


class Line(Struct, frozen=True):
    """What a work took in one run: CPU seconds of its yardstick, at the base and now, round by round.

    Attributes:
        base_s: NaN without a base.
    """

    work: Work
    yardstick_s: list[float]
    base_s: list[float]
    now_s: list[float]

    @property
    def change(self) -> float:
        """CPU now over CPU at the base, which ran side by side."""
        return median(now / base for now, base in zip(self.now_s, self.base_s, strict=True))


def measure(work: Work, file: Path, now: Tree, base: Tree | None) -> Line:
    """Run yardstick, base and now in turn."""
    line = Line(work, [], [], [])
    script = YARDSTICKS[work.yardstick]
    for number in range(ROUNDS):
        line.yardstick_s.append(_cpu_s((sys.executable, "-c", script, str(file)), now.home))
        sides = [(now, line.now_s), (base, line.base_s)]
        for tree, seconds in sides if number % 2 else sides[::-1]:
            try:
                seconds.append(tree.cpu_s(work, file) if tree else math.nan)
            except SystemExit:
                if tree is now:
                    raise
                seconds.append(math.nan)  # the base could not do it yet
    return line


def show(line: Line) -> None:
    """Print a work's ratio to its yardstick at the base and now, and its CPU against the base."""
    now_s, yardstick_s = median(line.now_s), median(line.yardstick_s)
    before, change = f"{median(line.base_s) / yardstick_s:.2f}", f"{line.change - 1:+.0%}"
    if math.isnan(line.change):
        before = change = "-"
    print(
        f"{line.work.title:<38} {line.work.yardstick:<12} {before:>6} {now_s / yardstick_s:6.2f} {now_s:6.2f} s "
        f"{change:>7}{'  slower' if line.change > MOST else ''}",
        flush=True,
    )


def find_base(given: str | None) -> tuple[str, str] | None:
    """Return the commit to hold to and what it is; None where git knows none.

    Raises:
        SystemExit: The given commit is not known.
    """
    if given:
        if (commit := _git("rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")) is None:
            raise SystemExit(f"error: git knows no commit `{given}`\n\nhint: fetch it, or name another with --base")
        return commit, given
    if tag := _git("describe", "--tags", "--abbrev=0"):
        return tag, "the last tag"
    left = _git("merge-base", "HEAD", "origin/main")
    if left and left != _git("rev-parse", "HEAD"):
        return left, "where this branch left origin/main"
    parent = _git("rev-parse", "--verify", "--quiet", "HEAD^")
    return (parent, "the parent commit") if parent else None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def unpack(commit: str, folder: Path) -> Path:
    """Write the package as it was at a commit."""
    packed = subprocess.check_output(("git", "archive", commit, "rooflens"), cwd=ROOT)  # noqa: S607
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def growth(now: Tree, base: Tree | None) -> None:
    """Print the exponents by which CPU beyond the start-up grows with kernels."""
    cases = [(work, (1000, 10_000)) for work in WORKS if work.file == "own"]
    cases += [(work, (1000, 4000)) for work in WORKS if work.file == "equal"]
    makers = {"own": standard_report, "equal": equal_work}
    for work, sizes in cases:
        said = []
        for name, tree in (("base", base), ("now", now)):
            if tree is None:
                continue
            cpu_s = []
            for size in (1, *sizes):
                file = now.home / "grown.ncu-rep"
                file.write_bytes(makers[work.file](size))
                cpu_s.append(min(tree.cpu_s(work, file) for _ in range(1 if size > 1000 else ROUNDS)))
            start_s, *grown = cpu_s
            exponent = math.log((grown[1] - start_s) / (grown[0] - start_s)) / math.log(sizes[1] / sizes[0])
            said.append(f"{name} {exponent:.2f} ({grown[0]:.2f} and {grown[1]:.2f} s)")
        print(f"{work.title:<20} {sizes[0]:,} to {sizes[1]:,} kernels: {', '.join(said)}", flush=True)


def main() -> int:
    """Measure, print, and return 1 if a line got slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="commit to hold to")
    parser.add_argument("--quick", action="store_true", help="smaller files, for CI")
    parser.add_argument("--growth", action="store_true", help="print how CPU grows with kernels instead")
    options = parser.parse_args()
    found = find_base(options.base)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        now = Tree(ROOT, folder / "now")
        base = Tree(unpack(found[0], folder / "package"), folder / "base") if found else None
        for tree in (base, now):
            if tree:
                tree.home.mkdir()
        if found:
            print(f"base: {found[0][:12]}, {found[1]}\n")
        else:
            print("base: none, as git knows no commit before this one; a clone with its history has one\n")
        if options.growth:
            growth(now, base)
            return 0
        files = make_files(folder, QUICK if options.quick else FULL)
        works = [work for work in WORKS if work.file in files and files[work.file].exists()]
        for work in WORKS:
            if work not in works:
                why = "not with --quick" if options.quick else f"no {files[work.file]}"
                print(f"skipped: {work.title}: {why}")
        for tree in filter(None, (base, now)):
            tree.warm((work for work in works if work.file in SMALL), files)
        return bar(works, files, now, base)


def bar(works: Sequence[Work], files: Mapping[str, Path], now: Tree, base: Tree | None) -> int:
    """Print all lines, measure again those that seem slower, and return 1 if some are in every run."""
    for number in range(RUNS):
        if number:
            print(f"\nagain, {number + 1} of {RUNS}:")
        print(f"{'work':<38} {'to':<12} {'base':>6} {'now':>6} {'CPU':>8} {'change':>7}")
        slower = []
        for work in works:
            show(line := measure(work, files[work.file], now, base))
            slower += [work] if line.change > MOST else []
        if not slower:
            return 0
        works = slower
    names = ", ".join(f"`{work.title}`: over {MOST - 1:.0%}" for work in slower)
    print(f"\nerror: {names} more CPU than at the base in {RUNS} runs of {RUNS}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
