"""What commands print: data on stdout; errors, progress and the last line on stderr.

Without click, where only words are printed: `collect` and `doctor` also run where nothing is installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rooflens.errors import UsageError
from rooflens.format import count, harmless, printable
from rooflens.writing.outputs import check_folder, check_free, format_of, refuse_report, write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from click._termui_impl import ProgressBar

    from rooflens.analyzing import Analyzed
    from rooflens.errors import RooflensError
    from rooflens.ingest.load import Ingested
    from rooflens.model.records import Analysis
    from rooflens.report.document import Document
    from rooflens.writing.answers import Answer


_SHORT_SECONDS = 1.0
"""Nobody wonders about a command that ends by then."""

_PROGRESS_STEPS = 100
"""Parts of a file by which its bar moves."""

_CLEARED = "\r\x1b[2K\x1b[?25h"
"""Clears the line of a terminal, and shows its cursor again."""

TABLE = "table"
"""The only format for terminals; the others are texts that may go into a file."""


def echo(text: str, *, nl: bool = True) -> None:
    """Print data of any origin to stdout, without control characters."""
    _write(harmless(text), sys.stdout, nl=nl)


def _write(text: str, stream: TextIO, *, nl: bool = True) -> None:
    stream.write(f"{text}\n" if nl else text)
    stream.flush()


def echo_command(argv: Sequence[str]) -> None:
    """Print a command; on a terminal it is broken into lines that a shell joins again."""
    width = terminal_width()
    if width is None:
        echo(shlex.join(argv))
        return
    lines = [""]
    for word in map(shlex.quote, argv):
        rest = f"{lines[-1]} {word}" if lines[-1] else word
        if len(rest) > width - 2 and lines[-1]:
            lines[-1] += " \\"
            rest = f"  {word}"
        else:
            lines.pop()
        while len(rest) > width - 1 and (end := rest.rfind(",", 0, width - 1) + 1) and "'" not in rest:
            lines.append(f"{rest[:end]}\\")
            rest = rest[end:]
        lines.append(rest)
    echo("\n".join(lines))


def say(line: str) -> None:
    """Print one line to stderr; no name can break it, only the terminal's width."""
    text = printable(line)
    if sys.stderr.isatty():
        from rooflens.report.writers.terminal import wrapped

        text = "\n".join(wrapped(text, shutil.get_terminal_size().columns, hang=2))
    _write(text, sys.stderr)


def show_error(error: RooflensError, about: str = "") -> None:
    """Print an error and its hint to stderr."""
    line = f"error: {f'{about}: ' if about else ''}{error}"
    say(line)
    if error.hint:
        _write("", sys.stderr)
        say(f"hint: {error.hint}")


@contextmanager
def progress(total: int, what: str = "reports") -> Iterator[Callable[[float], None]]:
    """Show a progress bar on stderr while files are read for over a second; nothing if stderr is no terminal.

    Args:
        total: How many files.
        what: What they are.

    Yields:
        What moves the bar, by whole files or by parts of one.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = _Bar(total, what)
    late = threading.Timer(_SHORT_SECONDS, bar.show)
    late.daemon = True
    late.start()
    try:
        yield bar.move
    finally:
        late.cancel()
        late.join()
        bar.hide()


class _Bar:
    """A progress bar, which most commands end too soon to need."""

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._done = 0.0
        self._shown: ProgressBar[int] | None = None

    def show(self) -> None:
        """Show it."""
        import click

        amount = f"{self._total:,} {self._what}" if self._total > 1 else self._what.removesuffix("s")
        bar = click.progressbar(
            length=self._total * _PROGRESS_STEPS,
            label=f"reading {amount}",
            file=sys.stderr,
            show_eta=False,
            show_percent=True,
        )
        bar.render_progress()
        self._shown = bar
        self.move(0)

    def move(self, by: float) -> None:
        """Advance the progress line by `by` files."""
        self._done += by
        if self._shown is not None:
            self._shown.update(round(self._done * _PROGRESS_STEPS) - self._shown.pos)

    def hide(self) -> None:
        """Erase the progress line."""
        if self._shown is not None:
            _write(_CLEARED, sys.stderr, nl=False)


def show_failures(read: Ingested | Analyzed) -> None:
    """Name every report that could not be read."""
    for source, error in read.failures:
        show_error(error, source)


def finish(read: Ingested | Analyzed, last_line: str) -> None:
    """Name every report that could not be read; print the last line; set the exit code."""
    show_failures(read)
    if read.failures:
        lost = sum(error.report_count or 0 for _, error in read.failures)
        untold = sum(error.report_count is None for _, error in read.failures)
        more = [f"all in {count(untold, 'file')} of the store"] if untold else []
        told = [f"{lost} of {count(lost + read.report_count + read.skipped_count, 'report')}"] if lost else []
        if told or more:
            say(f"{' and '.join((*told, *more))} could not be read")
    if last_line:
        say(last_line)
    if read.failures:
        import click

        click.get_current_context().exit(1)


def show_bugs(analyses: Iterable[Analysis]) -> None:
    """Name every kernel that is left out because rooflens failed on it."""
    from rooflens.model.failed import is_bug

    for kernel in (analysis.kernel for analysis in analyses):
        if is_bug(kernel):
            say(f"warning: result {kernel.index} of {kernel.source} is left out: {kernel.status_reason}")


def terminal_width() -> int | None:
    """Return the width of the terminal on stdout; None if it is no terminal, so that lines stay whole for `grep`."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(document: Document) -> None:
    """Print a document on stdout."""
    from rooflens.report.writers.terminal import to_terminal

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    _write(to_terminal(document, terminal_width(), colour=colour), sys.stdout, nl=False)


def with_output(formats: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command's options for what to write and where: `style`, `output` and `force`."""
    import click

    def command(function: Callable[..., None]) -> Callable[..., None]:
        for option in (
            click.option("--force", is_flag=True, help="Overwrite an existing file."),
            click.option(
                "-o",
                "--output",
                type=click.Path(path_type=Path, dir_okay=False),
                help="Write to a file instead of stdout.",
            ),
            click.option(
                "--format",
                "style",
                type=click.Choice(formats),
                help="What to write; by default the table, or the format of the file's extension.",
            ),
        ):
            function = option(function)
        return function

    return command


def deliver(answer: Answer, style: str, output: Path | None = None) -> None:
    """Show an answer on the terminal, print it in a format, or write it to a file and report that."""
    if style == TABLE:
        show(answer.shown())
        for line in answer.remarks():
            say(line)
    elif output is None:
        for part in answer.parts(style):
            echo(part, nl=False)
    else:
        write_output(output, answer.text(style))
        say(f"wrote {output}")


def check_output(output: Path | None, style: str | None, formats: Sequence[str], page: str, *, force: bool) -> str:
    """Find the format; refuse a page without a file, a table in a file, and a file that must not be overwritten.

    Args:
        output: The file to write; None for stdout.
        style: Value of --format; None for the table on stdout, or the format of the file's ending.
        formats: Formats that the command can write.
        page: Example name of a page, for the hint.
        force: Whether to overwrite a file.

    Returns:
        The format, one of `formats`.

    Raises:
        UsageError: Output and format do not fit together, or the file must not be overwritten.
    """
    if style != TABLE:
        style = format_of(output, style, formats) if output is not None else style or TABLE
    if output is None and style == "html":
        raise UsageError("a page needs a file", f"name it with -o, for example -o {page}")
    if output is not None and style == TABLE:
        raise UsageError("a table is for the terminal", "choose another --format for a file, for example json")
    if output is not None:
        refuse_report(output)
        check_folder(output)
        check_free(output, force=force)
    return style
