"""Sizes of an operation: how sweeps are written, and which values are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rooflens.errors import UsageError
from rooflens.model.predict.rows import LARGEST_SIZE, Operation, Sizes

MOST_STEPS = 10_000
MOST_DIGITS = 20
_NUMBERS = re.compile(r"\d+")
_SIZE_NUMBER = r"\d+(?:\.\d+)?(?:[eE]\+?\d+|[kKMGTP]i?)?"
_RANGE = re.compile(rf"({_SIZE_NUMBER}):({_SIZE_NUMBER}):(x|\+)({_SIZE_NUMBER})")
_PARTS = re.compile(r"(\d+)(?:\.(\d+))?(?:[eE]\+?(\d+)|([kKMGTP])(i?))?")
_PREFIXES = "kMGTP"
_SIZES_HINT = "write 4096, 64e9, 64G or 4Ki, 1,2,4 or 128:8192:x2 or 64:1024:+64, or the name of another size"


def parse_values(text: str) -> tuple[int, ...]:
    """Read the values of one size: `4096`, `1,2,4`, `128:8192:x2` (times two) or `64:1024:+64`.

    A number may be written `64e9`, `1.5e3`, `64G` (powers of 1000) or `4Ki` (of 1024), if the result is whole.

    Raises:
        UsageError: The text is none of these, or means too many values.
    """
    cleaned = text.replace("_", "").strip()
    if max(map(len, _NUMBERS.findall(cleaned)), default=0) > MOST_DIGITS:
        raise UsageError(f"`{cleaned[:MOST_DIGITS]}...` is not a size", _SIZES_HINT)
    if match := _RANGE.fullmatch(cleaned):
        return _walk(_whole(match[1]), _whole(match[2]), match[3], _whole(match[4]))
    return tuple(_whole(part) for part in cleaned.split(","))


def _whole(text: str) -> int:
    """Read a whole number without rounding it through a float."""
    match = re.fullmatch(_PARTS, text)
    if match is None or not text.isascii():
        raise UsageError(f"`{text}` is not a size", _SIZES_HINT)
    whole, fraction, exponent, prefix, binary = match.groups(default="")
    power = _PREFIXES.index(prefix.replace("K", "k")) + 1 if prefix else 0
    if int(exponent or 0) > MOST_DIGITS:
        raise UsageError(f"`{text}` is not a size", _SIZES_HINT)
    factor = int(1024**power if binary else 1000**power * 10 ** int(exponent or 0))
    value, rest = divmod(int(whole + fraction) * factor, int(10 ** len(fraction)))
    if rest:
        raise UsageError(f"`{text}` is not a whole number", _SIZES_HINT)
    return value


def _walk(first: int, last: int, sign: str, step: int) -> tuple[int, ...]:
    if (sign == "x" and (step < 2 or first < 1)) or step < 1 or first > last:
        raise UsageError(f"`{first}:{last}:{sign}{step}` has no steps", _SIZES_HINT)
    values = [first]
    while (following := values[-1] * step if sign == "x" else values[-1] + step) <= last:
        values.append(following)
        if len(values) > MOST_STEPS:
            raise UsageError(f"`{first}:{last}:{sign}{step}` has more than {MOST_STEPS:,} steps", "take larger steps")
    return tuple(values)


def sweep_sizes(written: Mapping[str, str]) -> tuple[dict[str, int], ...]:
    """Turn sizes as written into a mapping for each step of the sweep.

    A size may name another one (`--m n`), whose value it takes; several swept sizes advance together.

    Raises:
        UsageError: A size cannot be read, names an unknown one, or two sweeps have different lengths.
    """
    names = {name: text.strip().replace("-", "_").casefold() for name, text in written.items()}
    values = {name: parse_values(text) for name, text in written.items() if names[name] not in written}
    for name, other in names.items():
        if other in written:
            values[name] = values[_end_of(name, names)]
    counts = {len(several) for several in values.values() if len(several) > 1}
    if len(counts) > 1:
        raise UsageError(
            "swept sizes have different numbers of steps", "they are swept together: give each the same number"
        )
    steps = counts.pop() if counts else 1
    return tuple(
        {name: several[step] if len(several) > 1 else several[0] for name, several in values.items()}
        for step in range(steps)
    )


def _end_of(name: str, names: Mapping[str, str]) -> str:
    """Follow a size that names another one to a value."""
    passed = [name]
    while (other := names[passed[-1]]) in names:
        if other in passed:
            raise UsageError(f"`{name}` refers to `{names[name]}`, which never gets a value", _SIZES_HINT)
        passed.append(other)
    return passed[-1]


def checked_sizes(operation: Operation, sizes: Mapping[str, int]) -> Sizes:
    """Fill in the defaults of an operation's sizes; their names may be given in capitals.

    Raises:
        UsageError: A size is missing, unknown, given twice, negative or absurdly large.
    """
    known = {size.name: size for size in operation.sizes}
    given = {name.casefold(): value for name, value in sizes.items()}
    unknown = [name for name in sizes if name.casefold() not in known]
    wanted = ", ".join(size.name if size.default is None else f"{size.name}={size.default}" for size in known.values())
    if unknown:
        raise UsageError(f"`{operation.name}` has no size `{unknown[0]}`", f"its sizes are {wanted}")
    if len(given) < len(sizes):
        raise UsageError(f"`{operation.name}` is given a size twice, in small letters and in capitals", "drop one")
    values = {name: given.get(name, size.default) for name, size in known.items()}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        named = ("s " if len(missing) > 1 else " ") + " and ".join(f"`{name}`" for name in missing)
        raise UsageError(f"`{operation.name}` needs the size{named}", f"its sizes are {wanted}")
    for name, value in values.items():
        least, most = known[name].limits
        if not least <= (value or 0) <= most:
            written = f"{most:.0e}" if most == LARGEST_SIZE else str(most)
            raise UsageError(f"`{name}` must be {least} to {written}, not {value}", f"its sizes are {wanted}")
    return {name: value for name, value in values.items() if value is not None}


def check_shape(sizes: Sizes) -> None:
    """Reject sizes that do not fit each other.

    Raises:
        UsageError: `heads` does not divide `hidden`, or `kv_heads` the heads; a filter is larger than its image; a
            token has more experts than there are; `groups` does not divide the channels, or the GPUs the experts; or
            there are more GPUs than heads.
    """
    heads, kv_heads, hidden = (sizes.get(name, 0) for name in ("heads", "kv_heads", "hidden"))
    if heads and hidden % heads:
        raise UsageError(f"`hidden` must be a multiple of `heads`, and {hidden} is not a multiple of {heads}")
    if kv_heads and heads % kv_heads:
        raise UsageError(f"`heads` must be a multiple of `kv_heads`, and {heads} is not a multiple of {kv_heads}")
    if "stride" in sizes and min(sizes["height"], sizes["image_width"]) + 2 * sizes["padding"] < sizes["kernel"]:
        raise UsageError(f"a kernel of {sizes['kernel']} is larger than the padded image")
    if "stride" in sizes and "groups" in sizes and (groups := sizes["groups"]):
        for name in ("in_channels", "out_channels"):
            if sizes[name] % groups:
                raise UsageError(
                    f"`{name}` must be a multiple of `groups`: {sizes[name]} is not a multiple of {groups}"
                )
    if sizes.get("experts") and sizes.get("top_k", 0) > sizes["experts"]:
        raise UsageError(f"a token cannot have {sizes['top_k']} of {sizes['experts']} experts")
    if (gpus := sizes.get("expert_parallel", 0)) and sizes["experts"] % gpus:
        raise UsageError(
            f"`experts` must be a multiple of `expert_parallel`: {sizes['experts']} is not a multiple of {gpus}"
        )
    if heads and "tensor_parallel" in sizes and sizes["tensor_parallel"] > heads:
        raise UsageError(f"{sizes['tensor_parallel']} GPUs cannot split {heads} heads")
