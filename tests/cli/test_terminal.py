"""Every command on terminals of 80, 100 and 120 columns: no number is cut, rows differ, prose wraps at words."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import shutil
import sys
import termios
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from subprocess import Popen

import pytest
from click.testing import CliRunner
from support.mcp_server import within
from wcwidth import wcswidth

from rooflens.analyzing import analyze_paths
from rooflens.cli import console
from rooflens.cli.group import COMMANDS, main
from rooflens.model.summary import summarize
from rooflens.report.about import columns_document
from rooflens.report.document import Column, Document, Table, Words, for_text, spans
from rooflens.report.kernel.document import KernelView, kernel_document
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.text.hotspots import hotspots_document, listings
from rooflens.report.writers import terminal
from rooflens.report.writers.terminal import to_terminal

WIDTHS = (80, 100, 120)
WIDE = 400
MOST_BYTES = 500_000
REPORTS = (
    "published/GPU_workshop__MW_Baseline.ncu-rep",
    "published/self-join-MiSTIC__profileHIGGS.out.ncu-rep",
    "published/cutlass__384.ncu-rep",
    "published/KernelBench__matmul_kernel.ncu-rep",
    "published/speedy_scan__profile.ncu-rep",
    "synthetic/attention.synthetic.ncu-rep",
)
OF_EACH = ("analyze", "analyze --launches", "explain", "hotspots", "hotspots --by sass", "metrics --report")
OF_ALL = ("analyze",)
BOTH = "published/GPU_workshop__MW_Baseline.ncu-rep published/GPU_workshop__MW_DivToMult.ncu-rep"
OTHERS = (
    "",
    f"compare {BOTH}",
    f"compare {BOTH} --fail-on 5%",
    f"analyze {BOTH} --columns dram_share,flop_total,verdict_sentence,flags",
    "report published/cutlass__384.ncu-rep -o page.md --table --force",
    f"ingest synthetic {BOTH} --store runs",
    "compare runs",
    "compare runs --kernel x_279",
    "analyze --store runs --top 3",
    "step.synthetic.json",
    "step.synthetic.json step.synthetic.json synthetic/attention.synthetic.ncu-rep",
    "analyze step.synthetic.json --columns time,floor,code --top 3",
    "predict gemm --m 1 --n 128:8192:x4 --k n --gpu b200",
    "predict decode --tensor-parallel 1,2,4,8 --gpu h100-sxm",
    "predict attention-flash --length 8192 --width 32 --gpu a100-sxm4-80gb",
    "gpus",
    "gpus h100-sxm",
    "metrics --chip gh100",
    "metrics --chip gb203 --findings",
    "workloads",
    "workloads gemm",
    "about",
    "about small_grid",
    "about columns",
    "about smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "doctor",
    "analyze nosuch.ncu-rep",
    "report published/cutlass__384.ncu-rep -o missing/page.html",
    "-h",
    *(f"{command} -h" for command in COMMANDS),
)
"""Commands that read no report, or some reports; their error messages; all help texts."""

OF_VERSIONS = re.compile("GPU_workshop__MW_")
"""Column heads that are labels of reports."""

NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
CUT = re.compile(r"\d…|…\d")
MARK = re.compile(r" #\d+(?= |$)", re.MULTILINE)
TORN = re.compile(r"\d\n\s*(?:%|[kMGTPEmnµ]?(?:s|B|B/s|FLOP/s|Hz))(?:[ ,.:;)]|$)", re.MULTILINE)
"""A number whose unit is on the next line."""


@pytest.fixture
def here(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with the reports, on a terminal."""
    for name in ("published", "synthetic"):
        (tmp_path / name).symlink_to(fixtures / name)
    (tmp_path / "step.synthetic.json").symlink_to(fixtures.parent / "examples" / "step.synthetic.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    for command in ("loading", "commands.ingest"):
        monkeypatch.setattr(f"rooflens.cli.{command}.progress", lambda *_: nullcontext(lambda _: None))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Document]:
    """Return the documents shown by commands."""
    found: list[Document] = []

    def write(document: Document, width: int | None, *, colour: bool) -> str:
        found.append(document)
        return to_terminal(document, width, colour=colour)

    monkeypatch.setattr(terminal, "to_terminal", write)
    return found


@pytest.mark.usefixtures("here")
def test_every_command_on_every_terminal(shown: list[Document], monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal, no number is cut, rows stay different, prose wraps at words."""
    runs = [f"{command} {report}" for command in OF_EACH for report in REPORTS]
    runs += [f"{command} {' '.join(REPORTS)}" for command in OF_ALL]
    offenders, heads = [], set()
    free = shutil.disk_usage(".")  # which other tests change between two runs of `doctor`
    monkeypatch.setattr("rooflens.collect.doctor.shutil.disk_usage", lambda _: free)
    assert CliRunner().invoke(main, ["ingest", "published", "synthetic", "--store", "runs"]).exit_code == 0
    for command in (*runs, *OTHERS):
        shown.clear()
        text = run(command, 80, monkeypatch)
        offenders += [f"{command}: {what}" for document in shown for what in of_document(document)]
        heads |= {column.heading for document in shown for column in columns_of(document) if not column.page}
        whole = run(command, WIDE, monkeypatch) if command in OTHERS else text
        offenders += [f"{command}: {what}" for what in wrong(text, whole, 80)]
    assert not offenders, "\n".join(dict.fromkeys(offenders))
    unknown = {head for head in heads if not OF_VERSIONS.match(head) and not columns_document(head)}
    assert unknown == {"title", "column", "also"}


def test_kernels_of_the_corpus_on_every_terminal(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of some real kernels also keep whole numbers and distinct rows."""
    monkeypatch.chdir(corpus)
    reports = analyze_paths([path for path in sorted(Path().glob("*.ncu-rep")) if path.stat().st_size < MOST_BYTES])
    analyses = reports.analyses
    assert len(analyses) > 30
    documents = [kernels_document(summarize(analyses)), hotspots_document(listings(analyses, None, 5))]
    documents += [
        kernel_document(KernelView(report, report.analyses[0])) for report in reports.reports if report.analyses
    ]
    offenders = [what for document in documents for what in of_document(document)]
    assert not offenders, "\n".join(dict.fromkeys(offenders))


def run(command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a command on a terminal of the given width; return its output."""
    monkeypatch.setenv("COLUMNS", str(width))
    done = CliRunner().invoke(main, command.split())
    assert done.exception is None or isinstance(done.exception, SystemExit), f"{command}: {done.exception!r}"
    return done.output


def of_document(document: Document) -> Iterator[str]:
    """List the faults of a document on terminals of each width."""
    whole = to_terminal(document, WIDE)
    for width in WIDTHS:
        for what in (*wrong(to_terminal(document, width), whole, width), *alike(document, width)):
            yield f"{width}: {what}"


def columns_of(document: Document) -> list[Column]:
    """Return the columns of all tables."""
    return [column for table in tables_of(document) for column in table.columns]


def tables_of(document: Document) -> Iterator[Table]:
    """Yield all tables that a terminal shows."""
    return (block for block in for_text(document) if isinstance(block, Table))


def wrong(text: str, whole: str, width: int) -> Iterator[str]:
    """List lines that are too wide, and numbers that differ from a wide terminal's."""
    numbers = set(NUMBER.findall(whole))
    for line in text.splitlines():
        if wcswidth(line) > width:
            yield f"wider: {line}"
        if CUT.search(line) or not numbers.issuperset(NUMBER.findall(line)):
            yield f"cut number: {line}"
    if torn := TORN.search(text):
        yield f"a number without its unit: {torn[0]}"


def alike(document: Document, width: int) -> Iterator[str]:
    """List different rows that look the same, and prose that does not wrap at words."""
    prose = tuple(block for block in for_text(document) if not isinstance(block, Table))
    words = to_terminal(prose).split()
    short = [word for word in words if len(word) < width - 6]
    if not Counter(to_terminal(prose, width).split()) >= Counter(short):
        yield "prose is broken within words"
    for table in tables_of(document):
        marked: list[tuple[Words, ...]] = [
            ((*spans(first), f" #{i}"), *rest) for i, (first, *rest) in enumerate(table.rows)
        ]
        text = to_terminal((Table(table.columns, tuple(marked)),), width)
        rows = [
            " ".join(MARK.sub("", row).split())
            for row in re.split(r"^(?=.*? #\d+(?: |$))", text, flags=re.MULTILINE)[1:]
        ]
        wanted = {tuple("".join(span.text for span in spans(cell)) for cell in row) for row in table.rows}
        if len(rows) == len(table.rows) and len(set(rows)) < len(wanted):
            yield f"rows look the same: {[row for row, times in Counter(rows).items() if times > 1]}"


def test_a_real_terminal(fixtures: Path, tmp_path: Path) -> None:
    """On 80 columns `explain` prints headings and tables, no Markdown, and no wider line."""
    report = str(fixtures / REPORTS[0])
    for arguments, wanted in (
        (["explain", report], "\x1b[1mWhat to try, in this order\x1b[0m"),
        (["hotspots", report], "miniWeather_mpi_openacc.F90:288"),
    ):
        text = on_terminal([sys.executable, "-m", "rooflens", *arguments], 80, tmp_path)
        assert wanted in text
        last = re.sub("(?m)^.*(?:\r|\x1b\\[2K)(?!\n)", "", text.replace("\r\n", "\n"))  # drop overwritten lines
        plain = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", last)
        assert max(map(wcswidth, plain.splitlines())) <= 80
        assert not CUT.search(plain)
        assert "**" not in plain
        assert "| " not in plain


def on_terminal(argv: list[str], width: int, folder: Path) -> str:
    """Run a program on a terminal of the given width; return everything that it writes."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, width))
    environment = {name: text for name, text in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    environment |= {"TERM": "xterm"}
    with Popen(argv, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment) as done:  # noqa: S603 - ours
        os.close(slave)
        written = b""
        with suppress(OSError):  # Linux raises it when the other end is closed
            while some := os.read(master, 1 << 16):
                written += some
    os.close(master)
    assert done.returncode == 0, written
    return written.decode()


@pytest.mark.usefixtures("here")
def test_explain_is_markdown_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain` looks like other commands on a terminal; `--format md` writes Markdown there too."""
    shown, written = (run(f"explain {REPORTS[0]}{more}", 80, monkeypatch) for more in ("", " --format md"))
    assert "\nWhere\nsamples  waits for" in shown
    assert "\n## Where\n\n| samples | waits for |" in written


@pytest.mark.usefixtures("gpu_box")
def test_a_dry_run_fits_and_is_still_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal ncu's command is broken into lines, with the same arguments for a shell."""
    command = "collect --detail standard --dry-run -- ./train --name"
    whole = CliRunner().invoke(main, [*command.split(), "two words"]).stdout
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    text = CliRunner().invoke(main, [*command.split(), "two words"]).stdout
    assert [line for line in text.splitlines() if len(line) > 80 and len(line.removesuffix(" \\").split()) > 1] == []
    assert shlex.split(text.replace("\\\n", "")) == shlex.split(whole)


def test_progress_is_shown_where_reading_takes_over_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar comes once the time is over, moves by parts of a file, and goes; before that nothing is written."""
    written = Written()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(console, "_SHORT_SECONDS", 0.0)
    with console.progress(2, "timelines") as move:
        move(0.5)
        assert within(lambda: "reading 2 timelines" in written.getvalue() and "25%" in written.getvalue()) is not None
    shown = len(written.getvalue())
    monkeypatch.setattr(console, "_SHORT_SECONDS", 3600.0)
    with console.progress(1) as move:
        move(1.0)
    assert len(written.getvalue()) == shown


class Written(io.StringIO):
    """What a terminal got."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (f"report {REPORTS[0]} -o missing/page.html", 2),
        (f"compare {BOTH} -o missing/page.html", 2),
        ("predict decode -o missing/page.csv", 2),
        ("collect --chip gh100 -o missing/a.ncu-rep -- ./train", 2),
        (f"ingest {REPORTS[0]} --store missing/runs", 1),
    ],
)
def test_a_missing_folder_is_not_made_in_silence(command: str, exit_code: int) -> None:
    """A missing folder for an output is an error; the store itself may be new."""
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == exit_code
    assert "error: there is no folder" in done.stderr
    assert "missing`" in done.stderr
    assert "hint: make it first" in done.stderr
    assert not Path("missing").exists()
    assert CliRunner().invoke(main, ["ingest", REPORTS[0], "--store", "missing"]).exit_code == 0
