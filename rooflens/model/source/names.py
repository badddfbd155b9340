"""What names of a source file stand for where a statement stands: macros, constants, template arguments, variables.

A name is looked for as a reader does: among the variables of its function that were set before, then among constants
and macros. A parameter of the kernel is the same in all threads; more is not known of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from rooflens.model.records import Kernel
from rooflens.model.source.expressions import OPEN, Names, UnknownError, Value, apply, evaluate, parse
from rooflens.model.source.text import Scope, SourceText, Statement, name_of_function

_DEFINE = re.compile(r"\s*#\s*define\s+([A-Za-z_]\w*)(\([^)]*\))?[ \t]*(.*)", re.DOTALL)
_CONSTANT = re.compile(
    r"^(?:(?:static|inline|extern|__device__|__constant__)\s+)*(?:constexpr|const)\s+[\w:\s]*?\b([A-Za-z_]\w*)\s*=(?!=)(.*)",
    re.DOTALL,
)
_ENUMERATOR = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\w+)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MOST_EXPANDED = 4_000
_MOST_DEPTH = 12
_MOST_ROUNDS = 4096
_AXES = "xyz"
WARP_THREADS = 32


class Macro(Struct, frozen=True):
    """A macro; `parameters` is None where it takes none."""

    parameters: tuple[str, ...] | None
    body: str


class Definitions:
    """Macros, constants and small functions of a file."""

    def __init__(self, source: SourceText) -> None:
        """Find them."""
        self.source = source
        self.macros: dict[str, Macro] = {}
        self.constants: dict[str, str] = {}
        for one in source.statements:
            code = source.code(one)
            if one.closes == "#":
                self._define(code)
            elif (found := _CONSTANT.match(code)) is not None and one.scope < 0:
                self.constants.setdefault(found[1], found[2])
            elif one.closes == "}" and one.scope >= 0 and source.code(source.scopes[one.scope].head).startswith("enum"):
                self.constants |= dict(_ENUMERATOR.findall(code))

    def _define(self, code: str) -> None:
        found = _DEFINE.match(code.replace("\\\n", " ").replace("\\\r\n", " "))
        if found is not None:
            parameters = None if found[2] is None else tuple(re.findall(r"\w+", found[2]))
            self.macros.setdefault(found[1], Macro(parameters, found[3].strip()))

    def expanded(self, text: str) -> str:
        """Replace macros in a text.

        Raises:
            UnknownError: It grows too long, or a macro has other arguments.
        """
        for _ in range(_MOST_DEPTH):
            after = self._expanded_once(text)
            if after == text:
                return text
            if len(after) > _MOST_EXPANDED:
                raise UnknownError
            text = after
        raise UnknownError

    def _expanded_once(self, text: str) -> str:
        pieces, at = [], 0
        for found in _WORD.finditer(text):
            macro = self.macros.get(found[0])
            if macro is None or found.start() < at:
                continue
            pieces.append(text[at : found.start()])
            if macro.parameters is None:
                pieces.append(macro.body)
                at = found.end()
                continue
            open_at = found.end() + len(text[found.end() :]) - len(text[found.end() :].lstrip())
            if text[open_at : open_at + 1] != "(":
                pieces.append(found[0])
                at = found.end()
                continue
            close_at = closing(text, open_at)
            arguments = divided(text[open_at + 1 : close_at])
            if len(arguments) != len(macro.parameters):
                raise UnknownError
            given = dict(zip(macro.parameters, arguments, strict=True))
            pieces.append(_WORD.sub(lambda word, given=given: given.get(word[0], word[0]), macro.body))  # type: ignore[misc]
            at = close_at + 1
        return "".join(pieces) + text[at:]

    def returned(self, name: str) -> tuple[list[str], str] | None:
        """Return parameters and expression of a function that only returns one; None for others."""
        found = [one for one in self.source.scopes if name_of_function(self.source.code(one.head)) == name]
        if len(found) != 1:
            return None
        head = self.source.code(found[0].head)
        body = self.source.clean[found[0].start + 1 : found[0].end - 1].strip()
        if not body.startswith("return") or body.count(";") != 1 or not body.endswith(";"):
            return None
        return parameters_of(head), body.removeprefix("return").rstrip(";")


def closing(text: str, at: int) -> int:
    """Return where the bracket closes that opens at a place.

    Raises:
        UnknownError: It does not.
    """
    depth = 0
    for place in range(at, len(text)):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
            if not depth:
                return place
    raise UnknownError


def divided(text: str) -> list[str]:
    """Divide a list of arguments at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text.strip() else []


def parameters_of(head: str) -> list[str]:
    """Return the names of the parameters of a function by the head of its scope."""
    name = name_of_function(head)
    found = None if name is None else re.search(rf"\b{name}\s*\(", head)
    if found is None:
        return []
    try:
        inside = head[found.end() : closing(head, found.end() - 1)]
    except UnknownError:
        return []
    words = (re.findall(r"[A-Za-z_]\w*", one.partition("=")[0].partition("[")[0]) for one in divided(inside))
    return [one[-1] for one in words if one]


def template_arguments(head: str, kernel: Kernel) -> dict[str, str]:
    """Return the arguments of a kernel's template by the parameters of its head."""
    opened = re.search(r"\btemplate\s*<", head)
    if opened is None or "<" not in kernel.name:
        return {}
    names = [re.findall(r"[A-Za-z_]\w*", one.partition("=")[0]) for one in _angled(head, opened.end() - 1)]
    at = re.search(rf"\b{re.escape(name_of_function(head) or '')}\s*<", kernel.name)
    given = _angled(kernel.name, at.end() - 1) if at is not None else []
    pairs = zip(names, given, strict=False)
    return {words[-1]: re.sub(r"^\s*\((?:[\w:\s]+)\)", "", one).strip() for words, one in pairs if words}


def _angled(text: str, at: int) -> list[str]:
    """Divide what stands between the `<` at a place and its `>`."""
    parts, depth, round_depth, start = [], 0, 0, at + 1
    for place in range(at, len(text)):
        char = text[place]
        round_depth += (char in "([{") - (char in ")]}")
        if round_depth:
            continue
        depth += (char == "<") - (char == ">")
        if not depth or (depth == 1 and char == ","):
            parts.append(text[start:place])
            start = place + 1
        if not depth:
            return parts
    return []


class Site:
    """A place in a function of a kernel: what names stand for there.

    Args:
        definitions: Those of the file.
        kernel: The kernel, whose block size and template arguments count.
        function: The body of the function that the place is in.
        assumed: What a parameter of the kernel is taken for; by default nothing is assumed.
        is_turned: `threadIdx.x` and `threadIdx.y` have each other's values.
    """

    def __init__(
        self,
        definitions: Definitions,
        kernel: Kernel,
        function: Scope,
        assumed: int | None = None,
        *,
        is_turned: bool = False,
    ) -> None:
        """Take the place."""
        self.definitions = definitions
        self.source = definitions.source
        self.function = function
        self.kernel = kernel
        head = self.source.code(function.head)
        self.parameters = frozenset(parameters_of(head))
        self.arguments = template_arguments(head, kernel)
        self._assumed = OPEN if assumed is None else Value((assumed,))
        self._built_in = _built_in(kernel)
        if is_turned:
            x, y = (self._built_in.get(f"threadIdx.{axis}", OPEN) for axis in "xy")
            self._built_in |= {"threadIdx.x": y, "threadIdx.y": x}
        self._own = [
            one
            for one in self.source.statements
            if function.start < one.start and one.end <= function.end and one.closes != "#"
        ]

    def value(self, text: str, at: int, loops: Mapping[str, Value] = {}) -> Value:
        """Work out an expression.

        Args:
            text: The expression.
            at: Where it stands.
            loops: The values of loop variables.

        Raises:
            UnknownError: Part of it is unknown.
        """
        return _At(self, at, loops, 0).value(text)

    def number(self, text: str, at: int) -> int:
        """Work out an expression that is a known number, the same in all threads.

        Raises:
            UnknownError: It is none.
        """
        return self.value(text, at).number

    def setting(self, name: str, at: int) -> tuple[Statement, str] | None:
        """Return the last statement before a place that sets a variable, and the expression; None without one."""
        pattern = re.compile(rf"(?<![\w.>\]])(?<!->){re.escape(name)}\s*=(?!=)")
        for one in reversed(self._own):
            if one.start >= at:
                continue
            code = self.source.code(one)
            if one.closes == "{" and not code.startswith("for"):
                continue
            for found in reversed([*pattern.finditer(code)]):
                if one.start + found.start() < at and _is_visible(self.source, one, at):
                    return one, _until(code[found.end() :])
        return None

    def steps(self, name: str) -> list[str]:
        """Return how a variable changes besides being set, as expressions of it."""
        found = []
        for one in self._own:
            code = self.source.code(one)
            word = rf"(?<![\w.>\]]){re.escape(name)}"
            found += [f"{name} + 1" for _ in re.finditer(rf"{word}\s*\+\+|\+\+\s*{re.escape(name)}\b", code)]
            found += [f"{name} - 1" for _ in re.finditer(rf"{word}\s*--|--\s*{re.escape(name)}\b", code)]
            for step in re.finditer(rf"{word}\s*(\+|-|\*|/|%|<<|>>|&|\||\^)=(?!=)", code):
                found.append(f"{name} {step[1]} ({_until(code[step.end() :])})")
        return found


def _is_visible(source: SourceText, statement: Statement, at: int) -> bool:
    """Return whether a place is inside the scope that a statement stands in, or that a `for` opens."""
    if statement.scope < 0:
        return True
    scope = source.scopes[statement.scope]
    return scope.start < at < scope.end


def _until(text: str) -> str:
    """Return an expression up to the comma, bracket or semicolon that ends it."""
    depth = 0
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                return text[:at]
        elif char in ",;" and not depth:
            return text[:at]
    return text


def _built_in(kernel: Kernel) -> dict[str, Value]:
    """Return the values of CUDA's own variables, by the sizes that the report names."""
    found: dict[str, Value] = {"warpSize": Value((WARP_THREADS,)), "true": Value((1,)), "false": Value((0,))}
    if kernel.block is not None:
        x, y, z = kernel.block
        threads = range(x * y * z)
        lanes = ([i % x for i in threads], [i // x % y for i in threads], [i // (x * y) for i in threads])
        for axis, each, size in zip(_AXES, lanes, kernel.block, strict=True):
            found[f"threadIdx.{axis}"] = Value(tuple(each)) if size > 1 else Value((0,))
            found[f"blockDim.{axis}"] = Value((size,))
    for axis, size in zip(_AXES, kernel.grid or (), strict=False):
        found[f"gridDim.{axis}"] = Value((size,))
    for axis in _AXES:
        found[f"blockIdx.{axis}"] = OPEN
    return found


class _At(Names):
    def __init__(self, site: Site, at: int, loops: Mapping[str, Value], depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise UnknownError
        self._site, self._at, self._loops, self._depth = site, at, loops, depth

    def value(self, text: str) -> Value:
        return evaluate(parse(self._site.definitions.expanded(text)), self)

    def value_of(self, name: str) -> Value:
        site = self._site
        if name in self._loops:
            return self._loops[name]
        if name in site._built_in:  # noqa: SLF001 - of the same module
            return site._built_in[name]  # noqa: SLF001 - as above
        if "." in name:
            raise UnknownError
        if (found := site.setting(name, self._at)) is not None:
            return self._variable(name, *found)
        if name in site.parameters:
            if site.steps(name):
                raise UnknownError
            return site._assumed  # noqa: SLF001 - as above
        if name in site.arguments:
            return self._at_file(site.arguments[name])
        if name in site.definitions.constants:
            return self._at_file(site.definitions.constants[name])
        raise UnknownError

    def _at_file(self, text: str) -> Value:
        return _At(self._site, 0, {}, self._depth + 1).value(text)

    def _variable(self, name: str, statement: Statement, expression: str) -> Value:
        """Return the value of a variable: what it was set to, and what the same steps of all threads have added."""
        value = _At(self._site, statement.start, self._loops, self._depth + 1).value(expression)
        for step in self._site.steps(name):
            _, sign, amount = step.split(" ", 2)
            if sign in {"+", "-"}:
                by = _At(self._site, self._at, self._loops, self._depth + 1).value(amount)
                if not by.is_uniform:
                    raise UnknownError
                value = apply("+", value, OPEN)
            elif value.is_uniform:
                value = OPEN
            else:
                raise UnknownError
        return value

    def called(self, name: str, arguments: Sequence[Value]) -> Value:
        found = self._site.definitions.returned(name)
        if found is None or len(found[0]) != len(arguments):
            raise UnknownError
        names, expression = found
        bound = dict(zip(names, arguments, strict=True))
        return _At(self._site, 0, bound, self._depth + 1).value(expression)


_FOR = re.compile(r"\bfor\s*\(")


def loop_parts(code: str) -> tuple[str, str, str] | None:
    """Return the three parts of a `for` that a statement begins with; None for others."""
    found = _FOR.match(code.lstrip())
    if found is None:
        return None
    code = code.lstrip()
    try:
        parts = code[found.end() : closing(code, found.end() - 1)].split(";")
    except UnknownError:
        return None
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def rounds(site: Site, heads: Sequence[Statement]) -> Iterator[Mapping[str, Value]]:
    """Yield the values of the variables of nested loops, trip by trip, as far as they are known.

    Args:
        site: The place.
        heads: The heads of the loops, the outermost first.
    """
    yield from _nested(site, heads, {}, [_MOST_ROUNDS])


def _nested(
    site: Site, heads: Sequence[Statement], outer_values: Mapping[str, Value], left: list[int]
) -> Iterator[Mapping[str, Value]]:
    if not heads:
        yield outer_values
        return
    trips = _trips(site, heads[0], outer_values, left)
    if trips is None:
        yield from _nested(site, heads[1:], outer_values, left)
        return
    for values in trips:
        yield from _nested(site, heads[1:], {**outer_values, **values}, left)


def _trips(
    site: Site, head: Statement, values: Mapping[str, Value], left: list[int]
) -> list[Mapping[str, Value]] | None:
    """Return the values of a loop's variable, trip by trip; None if they are not known."""
    parts = loop_parts(site.source.code(head))
    found = None if parts is None else re.search(r"\b([A-Za-z_]\w*)\s*=(?!=)", parts[0])
    if parts is None or found is None or "," in parts[0]:
        return None
    name = found[1]
    step = _step_of(name, parts[2])
    made: list[Mapping[str, Value]] = []
    try:
        value = site.value(parts[0][found.end() :], head.start, values)
        while step is not None:
            now = {**values, name: value}
            holds = site.value(parts[1], head.start, now)
            if not holds.number:
                return made
            left[0] -= 1
            if left[0] < 0:
                return None
            made.append({name: value})
            value = site.value(step, head.start, now)
    except UnknownError:
        return None
    return None


def _step_of(name: str, step: str) -> str | None:
    """Return what a loop's variable becomes, as an expression of it."""
    step = step.strip()
    if step in {f"{name}++", f"++{name}"}:
        return f"{name} + 1"
    if step in {f"{name}--", f"--{name}"}:
        return f"{name} - 1"
    if found := re.match(rf"{re.escape(name)}\s*(\+|-|\*|/|<<|>>)=(.*)", step, re.DOTALL):
        return f"{name} {found[1]} ({found[2]})"
    if found := re.match(rf"{re.escape(name)}\s*=(?!=)(.*)", step, re.DOTALL):
        return found[1]
    return None
