"""The conditions of `--where`, and of `where` in Python: a part of SQL, read into a tree and pushed down to Parquet.

    gpu like '%H100%' and (function_name like 'flash%' or duration_ns >= 1e6) and nvtx_range is not null

Names are columns of `kernels` and `runs`. Conditions on reports are decided first, so that files of parts without a
match are not opened; what is left is a filter on `kernels`. As in SQL, a comparison with a missing value is neither
true nor false, and chooses nothing.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from rooflens.errors import UsageError
from rooflens.model.records import Run
from rooflens.model.store.schema import KERNELS, RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DEEPEST = 50
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign><>|!=|<=|>=|==|[=<>(),]))"
)
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

_KINDS: dict[str, str] = {}
for _field in (*RUNS, *KERNELS):
    if pa.types.is_string(_field.type):
        _KINDS[_field.name] = "text"
    elif pa.types.is_boolean(_field.type):
        _KINDS[_field.name] = "true or false"
    elif pa.types.is_integer(_field.type) or pa.types.is_floating(_field.type):
        _KINDS[_field.name] = "number"

_OF_RUN = frozenset(Run.__struct_fields__) - frozenset(KERNELS.names)
COLUMNS = tuple(
    name for name in (*KERNELS.names, *RUNS.names) if name in _KINDS and (name in KERNELS.names or name in _OF_RUN)
)
"""What a condition may name: those of `kernels` first."""


class Compare(Struct, frozen=True):
    """A comparison of a column with a value, by a sign of `_SIGNS` or `like`."""

    column: str
    sign: str
    value: Any


class IsNull(Struct, frozen=True):
    """A column that has no value."""

    column: str


class Not(Struct, frozen=True):
    """A negated condition."""

    part: Node


class Both(Struct, frozen=True):
    """Two conditions joined by `and` or `or`."""

    word: str
    left: Node
    right: Node


Node = Compare | IsNull | Not | Both | bool | None
"""A condition; a constant where it is decided, None for what is neither true nor false."""


def _joined(word: str, nodes: Sequence[Node]) -> Node:
    """Join conditions half by half: a list of thousands then nests a dozen deep."""
    if len(nodes) == 1:
        return nodes[0]
    middle = len(nodes) // 2
    return Both(word, _joined(word, nodes[:middle]), _joined(word, nodes[middle:]))


def parse_where(text: str) -> Node:
    """Read a condition.

    Raises:
        UsageError: It cannot be parsed, names an unknown column, or compares text with a number.
    """
    return _Parser(text).whole()


def for_run(node: Node, run: Run) -> Node:
    """Decide what depends on the report alone; return what is left, which is about its kernels."""
    if isinstance(node, Compare) and node.column in _OF_RUN:
        value = getattr(run, node.column)
        return None if value is None else _holds(node, value)
    if isinstance(node, IsNull) and node.column in _OF_RUN:
        return getattr(run, node.column) is None
    if isinstance(node, Not):
        part = for_run(node.part, run)
        return part if part is None else not part if isinstance(part, bool) else Not(part)
    if isinstance(node, Both):
        return _both(node.word, for_run(node.left, run), for_run(node.right, run))
    return node


def _both(word: str, left: Node, right: Node) -> Node:
    """Join two conditions as SQL does; where one decides, the other is dropped."""
    deciding = word == "or"
    for one, other in ((left, right), (right, left)):
        if one is deciding:
            return deciding
        if one is (not deciding):
            return other
    return None if left is None and right is None else Both(word, left, right)


def _holds(node: Compare, value: Any) -> bool:
    if node.sign == "like":
        return bool(pc.match_like(pa.scalar(value), node.value).as_py())
    return bool(_SIGNS[node.sign](value, node.value))


def to_expression(node: Node) -> pc.Expression:
    """Make the filter on `kernels` from what `for_run` left."""
    if isinstance(node, Compare):
        field = pc.field(node.column)
        return pc.match_like(field, node.value) if node.sign == "like" else _SIGNS[node.sign](field, node.value)
    if isinstance(node, IsNull):
        return pc.field(node.column).is_null()
    if isinstance(node, Not):
        return ~to_expression(node.part)
    if isinstance(node, Both):
        left, right = to_expression(node.left), to_expression(node.right)
        return left & right if node.word == "and" else left | right
    return pc.scalar(pa.scalar(node, pa.bool_()))


class _Parser:
    """Read a condition from left to right: `or` binds loosest, then `and`, then `not`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._at = 0
        self._depth = 0

    def _split(self) -> Any:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._error(f"`{self._text[at:].strip()[:20]}` cannot be read")
            yield str(found.lastgroup), found[found.lastgroup or 0]
            at = found.end()

    def _error(self, what: str, hint: str = "") -> UsageError:
        example = "for example \"gpu like '%H100%' and function_name like 'flash%'\""
        return UsageError(f"condition on kernels: {what}", hint or example)

    def whole(self) -> Node:
        if not self._tokens:
            raise self._error("it is empty")
        node = self._either()
        if self._at < len(self._tokens):
            raise self._error(f"`{self._tokens[self._at][1]}` was not expected here")
        return node

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "its end")

    def _take(self, *words: str) -> str | None:
        """Consume the next word or sign if it is one of these."""
        kind, token = self._next()
        if kind in {"name", "sign"} and token.lower() in words:
            self._at += 1
            return token.lower()
        return None

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._error(f"`{word}` is missing before `{self._next()[1]}`")

    def _either(self) -> Node:
        nodes = [self._all()]
        while self._take("or"):
            nodes.append(self._all())
        return _joined("or", nodes)

    def _all(self) -> Node:
        nodes = [self._one()]
        while self._take("and"):
            nodes.append(self._one())
        return _joined("and", nodes)

    def _one(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("it is nested too deeply")
        try:
            if self._take("not"):
                return Not(self._one())
            if self._take("("):
                node = self._either()
                self._need(")")
                return node
            return self._condition()
        finally:
            self._depth -= 1

    def _condition(self) -> Node:
        if self._next()[0] != "name" or self._next()[1].lower() in {"true", "false"}:
            value = self._value()
            sign = self._sign()
            column = self._column()
            return self._compared(column, _MIRRORED.get(sign, sign), value)
        column = self._column()
        if self._take("is"):
            negated = self._take("not")
            self._need("null")
            return Not(IsNull(column)) if negated else IsNull(column)
        negated = self._take("not")
        if self._take("in"):
            node = self._listed(column)
        elif self._take("like"):
            node = self._like(column)
        elif negated:
            raise self._error(f"`in` or `like` is missing before `{self._next()[1]}`")
        else:
            return self._compared(column, self._sign(), self._value())
        return Not(node) if negated else node

    def _listed(self, column: str) -> Node:
        self._need("(")
        nodes: list[Node] = [self._compared(column, "=", self._value())]
        while self._take(","):
            nodes.append(self._compared(column, "=", self._value()))
        self._need(")")
        return _joined("or", nodes)

    def _like(self, column: str) -> Node:
        if _KINDS[column] != "text":
            raise self._error(f"`{column}` is a {_KINDS[column]}, `like` is for text")
        return self._compared(column, "like", self._value())

    def _compared(self, column: str, sign: str, value: Any) -> Compare:
        kind = "text" if isinstance(value, str) else "true or false" if isinstance(value, bool) else "number"
        if kind != _KINDS[column]:
            raise self._error(f"`{column}` is a {_KINDS[column]}, `{value}` is a {kind}", "put text in 'quotes'")
        return Compare(column, sign, value)

    def _sign(self) -> str:
        found = self._take(*_SIGNS)
        if found is None:
            raise self._error(f"a comparison is missing before `{self._next()[1]}`")
        return found

    def _column(self) -> str:
        kind, token = self._next()
        if kind != "name":
            raise self._error(f"a column is missing before `{token}`")
        if token not in COLUMNS:
            raise self._error(f"there is no column `{token}`", f"known are: {', '.join(COLUMNS)}")
        self._at += 1
        return token

    def _value(self) -> Any:
        kind, token = self._next()
        self._at += 1
        if kind == "text":
            return token[1:-1].replace("''", "'")
        if kind == "number":
            return int(token) if re.fullmatch(r"[+-]?\d{1,18}", token) else float(token)
        if kind == "name" and token.lower() in {"true", "false"}:
            return token.lower() == "true"
        raise self._error(f"`{token}` is not a value", "put text in 'quotes'")
