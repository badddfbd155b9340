"""Charts that Altair has built before, kept as data: to import it takes longer than the rest of a small page.

What is kept is the specification of a chart without its rows, parameters and words, which many pages share. It is kept
by all that it was built from: the arguments, our sources, and the Altair that is installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec

from rooflens.cache import keep, kept, trim
from rooflens.report.plane.marks import Spec

FOLDER = "charts"
MOST_BYTES = 4 << 20
"""Size of what is kept, enough for a hundred charts; beyond it the oldest are dropped."""

_Layout = TypeVar("_Layout", bound=msgspec.Struct)


def built(layout: _Layout, build: Callable[[_Layout], Spec]) -> Spec:
    """Return the specification that Altair builds from a layout, from the user's cache where that has it.

    Args:
        layout: All that the specification depends on.
        build: Builds it.
    """
    name = _name(layout)
    with_data = kept(name) if name else None
    if with_data is not None:
        try:
            return msgspec.json.decode(with_data, type=Spec)
        except msgspec.DecodeError:
            pass
    made = msgspec.json.encode(build(layout))
    if name:
        keep(name, made)
        trim(FOLDER, MOST_BYTES)
    return msgspec.json.decode(made, type=Spec)


def _name(layout: msgspec.Struct) -> str | None:
    """Return the name of a specification in the cache; None where no Altair is installed, which then is an error."""
    builder = _builder()
    if builder is None:
        return None
    kind = type(layout).__name__.encode()
    return f"{FOLDER}/{sha256(b' '.join((builder, kind, msgspec.json.encode(layout)))).hexdigest()}"


@cache
def _builder() -> bytes | None:
    """Tell the sources and the Altair that build charts from others; None without Altair."""
    try:
        found = find_spec("altair")
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None:
        return None
    package = Path(__file__).parents[2]
    sources = (
        os.path.join(folder, name)  # noqa: PTH118 - 500 files: a path object for each takes longer than the rest
        for folder, _, names in os.walk(package)
        for name in names
        if name.endswith(".py")
    )
    states = sorted((path, (state := os.stat(path)).st_size, state.st_mtime_ns) for path in (*sources, found.origin))  # noqa: PTH116 - as above
    return sha256(msgspec.json.encode(states)).hexdigest().encode()
