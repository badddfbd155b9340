"""The command `compare`: two sides of one program, before and after, and a gate for CI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import check_output, console, show_error
from rooflens.cli.loading import load_analyzed
from rooflens.errors import InputError, UsageError
from rooflens.files import write_whole
from rooflens.format import printable
from rooflens.model.compare.gate import Gate

if TYPE_CHECKING:
    from rooflens.model.compare.gate import Compared
    from rooflens.model.compare.pairing import Pair
    from rooflens.model.records import AnalyzedReport

FORMATS = ("table", "json", "md", "html", "junit")
GATE_FAILED = 5
_PER_CENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")


@click.command()
@click.argument("base")
@click.argument("head")
@click.option("--format", "style", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file, not to stdout.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--fail-on", metavar="PER_CENT", help="Exit with 5 when GPU time grew by more than this, beyond noise.")
@click.option("--per-kernel", is_flag=True, help="With --fail-on: judge every kernel, not only the total.")
@click.option("--threshold", metavar="PER_CENT", default="3%", show_default=True, help="Smaller changes count as none.")
@click.option("--anyway", is_flag=True, help="Compare even what was not collected alike.")
def compare(
    base: str,
    head: str,
    *,
    style: str,
    output: Path | None,
    force: bool,
    fail_on: str | None,
    per_kernel: bool,
    threshold: str,
    anyway: bool,
) -> None:
    """Show what became of each kernel between two recordings of a program.

    BASE and HEAD are a report, a folder of reports, a store, or a run of one (STORE/runs/DIGEST.parquet). Several
    reports of one program on a side are taken as repeated recordings: they give the noise, without which nothing is
    called slower.
    """
    from rooflens.report.text import comparison as comparisons

    if per_kernel and fail_on is None:
        raise UsageError("--per-kernel goes with --fail-on", "for example `--fail-on 5% --per-kernel`")
    check_output(output, style, "compare.html", force=force)
    gate = Gate(_share(fail_on, "--fail-on"), per_kernel) if fail_on is not None else None
    smallest = _share(threshold, "--threshold")
    # What fails a gate is a change: no sentence may call it none.
    smallest = min(smallest, gate.fail_on) if gate else smallest
    compared = _compared(base, head, smallest, anyway=anyway)
    text = _text(compared, gate, style)
    if text is None:
        for one in compared:
            comparisons.print_comparison(console(), one)
    elif output is None:
        click.echo(text)
    else:
        write_whole(output, f"{text}\n")
        click.echo(f"wrote {output}", err=True)
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


def _compared(base: str, head: str, threshold: float, *, anyway: bool) -> list[Compared]:
    """Load both sides, pair their programs and compare them.

    Raises:
        InputError: A side cannot be read whole, the sides have no program in common, or were not collected alike.
    """
    from rooflens.model.compare.compare import compare as compare_sides
    from rooflens.model.compare.gate import Compared
    from rooflens.model.compare.pairing import pair_programs, refusals, warnings

    pairing = pair_programs(_reports(base), _reports(head), (base, head))
    for side, names in (("base", pairing.only_base), ("head", pairing.only_head)):
        if names:
            click.echo(printable(f"warning: only the {side} has: {', '.join(names)}"), err=True)
    found = []
    for pair in pairing.pairs:
        reasons = refusals(pair)
        if reasons and not anyway:
            raise InputError(f"{pair.program}: {'; '.join(reasons)}", "--anyway compares all the same")
        notes = (*reasons, *warnings(pair), *_single(pair))
        found.append(Compared(pair.program, compare_sides(pair.base, pair.head, threshold), notes))
    return found


def _single(pair: Pair) -> tuple[str, ...]:
    alone = [name for name, side in (("base", pair.base), ("head", pair.head)) if len(side.recordings) == 1]
    if not alone:
        return ()
    who = "base and head have one recording each" if len(alone) == 2 else f"the {alone[0]} has one recording"
    return (f"single sample: {who}, so that noise is not known",)


def _reports(place: str) -> list[AnalyzedReport]:
    """Load one side: reports, a store, or one run of a store; what cannot be read is no side to compare with.

    Raises:
        InputError: A report of the side cannot be read, or the store has no such run.
    """
    store, digest = _store_of(Path(place))
    found = load_analyzed((place,) if store is None else (), store)
    for source, error in found.failures:
        show_error(error, source)
    if found.failures:
        raise InputError(f"`{place}` cannot be read whole", "leave the damaged reports out")
    return [report for report in found.reports if digest in {None, report.run.digest}]


def _store_of(place: Path) -> tuple[Path | None, str | None]:
    """Tell a store, and a run of one (`STORE/runs/DIGEST.parquet`), from reports and folders of them."""
    if place.suffix == ".parquet" and place.parent.name == "runs" and place.is_file():
        return place.parent.parent, place.stem
    return (place, None) if any((place / "runs").glob("*.parquet")) else (None, None)


def _text(compared: list[Compared], gate: Gate | None, style: str) -> str | None:
    """Write the comparison in one of the formats for files; None for the terminal's table."""
    from rooflens.report.text import comparison as comparisons

    if style == "table":
        return None
    writers = {"json": comparisons.to_json, "md": comparisons.to_markdown, "junit": comparisons.to_junit}
    if style == "html":
        from rooflens.report.comparison.page import render_comparison

        return render_comparison(compared, gate)
    return writers[style](compared, gate)


def _judge(compared: list[Compared], gate: Gate) -> None:
    """Exit with 5 where something became slower beyond the gate and beyond noise."""
    failures = gate.failures(compared)
    for line in failures:
        click.echo(printable(f"gate failed: {line}"), err=True)
    for one in compared:
        reason = {"single": "single sample", "unknown": "no total time on both sides"}.get(
            one.comparison.total.outcome(gate.fail_on)
        )
        if reason:
            click.echo(printable(f"note: {one.program}: {reason}, so that the gate cannot judge it"), err=True)
    if failures:
        click.get_current_context().exit(GATE_FAILED)
