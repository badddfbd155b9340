"""Bank conflicts replayed: the addresses of each warp by the index expressions, on 32 banks of 4 bytes.

Source of the rules: CUDA C++ Programming Guide, "Shared Memory": successive words of 4 bytes are in successive banks;
lanes that read the same word share it; accesses of 8 bytes a thread go by half warps, of 16 bytes by quarters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from msgspec import Struct

from rooflens.model.records import Kernel
from rooflens.model.source.expressions import UnknownError, Value
from rooflens.model.source.names import WARP_THREADS, Definitions, Site, closing, divided, loop_parts, rounds
from rooflens.model.source.text import Scope, SourceText, Statement

BANKS, WORD_BYTES = 32, 4
_MOST_PAD = 32
_MOST_REPLAYED = 1 << 19
"""Accesses of a thread that are replayed at most."""

_TYPE_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("char", "uchar", "bool", "int8_t", "uint8_t", "__nv_fp8_e4m3", "__nv_fp8_e5m2"), 1),
    **dict.fromkeys(("short", "ushort", "half", "__half", "int16_t", "uint16_t", "__nv_bfloat16", "bfloat16"), 2),
    **dict.fromkeys(("int", "uint", "unsigned", "float", "int32_t", "uint32_t", "half2", "__half2"), 4),
    **dict.fromkeys(("double", "long", "int64_t", "uint64_t", "size_t", "float2", "int2", "uint2", "cuComplex"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2", "longlong2", "ulonglong2", "cuDoubleComplex"), 16),
    "__nv_bfloat162": 4,
    "short2": 4,
    "char4": 4,
    "uchar4": 4,
}


def type_bytes(name: str) -> int | None:
    """Return the size of a type; None for those that are not built in."""
    return _TYPE_BYTES.get(name.rpartition("::")[2].split(" ")[-1])


_SHARED = re.compile(r"\b__shared__\b")
_ALIGNED = re.compile(r"\b(?:alignas|__align__|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
_QUALIFIERS = frozenset({"extern", "static", "volatile", "const", "__shared__", "alignas", "std"})
_ATOMIC = re.compile(r"\batomic\w*\s*\(|\basm\b|\bmemcpy|__pipeline|cp_async|\bldmatrix")
_VECTOR_MACRO = re.compile(r"([A-Za-z_]*?(?:(?P<double>double)|float|int)_?(?P<count>[24])\w*)\s*\(\s*$", re.IGNORECASE)
"""A macro of another file that takes an access as one of a vector: `FETCH_FLOAT4(tile[i])`."""
_WIDE = re.compile(r"\b(\w+)\s*(?:const\s*)?\*\s*>?\s*\)?\s*\(?\s*\(?\s*&\s*\(?\s*$")


class ArrayLayout(Struct, frozen=True):
    """Another layout of an array.

    Attributes:
        is_transposed: Its last two dimensions have changed places, as have the last two indices of each access.
        pad: Elements by which its last dimension is longer.
        skip: After so many elements one is left out, of an array of one dimension; 0 for none.
        vector: Elements of a vector of which a group of 32 words is swizzled by the number of its group; 0 for none.
    """

    is_transposed: bool = False
    pad: int = 0
    skip: int = 0
    vector: int = 0

    @property
    def groups(self) -> int:
        """Vectors in the 32 words that a swizzle permutes."""
        return BANKS // self.vector if self.vector else 0

    def placed(self, value: Value) -> Value:
        """Return where the last index comes to lie.

        Raises:
            UnknownError: It is not known which group it is in.
        """
        if not self.skip and not self.vector:
            return value
        if value.is_open:
            raise UnknownError
        if self.skip:
            return Value(tuple(lane + lane // self.skip for lane in value.lanes))
        return Value(tuple(lane ^ lane // BANKS % self.groups * self.vector for lane in value.lanes))


AS_IT_IS = ArrayLayout()


class SharedArray(Struct, frozen=True):
    """An array in shared memory.

    Attributes:
        statement: Its declaration.
        element_bytes: Size of an element.
        sizes: Of each dimension; None for the first of one that the launch sizes.
        at: Where its dimensions stand in the text.
    """

    name: str
    statement: Statement
    element_bytes: int
    sizes: tuple[int | None, ...]
    at: int

    def strides(self, layout: ArrayLayout) -> tuple[int, ...]:
        """Return by how many elements each index counts in a layout."""
        sizes = [*self.sizes[:-1], (self.sizes[-1] or 0) + layout.pad]
        if layout.is_transposed:
            sizes[-2:] = sizes[:-3:-1]
        strides, step = [], 1
        for size in reversed(sizes):
            strides.append(step)
            step *= size or 0
        if layout.is_transposed:
            strides[:2] = strides[1::-1]
        return tuple(reversed(strides))


class Access(Struct, frozen=True):
    """An access to an array in shared memory.

    Attributes:
        statement: Where it stands.
        indices: The expression of each index.
        width_bytes: What a thread moves.
        times: How often: twice where it is read and written.
    """

    array: SharedArray
    statement: Statement
    indices: tuple[str, ...]
    width_bytes: int
    times: int = 1


class BankPasses(Struct, frozen=True):
    """Passes through shared memory of one block: those taken, and those without conflicts."""

    taken: float = 0.0
    ideal: float = 0.0

    @property
    def ways(self) -> float:
        """Passes for each that the bytes need."""
        return self.taken / self.ideal if self.ideal else 1.0

    def __add__(self, other: BankPasses) -> BankPasses:
        return BankPasses(self.taken + other.taken, self.ideal + other.ideal)


def shared_arrays(site: Site) -> list[SharedArray]:
    """Find the arrays in shared memory that a function can name, of known types and sizes."""
    source, found = site.source, list[SharedArray]()
    for one in source.statements:
        code = source.code(one)
        is_seen = one.scope < 0 or (site.function.start < one.start and one.end < site.function.end)
        if is_seen and one.closes == ";" and _SHARED.search(code):
            found += _declared(site, one, code)
    return found


def _declared(site: Site, statement: Statement, code: str) -> Iterator[SharedArray]:
    plain = _ALIGNED.sub(lambda match: " " * len(match[0]), code)
    opened = plain.find("[")
    words = [*re.finditer(r"[A-Za-z_]\w*", plain[:opened])] if opened > 0 else []
    if len(words) < 2:
        return
    types = [word[0] for word in words[:-1] if word[0] not in _QUALIFIERS]
    kind = site.arguments.get(types[-1], types[-1]) if types else ""
    element = type_bytes(kind)
    if types[:2] == ["long", "double"] or element is None:
        return
    start = words[-1].start()
    for part in divided(plain[start:]):
        at = plain.index(part, start)
        if (name := re.match(r"\s*([A-Za-z_]\w*)\s*\[", part)) is not None and "=" not in part:
            try:
                sizes = [*_array_sizes(site, part[name.end() - 1 :], statement.start)]
            except UnknownError:
                continue
            if None not in sizes[1:]:
                first = statement.start + at + name.end() - 1
                yield SharedArray(name[1], statement, element, tuple(sizes), first)


def _array_sizes(site: Site, text: str, at: int) -> Iterator[int | None]:
    for inside in subscripts(text):
        yield site.number(inside, at) if inside.strip() else None


def subscripts(text: str) -> list[str]:
    """Return what stands in the square brackets that a text begins with."""
    found, at = [], 0
    while at < len(text) and text[at] == "[":
        end = closing(text, at)
        found.append(text[at + 1 : end])
        rest = text[end + 1 :]
        at = end + 1 + len(rest) - len(rest.lstrip())
    return found


def accesses(site: Site, statement: Statement, arrays: Sequence[SharedArray]) -> list[Access]:
    """Find the accesses to arrays in shared memory of a statement.

    Raises:
        UnknownError: It has one whose addresses or width cannot be told.
    """
    code = site.source.code(statement)
    names = [one.name for one in arrays]
    if statement.closes == "#" or _SHARED.search(code):
        return []
    text = site.definitions.expanded(code)
    every = [found for found in re.finditer(r"(?<![\w.>])[A-Za-z_]\w*", text) if found[0] in names]
    if not every:
        return []
    if _ATOMIC.search(text):
        raise UnknownError
    assigned = _assignment(text)
    made = []
    for found in every:
        array = next(one for one in reversed(arrays) if one.name == found[0])
        rest = text[found.end() :]
        lead = len(rest) - len(rest.lstrip())
        indices = subscripts(rest[lead:])
        if len(indices) != len(array.sizes):
            raise UnknownError
        before = text[: found.start()].rstrip()
        width = array.element_bytes
        if before.endswith("&") or re.search(r"&\s*\(\s*$", before):
            wide = _WIDE.search(before)
            width = _TYPE_BYTES.get(wide[1], 0) if wide is not None else 0
            if not width:
                raise UnknownError
        elif (vector := _VECTOR_MACRO.search(before)) is not None and vector[1] not in _TYPE_BYTES:
            width = int(vector["count"]) * (8 if vector["double"] else 4)
        is_set = assigned is not None and found.start() < assigned[0] and not _is_in_subscript(text, found.start())
        times = 2 if is_set and assigned is not None and assigned[1] else 1
        made.append(Access(array, statement, tuple(indices), width, times))
    return made


def _is_in_subscript(text: str, at: int) -> bool:
    """Return whether a place is inside square brackets."""
    return text[:at].count("[") > text[:at].count("]")


def _assignment(text: str) -> tuple[int, bool] | None:
    """Return where a statement assigns, and whether it reads what it changes; None where it does not assign."""
    depth = 0
    for found in re.finditer(r"[\[\](){}]|(?P<op><<|>>|[-+*/%&|^])?=(?!=)|[=!<>]=|\+\+|--", text):
        sign = found[0]
        if sign in {"[", "("}:
            depth += 1
        elif sign in {"]", ")"}:
            depth -= 1
        elif not depth and sign in {"++", "--"}:
            return len(text), True
        elif not depth and sign.endswith("=") and sign not in {"==", "!=", "<=", ">="}:
            return found.start(), found["op"] is not None
    return None


def passes_of(addresses: Sequence[int | None], width_bytes: int) -> BankPasses:
    """Count the passes of a warp's access.

    Args:
        addresses: In bytes, a lane each; None where a lane takes no part.
        width_bytes: What a lane moves.
    """
    lanes = max(1, WARP_THREADS * WORD_BYTES // max(width_bytes, WORD_BYTES))
    taken = ideal = 0
    for start in range(0, len(addresses), lanes):
        words: dict[int, set[int]] = defaultdict(set)
        for address in addresses[start : start + lanes]:
            if address is not None:
                for word in range(address // WORD_BYTES, (address + max(width_bytes, 1) - 1) // WORD_BYTES + 1):
                    words[word % BANKS].add(word)
        if words:
            taken += max(map(len, words.values()))
            ideal += 1
    return BankPasses(float(taken), float(ideal))


class Replay:
    """The accesses of a function to shared memory, for the threads of a block."""

    def __init__(self, source: SourceText, kernel: Kernel, function: Scope) -> None:
        """Take the function.

        Args:
            source: The file.
            kernel: The kernel, with its block size.
            function: The body that the accesses stand in.
        """
        self.site = Site(Definitions(source), kernel, function)
        self.arrays = shared_arrays(self.site)
        self._left = _MOST_REPLAYED

    def at(self, statement: Statement, name: str = "", layout: ArrayLayout = AS_IT_IS) -> BankPasses:
        """Replay the accesses of a statement.

        Args:
            statement: The statement.
            name: An array with another layout.
            layout: That layout.

        Raises:
            UnknownError: Addresses of some cannot be told.
        """
        total = BankPasses()
        for access in accesses(self.site, statement, self.arrays):
            once = self._passes(access, layout if access.array.name == name else AS_IT_IS)
            total += BankPasses(once.taken * access.times, once.ideal * access.times)
        return total

    def users(self, array: SharedArray) -> list[Statement]:
        """Return the statements that access an array."""
        pattern = re.compile(rf"(?<![\w.>]){re.escape(array.name)}\b")
        return [
            one
            for one in self.site.source.statements
            if self.site.function.start < one.start < self.site.function.end
            and one != array.statement
            and pattern.search(self.site.source.code(one))
        ]

    def _passes(self, access: Access, layout: ArrayLayout) -> BankPasses:
        total = BankPasses()
        heads, conditions = self._around(access.statement)
        at = access.statement.start + 1
        for known in rounds(self.site, heads):
            *outer, last = (self.site.value(index, at, known) for index in access.indices)
            active = [self._holds(condition, place, known) for condition, place in conditions]
            total += self._of_block([*outer, layout.placed(last)], access.array.strides(layout), active, access)
        return total

    def _of_block(
        self, values: Sequence[Value], strides: Sequence[int], active: Sequence[Value], access: Access
    ) -> BankPasses:
        threads = prod(self.site.kernel.block or (0,))
        # Loops multiply the replayed blocks: beyond the budget nothing is claimed.
        self._left -= threads
        if self._left < 0 or not threads:
            raise UnknownError
        columns = [one.lanes * threads if len(one.lanes) == 1 else one.lanes for one in values]
        masks = [one.lanes * threads if len(one.lanes) == 1 else one.lanes for one in active]
        total = BankPasses()
        for start in range(0, threads, WARP_THREADS):
            addresses: list[int | None] = []
            # An inactive lane asks for no address, and so conflicts with nobody.
            for lane in range(start, min(start + WARP_THREADS, threads)):
                index = sum(column[lane] * stride for column, stride in zip(columns, strides, strict=True))
                takes_part = all(mask[lane] for mask in masks)
                addresses.append(index * access.array.element_bytes if takes_part else None)
            total += passes_of(addresses, access.width_bytes)
        return total

    def _holds(self, condition: str, at: int, values: Mapping[str, Value]) -> Value:
        """Return in which threads a condition holds; where that is unknown, in all."""
        try:
            value = self.site.value(condition, at, values)
        except UnknownError:
            return Value((1,))
        return Value((1,)) if value.is_open else value

    def _around(self, statement: Statement) -> tuple[list[Statement], list[tuple[str, int]]]:
        """Return the heads of the loops around a statement, outermost first, and the conditions that it is under."""
        source = self.site.source
        heads: list[Statement] = []
        conditions: list[tuple[str, int]] = []
        within = [one.head for one in source.around(statement) if one.start > self.site.function.start]
        for head in [statement, *within]:
            code = source.code(head)
            if loop_parts(code) is not None:
                heads.append(head)
            elif (found := re.match(r"if\s*(?:constexpr\s*)?\(", code)) is not None:
                conditions.append((code[found.end() : closing(code, found.end() - 1)], head.start + 1))
        return heads[::-1], conditions


class Remedy(Struct, frozen=True):
    """A layout of an array without conflicts, and what it does to the passes of a statement."""

    array: SharedArray
    layout: ArrayLayout
    before: BankPasses
    after: BankPasses


def find_remedy(replay: Replay, statement: Statement, before: BankPasses) -> Remedy | None:
    """Find a layout with which no access to an array of a statement has conflicts: the simplest that there is.

    Args:
        replay: The function's.
        statement: The statement.
        before: Its passes today.

    Raises:
        UnknownError: Addresses of the statement cannot be told.
    """
    for array in {one.array.name: one.array for one in accesses(replay.site, statement, replay.arrays)}.values():
        try:
            found = _remedy(replay, statement, array, before)
        except UnknownError:
            continue
        if found is not None:
            return found
    return None


def _remedy(replay: Replay, statement: Statement, array: SharedArray, before: BankPasses) -> Remedy | None:
    users = replay.users(array)
    every = [one for user in users for one in accesses(replay.site, user, replay.arrays) if one.array == array]
    vector = max(1, max((one.width_bytes for one in every), default=0) // array.element_bytes)
    for layout in _layouts(array, vector):
        after = sum((replay.at(one, array.name, layout) for one in users), BankPasses())
        if after.taken <= after.ideal:
            return Remedy(array, layout, before, replay.at(statement, array.name, layout))
    return None


def _layouts(array: SharedArray, vector: int) -> Iterator[ArrayLayout]:
    """Yield layouts, the simplest first; none moves a part of a vector away from the others."""
    if len(array.sizes) > 1:
        if vector == 1 and None not in array.sizes:
            yield ArrayLayout(is_transposed=True)
        yield from (ArrayLayout(pad=pad) for pad in range(vector, _MOST_PAD + 1, vector))
    elif vector == 1:
        yield ArrayLayout(skip=BANKS * WORD_BYTES // max(array.element_bytes, WORD_BYTES))
    last = array.sizes[-1]
    if array.element_bytes == WORD_BYTES and vector < BANKS and (last is None or last % BANKS == 0):
        yield ArrayLayout(vector=vector)
