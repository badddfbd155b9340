"""The text of a C++ source file: its statements, the scopes around them, and what stands on a line.

A scanner, not a parser: comments and literals are blanked, and statements end at `;`, `{` and `}` outside of brackets.
What it does not understand it answers with None.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

_BLANKED = re.compile(
    r"//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)"
    r'|R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n]){1,8}\'',
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_OPENING, _CLOSING = "([", ")]"
_C_LIKE = (".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".cl", ".hip")
_NOTHING_ON_A_LINE = re.compile(r"[\s]*\Z")


class Statement(Struct, frozen=True):
    """A statement, or the head of a scope.

    Attributes:
        start, end: Its place in the text, without the sign that ends it.
        closes: The sign that ends it: `;`, `{`, `}`, or `#` of a directive.
        scope: The scope that it stands in, by its number; -1 for the file.
    """

    start: int
    end: int
    closes: str
    scope: int


class Scope(Struct):
    """What stands between two braces.

    Attributes:
        head: The statement before its opening brace.
        start, end: From that brace to the closing one.
        parent: The scope around it, by its number; -1 for the file.
    """

    head: Statement
    start: int
    end: int
    parent: int


def is_c_like(file: str) -> bool:
    """Return whether a file is C++, and not Python as Triton's kernels are, Fortran or Julia."""
    return file.lower().endswith(_C_LIKE)


class SourceText:
    """A file's text.

    Attributes:
        text: As it is.
        clean: The same length, with comments and literals blanked.
    """

    def __init__(self, text: str) -> None:
        """Take the text."""
        self.text = text
        self.clean = _BLANKED.sub(_spaces, text)
        self._starts = [0, *(found.end() for found in re.finditer(r"\n", text))]

    def line_of(self, at: int) -> int:
        """Return the line, from 1, of a place in the text."""
        return bisect_right(self._starts, at)

    def span_of(self, line: int) -> tuple[int, int] | None:
        """Return where a line begins and ends; None if there is no such line."""
        if not 0 < line <= len(self._starts):
            return None
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self._starts[line - 1], end

    def has_code(self, line: int) -> bool:
        """Return whether a line holds more than blanks and comments."""
        span = self.span_of(line)
        return span is not None and not _NOTHING_ON_A_LINE.match(self.clean[slice(*span)])

    def has_text(self, line: int) -> bool:
        """Return whether a line holds more than blanks."""
        span = self.span_of(line)
        return span is not None and bool(self.text[slice(*span)].strip())

    @cached_property
    def _parsed(self) -> tuple[list[Statement], list[Scope]]:
        return _Scanner(self.clean).run()

    @property
    def statements(self) -> list[Statement]:
        """Statements in their order."""
        return self._parsed[0]

    @property
    def scopes(self) -> list[Scope]:
        """Scopes in the order of their opening braces."""
        return self._parsed[1]

    def code(self, statement: Statement) -> str:
        """Return the text of a statement, comments blanked, without the sign that ends it."""
        return self.clean[statement.start : statement.end]

    def statement_at(self, line: int) -> Statement | None:
        """Return the statement that a line is part of: of several the longest, of none the one that goes on over it."""
        span = self.span_of(line)
        if span is None:
            return None
        start, end = span
        here = [one for one in self.statements if one.start < end and one.end > start and one.closes != "#"]
        return max(here, key=lambda one: min(one.end, end) - max(one.start, start), default=None)

    def around(self, statement: Statement) -> Iterator[Scope]:
        """Yield the scopes around a statement, the innermost first."""
        yield from (self.scopes[at] for at in self.scopes_around(statement))

    def scopes_around(self, statement: Statement) -> Iterator[int]:
        """Yield the numbers of the scopes around a statement, the innermost first."""
        at = statement.scope
        while at >= 0:
            yield at
            at = self.scopes[at].parent

    def function_at(self, at: int) -> Scope | None:
        """Return the outermost function body, or lambda, around a place: the scope whose head takes parameters."""
        found = None
        for scope in self.scopes:
            if scope.start > at:
                break
            if at < scope.end and is_function(self.code(scope.head)):
                found = found or scope
        return found

    def kernel(self, name: str) -> Scope | None:
        """Return the body of a kernel by its function's name; None if it is not defined once."""
        found = [one for one in self.scopes if name_of_function(self.code(one.head)) == name]
        kernels = [one for one in found if "__global__" in self.code(one.head)] or found
        return kernels[0] if len(kernels) == 1 else None


_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_FUNCTION = frozenset({"if", "for", "while", "switch", "catch", "return", "else", "do", "sizeof"})
_ATTRIBUTES = frozenset({"__launch_bounds__", "__attribute__", "__declspec", "alignas", "__align__", "decltype"})


def name_of_function(head: str) -> str | None:
    """Return the name of the function that a head of a scope defines; None for other scopes."""
    for found in _FUNCTION.finditer(head):
        if found[1] in _NO_FUNCTION or "=" in head[: found.start()].replace("==", ""):
            return None
        if found[1] not in _ATTRIBUTES:
            return found[1]
    return None


def is_function(head: str) -> bool:
    """Return whether the head of a scope is that of a function."""
    return name_of_function(head) is not None


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r"[^\r\n]", " ", match[0])


_MARK = re.compile(r"[;{}()\[\]]|^[ \t]*#", re.MULTILINE)
_BEFORE_AN_INITIALIZER = ("=", ",", "return")


class _Scanner:
    """Divides a text into statements and scopes."""

    def __init__(self, clean: str) -> None:
        self.statements: list[Statement] = []
        self.scopes: list[Scope] = []
        self._clean = clean
        self._open: list[int] = []
        self._start = 0
        self._brackets = self._braces = 0

    def run(self) -> tuple[list[Statement], list[Scope]]:
        directives = {found.start(): found.end() for found in _DIRECTIVE.finditer(self._clean)}
        over = 0
        for found in _MARK.finditer(self._clean):
            at, sign = found.start(), found[0]
            if at < over:
                continue
            if sign.endswith("#"):
                over = directives.get(at, found.end())
                if not self._clean[self._start : at].strip():  # else it stands within a statement
                    self._add_statement(over, "#")
            elif sign in _OPENING or sign in _CLOSING:
                self._brackets = max(0, self._brackets + (1 if sign in _OPENING else -1))
            elif sign == "{":
                self._open_brace(at)
            elif sign == "}":
                self._closed(at)
            elif not self._brackets and not self._braces:
                self._add_statement(at, ";")
        return self.statements, self.scopes

    def _open_brace(self, at: int) -> None:
        before = self._clean[self._start : at].rstrip()
        if self._brackets or self._braces or before.endswith(_BEFORE_AN_INITIALIZER):
            self._braces += 1  # of an initializer, or of a lambda among arguments
            return
        parent = self._open[-1] if self._open else -1
        self.scopes.append(Scope(self._add_statement(at, "{"), at, len(self._clean), parent))
        self._open.append(len(self.scopes) - 1)

    def _closed(self, at: int) -> None:
        if self._braces:
            self._braces -= 1
            return
        self._add_statement(at, "}")
        self._brackets = 0
        if self._open:
            self.scopes[self._open.pop()].end = at + 1

    def _add_statement(self, end: int, closes: str) -> Statement:
        """Add what stands since the last statement, without the blanks around it."""
        piece = self._clean[self._start : end]
        begin, last = end - len(piece.lstrip()), self._start + len(piece.rstrip())
        made = Statement(begin, max(begin, last), closes, self._open[-1] if self._open else -1)
        if piece.strip():
            self.statements.append(made)
        self._start = end + (closes != "#")
        return made
