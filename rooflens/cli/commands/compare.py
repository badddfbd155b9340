"""The command `compare`: two sides of one program or more, before and after, and a gate for CI."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from rooflens.cli.console import FORMAT_HELP, check_output, console, echo, say, show_error
from rooflens.cli.loading import load_analyzed
from rooflens.errors import InputError, NothingChosenError, UsageError
from rooflens.files import write_whole
from rooflens.model.compare.gate import Gate
from rooflens.model.store import MARKER
from rooflens.model.store.address import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.model.compare.across import Across, Sides
    from rooflens.model.compare.gate import Compared
    from rooflens.model.compare.pairing import Pair
    from rooflens.model.records import AnalyzedReport

FORMATS = ("table", "json", "md", "html", "junit")
GATE_FAILED = 5
_DIGEST = re.compile(r"[0-9a-f]{6,64}")
_PER_CENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="BASE [HEAD]...")
@click.option("--format", "style", type=click.Choice(FORMATS), help=FORMAT_HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file, not to stdout.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--fail-on", metavar="PER_CENT", help="Exit with 5 when GPU time grew by more than this, beyond noise.")
@click.option("--per-kernel", is_flag=True, help="With --fail-on: judge every kernel, not only the total.")
@click.option("--threshold", metavar="PER_CENT", default="3%", show_default=True, help="Smaller changes count as none.")
@click.option("--anyway", is_flag=True, help="Compare even what was not collected alike.")
def compare(
    places: tuple[str, ...],
    *,
    style: str | None,
    output: Path | None,
    force: bool,
    fail_on: str | None,
    per_kernel: bool,
    threshold: str,
    anyway: bool,
) -> None:
    """Show what became of each kernel between two or more recordings of a program.

    BASE and HEAD are a report, a folder of reports, a store, or a report of one (STORE/DIGEST). Several
    reports of one program on a side are taken as repeated recordings: they give the noise, without which nothing is
    called slower. With more than one HEAD each is set against BASE. A folder or store alone is taken by the versions
    in the names of its reports (v4_gemm, v5_gemm), in the order of their recording.
    """
    from rooflens.report.text import comparison as comparisons

    if per_kernel and fail_on is None:
        raise UsageError("--per-kernel goes with --fail-on", "for example `--fail-on 5% --per-kernel`")
    style = check_output(output, style, FORMATS, "compare.html", force=force)
    gate = Gate(_share(fail_on, "--fail-on"), per_kernel) if fail_on is not None else None
    smallest = _share(threshold, "--threshold")
    # What fails a gate is a change: no sentence may call it none.
    smallest = min(smallest, gate.fail_on) if gate else smallest
    sides, pairs = _paired(places)
    compared = _compared(pairs, smallest, anyway=anyway)
    sides = replace(sides, across=tuple(_across(pairs, compared)))
    for unpaired in sides.unpaired:
        say(f"warning: {unpaired.words}")
    text = _text(compared, gate, style, sides)
    if text is None:
        comparisons.print_across(console(), sides.across)
        for one in compared:
            comparisons.print_comparison(console(), one)
    elif output is None:
        echo(text)
    else:
        write_whole(output, f"{text}\n")
        say(f"wrote {output}")
    if gate is not None:
        _judge(compared, gate)


def _share(text: str, option: str) -> float:
    """Read a per cent: `5%`, `5` or `2.5 %`.

    Raises:
        UsageError: It is none, or none from 0 to 1000.
    """
    match = _PER_CENT.fullmatch(text.strip())
    if match is None or not 0 <= float(match[1]) <= 1000:
        raise UsageError(f"{option} takes a per cent, not `{text}`", f"for example `{option} 5%`")
    return float(match[1]) / 100


def _paired(places: Sequence[str]) -> tuple[Sides, list[Pair]]:
    """Load the sides and pair their programs, each later side with the first one.

    Raises:
        InputError: A side cannot be read whole, two sides have no program in common, or one place has no versions.
    """
    from rooflens.model.compare.across import Sides, Unpaired
    from rooflens.model.compare.pairing import pair_programs
    from rooflens.report.versions import path_labels

    if len(places) == 1:
        return Sides(), list(_versions(places[0]))
    base, *heads = (_reports(place) for place in places)
    named = [shown(place) for place in places]
    labels = named if len(places) == 2 else path_labels(named)
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    for head, label in zip(heads, labels[1:], strict=True):
        pairing = pair_programs(base, head, (labels[0], label))
        pairs += pairing.pairs
        names = ("the base", "the head") if len(heads) == 1 else (f"{labels[0]}, and not {label},", label)
        found = zip(names, (pairing.only_base, pairing.only_head), strict=True)
        unpaired += [Unpaired(name, programs) for name, programs in found if programs]
    return Sides(unpaired=tuple(unpaired)), pairs


def _versions(place: str) -> Iterator[Pair]:
    """Pair each version of a program in one place with the first one.

    Raises:
        InputError: No program there has two versions.
    """
    from rooflens.model.compare.compare import Side
    from rooflens.model.compare.pairing import Pair, versions_of
    from rooflens.report.versions import path_labels

    programs = versions_of(_reports(place))
    if not programs:
        raise InputError(
            f"`{shown(place)}` holds no program in two versions (v1, v2 in the names of reports of one GPU)",
            "name the sides: `rooflens compare BASE HEAD`",
        )
    for program, versions in programs.items():
        labels = path_labels([reports[0].run.source for reports in versions])
        base, *heads = (Side(label, tuple(reports)) for label, reports in zip(labels, versions, strict=True))
        yield from (Pair(program, base, head) for head in heads)


def _compared(pairs: Sequence[Pair], threshold: float, *, anyway: bool) -> list[Compared]:
    """Compare the sides of each pair; where a program has several, its name says which.

    Raises:
        InputError: Two sides were not collected alike.
    """
    from rooflens.model.compare.compare import compare as compare_sides
    from rooflens.model.compare.gate import Compared
    from rooflens.model.compare.pairing import refusals, warnings

    several = Counter(pair.base.digests for pair in pairs)
    found = []
    for pair in pairs:
        name = _pair_name(pair) if several[pair.base.digests] > 1 else pair.program
        reasons = refusals(pair)
        if reasons and not anyway:
            raise InputError(f"{name}: {'; '.join(reasons)}", "--anyway compares all the same")
        notes = (*reasons, *warnings(pair), *_single(pair))
        found.append(Compared(name, compare_sides(pair.base, pair.head, threshold), notes))
    return found


def _pair_name(pair: Pair) -> str:
    """Name a pair of a program that has several: a program whose name says both sides already is named by them."""
    sides = f"{pair.base.label} -> {pair.head.label}"
    return sides if " -> " in pair.program else f"{pair.program}: {sides}"


def _across(pairs: Sequence[Pair], compared: Sequence[Compared]) -> Iterator[Across]:
    """Set the sides of each program that has more than two side by side."""
    from rooflens.model.compare.across import across

    found: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        found[pair.base.digests].append(i)
    for of in found.values():
        if len(of) > 1:
            names = dict.fromkeys(pairs[i].program for i in of)
            name = next(iter(names)) if len(names) == 1 else pairs[of[0]].base.label
            labels = (pairs[of[0]].base.label, *(pairs[i].head.label for i in of))
            yield across(name, labels, [compared[i].comparison for i in of])


def _single(pair: Pair) -> tuple[str, ...]:
    alone = [name for name, side in (("base", pair.base), ("head", pair.head)) if len(side.recordings) == 1]
    if not alone:
        return ()
    who = "base and head have one run each" if len(alone) == 2 else f"the {alone[0]} has one run"
    return (f"{who}, so that noise is not known",)


def _reports(place: str) -> list[AnalyzedReport]:
    """Load one side: reports, a store, or one run of a store; what cannot be read is no side to compare with.

    Raises:
        InputError: A report of the side cannot be read, or the store has no such run.
    """
    store, digest = _store_of(place)
    where = f"digest like '{digest}%'" if digest else None
    try:
        found = load_analyzed((place,) if store is None else (), store, where=where)
    except NothingChosenError:
        message = f"`{shown(store or '')}` holds no report whose digest begins with `{digest}`"
        raise InputError(message, "the table `runs` lists them") from None
    for source, error in found.failures:
        show_error(error, source)
    if found.failures:
        raise InputError(f"`{shown(place)}` cannot be read whole", "leave the damaged reports out")
    return list(found.reports)


def _store_of(given: str) -> tuple[str | None, str]:
    """Tell a store, and a report of one by the first digits of its digest, from reports and folders of them.

    The digest stands as `STORE/DIGEST` or, as in older stores, `STORE/runs/DIGEST.parquet`; an address is a store's.
    """
    place = Path(given)
    if "://" in given or _is_store(place):
        return given, ""
    folder = place.parent.parent if place.parent.name == "runs" else place.parent
    if not place.exists() and _DIGEST.fullmatch(place.stem) and _is_store(folder):
        return str(folder), place.stem
    return None, ""


def _is_store(folder: Path) -> bool:
    return (folder / MARKER).is_file() or any((folder / "runs").glob("*.parquet"))


def _text(compared: list[Compared], gate: Gate | None, style: str, sides: Sides) -> str | None:
    """Write the comparison in one of the formats for files; None for the terminal's table."""
    from rooflens.report.text import comparison as comparisons

    if style == "table":
        return None
    if style == "junit":
        return comparisons.to_junit(compared, gate)
    if style == "html":
        from rooflens.report.comparison.page import render_comparison

        return render_comparison(compared, gate, sides)
    return {"json": comparisons.to_json, "md": comparisons.to_markdown}[style](compared, gate, sides)


def _judge(compared: list[Compared], gate: Gate) -> None:
    """Exit with 5 where something became slower beyond the gate and beyond noise."""
    failures = gate.failures(compared)
    for line in failures:
        say(f"gate failed: {line}")
    for one in compared:
        reason = {"single": "a single run on a side", "unknown": "no total time on both sides"}.get(
            one.comparison.total.outcome(gate.fail_on)
        )
        if reason:
            say(f"note: {one.program}: {reason}, so that the gate cannot judge it")
    if failures:
        click.get_current_context().exit(GATE_FAILED)
