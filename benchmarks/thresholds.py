"""Count the answers that each threshold decides: move it by a fifth, judge all kernels at hand again, and compare.

    python benchmarks/thresholds.py FOLDER... [--only PATTERN] [--ladders]

Thresholds are the rows of `thresholds.toml` and the numbers that modules of the rules name. An answer is the class of a
kernel, its limit, its moves and whether it is done; in brackets stands where anything that is said changes: notes,
flags, confidence. Those of ladders are what `compare` writes of each as JSON.
"""

from __future__ import annotations

import argparse
import ast
import gc
import re
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, force_setattr

from rooflens import analyzing
from rooflens.model.compare.versions import ladder_inside, ladders_of
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.comparison.data import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rooflens.model.records import Analysis, AnalyzedReport

    Answers = dict[object, tuple[object, ...]]

ROOT = Path(__file__).resolve().parents[1]
TABLE = "thresholds.toml"
RULES = ("findings/*.py", "verdict/*.py", "compare/*.py", "same_work.py")
STEPS = (1.2, 0.8)
given: list[tuple[Any, ...]] = []
"""What was read of each report: its run, its kernels, and its run without the profiler."""


def constants() -> dict[tuple[str, str], Any]:
    """Return every number that a module of the rules names, and every row of the table, by its place and name."""
    found: dict[tuple[str, str], Any] = {(TABLE, name): value for name, value in asdict(default_thresholds()).items()}
    for file in (file for pattern in RULES for file in sorted((ROOT / "rooflens" / "model").glob(pattern))):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
            names = [
                part.id for target in targets for part in ast.walk(target or ast.Pass()) if isinstance(part, ast.Name)
            ]
            values = vars(import_module(module))
            found |= {(module, name): values[name] for name in names if _is_number(values.get(name))}
    return found


def _is_number(value: object) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(map(_is_number, value.values()))
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scaled(value: Any, step: float) -> Any:
    if isinstance(value, dict):
        return {key: _scaled(one, step) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_scaled(one, step) for one in value)
    if isinstance(value, int):  # at least by one
        return max(round(value * step), value + 1) if step > 1 else min(round(value * step), value - 1)
    return value * step


@contextmanager
def moved(place: str, name: str, step: float) -> Iterator[None]:
    """Scale a threshold wherever it was imported, for a while."""
    if place == TABLE:
        holders: list[tuple[Any, Any]] = [(default_thresholds(), force_setattr)]
    else:
        value = vars(sys.modules[place])[name]
        every = [module for key, module in sys.modules.items() if key.startswith("rooflens.")]
        shared = [module for module in every if not name.startswith("_") and vars(module).get(name) is value]
        holders = [(module, setattr) for module in {sys.modules[place], *shared}]
    before = getattr(holders[0][0], name)
    for holder, assign in holders:
        assign(holder, name, _scaled(before, step))
    try:
        yield
    finally:
        for holder, assign in holders:
            assign(holder, name, before)


def judged() -> list[AnalyzedReport]:
    """Judge all that was read again."""
    analyzer = analyzing._Analyzer(default_thresholds(), without_nvidia=False)  # noqa: SLF001
    return [report for each in given for report in analyzer.analyze(*each).reports]


def answers(reports: Sequence[AnalyzedReport]) -> Answers:
    """Return the answer of each kernel, and all that is said of it."""
    return {
        (report.run.source, one.kernel.index): (_answer(one), (one.verdict, one.flags, one.findings))
        for report in reports
        for one in report.analyses
    }


def _answer(one: Analysis) -> tuple[object, ...]:
    verdict = one.verdict
    moves = [(move.kind, move.text, move.gain) for move in verdict.moves]
    return verdict.bound, verdict.or_bound, verdict.limit, moves, verdict.done


def ladders(reports: Sequence[AnalyzedReport]) -> Answers:
    """Return what is said of each ladder: of the reports of a folder, and of the kernels of a report."""
    folders: defaultdict[Path, list[AnalyzedReport]] = defaultdict(list)
    for report in reports:
        folders[Path(report.run.source).parent].append(report)
    found = [(str(folder), place, one) for folder, own in folders.items() for place, one in enumerate(ladders_of(own))]
    found += [(report.run.source, 0, one) for report in reports if (one := ladder_inside(report))]
    return {(name, place): (to_json([one]),) for name, place, one in found}


def changed(place: str, name: str, of: Callable[[Sequence[AnalyzedReport]], Answers]) -> list[str]:
    """Return how many answers change, and how many with all that is said, where a threshold grows, and shrinks."""
    counts = []
    for step in STEPS:
        try:
            with moved(place, name, step):
                now = of(reports_before if of is ladders and place != TABLE else judged())
        except Exception as error:  # noqa: BLE001 - another number of hardware can be nonsense
            counts.append(type(error).__name__)
            continue
        pairs = [(now.get(key), before.get(key)) for key in now.keys() | before.keys()]
        of_answers = sum(one is None or other is None or one[0] != other[0] for one, other in pairs)
        counts.append(f"{of_answers} ({sum(one != other for one, other in pairs)})")
    return counts


reports_before: list[AnalyzedReport] = []
before: Answers = {}


def main(arguments: Sequence[str]) -> int:
    """Print a table of all thresholds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--ladders", action="store_true")
    wanted = parser.parse_args(arguments)
    texts = [text for place in wanted.places for text in sorted(place.rglob("*.txt"))]
    read = analyzing._Analyzer.analyze  # noqa: SLF001

    def noted(self: Any, *each: Any) -> Any:
        given.append(each)
        return read(self, *each)

    analyzing._Analyzer.analyze = noted  # type: ignore[method-assign]  # noqa: SLF001
    analyzing.analyze_paths([*wanted.places, *texts])
    analyzing._Analyzer.analyze = read  # type: ignore[method-assign]  # noqa: SLF001
    of = ladders if wanted.ladders else answers
    gc.disable()
    reports_before.extend(judged())
    before.update(of(reports_before))
    gc.freeze()
    chosen = {key: value for key, value in constants().items() if re.search(wanted.only, ".".join(key))}
    print(f"{len(before)} {'ladders' if wanted.ladders else 'kernels'}, {len(chosen)} thresholds\n")
    print("| threshold | value | +20 % | -20 % |\n|---|---:|---:|---:|", flush=True)
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        jobs = [(key, pool.submit(changed, *key, of)) for key in chosen]
        for key, job in jobs:
            name, (more, less) = ".".join(key).removeprefix("rooflens.model."), job.result()
            print(f"| {name} | {chosen[key]} | {more} | {less} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
