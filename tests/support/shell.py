"""Run the shell lines shown in the documentation, `rooflens` in this process and the rest in a shell."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from rooflens.cli import console
from rooflens.cli.group import main

SHELL = frozenset({"cat", "cd", "cp", "echo", "grep", "head", "ls", "mkdir", "mv", "sort", "tail", "wc"})
"""Programs that are run as they are."""
SET_UP = frozenset({"git", "make", "pip", "pytest", "source", ".venv/bin/pip"})
"""Programs that set rooflens up or build it: left alone, as other tests hold them."""
PLACEHOLDERS = {"NAME": "semi_discrete", "REPORT": "report.ncu-rep", "BEFORE": "base.ncu-rep", "AFTER": "head.ncu-rep"}
"""Words in capitals that stand for what is the reader's own."""


class Command(NamedTuple):
    """A typed line, and the output shown below it."""

    typed: str
    shown: str


def commands(code: str, *, prompted: bool) -> list[Command]:
    """Split a block into commands: with prompts, the lines below each are its output; without, each is a command."""
    joined = re.sub(r"\\\n\s*", " ", code)
    if not prompted:
        return [Command(line, "") for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    parts = re.split(r"^\$ ", joined, flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block begins with `$ `"
    return [Command(typed, shown) for typed, _, shown in (part.partition("\n") for part in parts[1:])]


def calls(typed: str) -> Iterator[list[str]]:
    """Yield every simple command of a line, without redirections, assignments and comments."""
    words: list[str] = []
    skip = False
    for word in [*_words(typed), ";"]:
        if skip:
            skip = False
        elif word in {">", ">>", "2>", "<"}:
            skip = True
        elif word in {"|", "&&", "||", ";"}:
            if words:
                yield words
            words = []
        elif words or not re.fullmatch(r"\w+=.*", word):
            words.append(word)


def unknown_option(arguments: list[str]) -> str | None:
    """Return the first option or command that rooflens does not have."""
    command: click.Command = main
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        found = command.get_command(click.Context(command), arguments[0])
        if found is None:
            return arguments[0]
        command, arguments = found, arguments[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return next((word for word in own if word.startswith("--") and word.partition("=")[0] not in known), None)


class Shell:
    """A folder in which lines are run in order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.exit_code = 0
        self.is_wide = False  # prints as on a terminal of 120 columns, else as for a pipe
        monkeypatch.setattr(console, "terminal_width", lambda: 120 if self.is_wide else None)

    def run(self, typed: str) -> str:
        """Run a line; return what it prints, stdout and stderr together.

        Raises:
            AssertionError: The documentation may not call a program in it without a mark.
        """
        output, printed = "", ""
        words: list[str] = []
        target = None
        listing = [*_words(typed), ";"]
        for position, word in enumerate(listing):
            if word in {">", ">>"}:
                target = self.folder / listing[position + 1]
            elif word in {"|", "&&", "||", ";"}:
                printed = self._call([PLACEHOLDERS.get(each, each) for each in words], printed)
                words = []
                if target:
                    target.write_text(printed, encoding="utf-8")
                    printed, target = "", None
                if word != "|":
                    output, printed = output + printed, ""
                if (word == "&&" and self.exit_code) or (word == "||" and not self.exit_code):
                    break
            elif not (position and listing[position - 1] in {">", ">>"}):
                words.append(word)
        return output

    def _call(self, words: list[str], piped: str) -> str:
        if words[:3] in (["python", "-m", "rooflens"], ["python3", "-m", "rooflens"]):
            words = words[2:]
        if words == ["echo", "$?"]:
            code, self.exit_code = self.exit_code, 0
            return f"{code}\n"
        if words[0] == "rooflens":
            done = CliRunner().invoke(main, words[1:], input=piped or None, prog_name="rooflens")
            if done.exception and not isinstance(done.exception, SystemExit):
                raise done.exception
            self.exit_code = done.exit_code
            return done.output
        if words[0] in SET_UP:
            return ""
        assert words[0] in SHELL, f"`{words[0]}` is not run here: mark the block `gpu` or `elsewhere`"
        ran = subprocess.run(words, input=piped, capture_output=True, text=True, cwd=self.folder, check=False)  # noqa: S603
        self.exit_code = ran.returncode
        return ran.stdout + ran.stderr


def widen(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Let rooflens print as on a terminal of this width; otherwise it prints as for a pipe."""
    monkeypatch.setattr(console, "terminal_width", lambda: columns)


def as_shown(shown: str, printed: str) -> bool:
    """Tell whether a text matches the documentation, where a line `...` is any lines, and `...` in a line any text."""
    pattern = "".join(_pattern(line) for line in shown.strip("\n").splitlines())
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


def _pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    return r"[^\n]*".join(map(re.escape, line.rstrip().split("..."))) + r"[ ]*\n"


def _words(typed: str) -> list[str]:
    lexer = shlex.shlex(typed, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return list(lexer)
