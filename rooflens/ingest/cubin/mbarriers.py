"""Where mbarriers are, and the sums that their addresses are made of: what tells which wait is for which copies.

Read in a second pass, and of kernels with mbarriers alone: others never ask.

    IADD3, LEA, IMAD ...   a, b and c as in `decoding`; signs at bits 72, 63 and 75, a shift at 75
    SYNCS                  the address is a register at 24 or a uniform one at 64, and 24 bits from 40 on
    UTMALDG, UBLKCP        the mbarrier is in the register behind that of the destination
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from rooflens.model.inside.instruction import Instruction, Linear

_A, _B, _C = 24, 32, 64
_IMMEDIATES = frozenset({2, 3, 4, 5})
"""Kinds of operands where bits 32 to 63 are a number, or the place of a constant."""
_ZERO, _WORD, _BLACKWELL = 0xFF, 0xFFFFFFFF, 100
_INITIALISES, _UPPER_HALVES, _CARRY, _OF_64_BITS = 0x1B2, frozenset({0x027, 0x0A6}), 74, 2
_OF_BYTES, _TO_SHARED = 0x1BA, 73
_TRUTH_TABLE, _AND, _BLOCK_BEFORE = 72, 0xC0, 0x654
_ADDRESS_MASK = 0xFFFFF8
"""The bits of a barrier's address in a block's shared memory; before them stands which block of a cluster it is."""


def with_mbarriers(instructions: Sequence[Instruction], words: Iterable[bytes], capability: int) -> list[Instruction]:
    """Add to instructions what they sum up, and the address of the mbarrier that they are about.

    Args:
        instructions: As `decoding.decode` reads them.
        words: The 16 bytes of each.
        capability: Compute capability that they are compiled for: 90 for 9.0.
    """
    if not any(one.base == "SYNCS" for one in instructions):
        return [*instructions]
    found = []
    for one, word in zip(instructions, words, strict=True):
        bits = _Bits(int.from_bytes(word, "little"), capability, is_uniform=one.base.startswith("U"))
        if one.base in _SUMS:
            sums = _SUMS[one.base](bits)
            found.append(one if sums is None else replace(one, sums=sums))
        elif one.base in _MBARRIERS:
            found.append(replace(one, mbarrier=_MBARRIERS[one.base](bits)))
        else:
            found.append(one)
    return found


class _Bits:
    def __init__(self, bits: int, capability: int, *, is_uniform: bool) -> None:
        self.bits = bits
        self._is_uniform = is_uniform
        self.number, self.kinds = bits & 0x1FF, bits >> 9 & 7
        self._uniform_zero = _ZERO if capability >= _BLACKWELL else 0x3F

    def at(self, place: int, width: int) -> int:
        """Return a number of some bits."""
        return self.bits >> place & (1 << width) - 1

    def register(self, place: int) -> Linear:
        """Return the value of a register."""
        number = self.at(place, 8)
        return Linear() if number == _ZERO else Linear(0, ((number, 1),))

    def uniform(self, place: int) -> Linear:
        """Return the value of a uniform register."""
        number = self.at(place, 8) & self._uniform_zero
        return Linear() if number == self._uniform_zero else Linear(0, ((-number - 1, 1),))

    def operands(self) -> tuple[Linear, Linear, Linear] | None:
        """Return the values of a, b and c; None where one is a constant of the launch."""
        own = self.uniform if self._is_uniform else self.register
        first = own(_A)
        match self.kinds:
            case 1:
                return first, own(_B), own(_C)
            case 4:
                return first, Linear(self.at(_B, 32)), own(_C)
            case 2:
                return first, own(_C), Linear(self.at(_B, 32))
            case 6:
                return first, self.uniform(_B), own(_C)
            case 7:
                return first, own(_C), self.uniform(_B)
            case _:
                return None


def _scaled(linear: Linear, factor: int) -> Linear:
    return Linear(linear.constant * factor & _WORD, tuple((register, by * factor) for register, by in linear.terms))


def _total(parts: Iterable[Linear]) -> Linear:
    constant = 0
    terms: list[tuple[int, int]] = []
    for part in parts:
        constant += part.constant
        terms += part.terms
    return Linear(constant & _WORD, tuple(terms))


def _signs(bits: _Bits, values: Sequence[Linear]) -> Iterator[Linear]:
    """Yield values with their signs; an immediate has none of its own."""
    for value, place in zip(values, (72, 63, 75), strict=False):
        is_immediate = place == 63 and bits.kinds in _IMMEDIATES
        yield _scaled(value, -1) if not is_immediate and bits.at(place, 1) else value


def _moved(bits: _Bits) -> Linear | None:
    values = None if bits.kinds == _OF_64_BITS else bits.operands()
    return None if values is None else values[1]


def _sum_of_three(bits: _Bits) -> Linear | None:
    values = bits.operands()
    return None if values is None or bits.at(_CARRY, 1) else _total(_signs(bits, values))


def _sum_of_two(bits: _Bits) -> Linear | None:
    values = bits.operands()
    return None if values is None else _total(_signs(bits, values[:2]))


def _product(bits: _Bits) -> Linear | None:
    """Return a multiply-add; None if both factors are registers."""
    values = bits.operands()
    if values is None or bits.number in _UPPER_HALVES or bits.at(_CARRY, 1):
        return None
    first, second, third = values
    if first.terms and second.terms:
        return None
    product = _scaled(first, second.constant) if first.terms else _scaled(second, first.constant)
    signs = -1 if bits.at(72, 1) else 1, -1 if bits.at(75, 1) else 1
    return _total((_scaled(product, signs[0]), _scaled(third, signs[1])))


def _shifted_sum(bits: _Bits) -> Linear | None:
    """Return `LEA`: a shifted, and b added; None for its upper half."""
    values = bits.operands()
    if values is None or bits.at(80, 1):
        return None
    sign = -1 if bits.at(72, 1) else 1
    return _total((_scaled(values[0], sign << bits.at(75, 5)), values[1]))


def _shifted(bits: _Bits) -> Linear | None:
    """Return `SHF.L` by a number of bits, with nothing shifted in; None for others."""
    values = bits.operands()
    is_right, is_upper = bits.at(76, 1), bits.at(80, 1)
    if values is None or is_right or is_upper or values[1].terms or values[2] != Linear():
        return None
    return _scaled(values[0], 1 << (values[1].constant & 31))


def _masked(bits: _Bits) -> Linear | None:
    """Return `LOP3` that keeps an address and clears which block of a cluster it is in; None for others."""
    values = bits.operands()
    is_and = values is not None and not values[1].terms and bits.at(_TRUTH_TABLE, 8) == _AND
    return values[0] if values and is_and and values[1].constant & _ADDRESS_MASK == _ADDRESS_MASK else None


def _with_block(bits: _Bits) -> Linear | None:
    """Return `PRMT` that puts the number of a block before the 24 bits of an address; None for others."""
    values = bits.operands()
    return values[2] if values is not None and values[1] == Linear(_BLOCK_BEFORE) else None


def _of_register(bits: _Bits) -> Linear:
    return bits.register(_A)


_SHAPES: Mapping[str, Callable[[_Bits], Linear | None]] = {
    "MOV": _moved,
    "IADD3": _sum_of_three,
    "VIADD": _sum_of_two,
    "IADD": _sum_of_two,
    "IMAD": _product,
    "LEA": _shifted_sum,
    "SHF": _shifted,
    "LOP3": _masked,
    "PRMT": _with_block,
}
_SUMS: Mapping[str, Callable[[_Bits], Linear | None]] = {
    **_SHAPES,
    **{f"U{name}": shape for name, shape in _SHAPES.items()},
    "R2UR": _of_register,
}
"""What an instruction sums up, by its opcode: of uniform registers where that begins with a U."""


def _of_syncs(bits: _Bits) -> Linear:
    number = bits.at(40, 23) - (bits.at(63, 1) << 23) & _WORD
    if bits.number == _INITIALISES:
        return _total((bits.uniform(_A), Linear(number)))
    return _total((bits.register(_A), bits.uniform(_C), Linear(number)))


def _of_copy(bits: _Bits) -> Linear | None:
    if bits.number == _OF_BYTES and not bits.at(_TO_SHARED, 1):
        return None
    (number, by), *_ = bits.uniform(_B).terms or ((0, 0),)
    return Linear(0, ((number - 1, by),) if by else ())


def _of_commit(bits: _Bits) -> Linear:
    return bits.uniform(_A)


_MBARRIERS: Mapping[str, Callable[[_Bits], Linear | None]] = {
    "SYNCS": _of_syncs,
    "UTCBAR": _of_commit,
    "UTMALDG": _of_copy,
    "UBLKCP": _of_copy,
}
