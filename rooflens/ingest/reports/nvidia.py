"""Open reports with NVIDIA's `ncu_report` module: the only place that imports it.

The module can end the process on damaged input and keeps most of what it has read, so this code runs in children that
may die (`rooflens.ingest.reports.child`). It imports little, so that they start fast.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.reports.jobs import CHANGED, CHANGED_HINT
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

RERECORD = "record the report again, or copy it again from where it was made"


def read_sass(path: Path, wanted: Mapping[int, Sequence[int]], digest: str) -> dict[int, dict[int, str]]:
    """Read the SASS text of instructions.

    Args:
        path: A plain report.
        wanted: Addresses of the instructions, by index of the result.
        digest: SHA-256 of the report, in hex.

    Returns:
        The text by address, by index of the result; addresses without text are left out.

    Raises:
        InputError: The file has another digest now, or the module finds no results.
    """
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise InputError(CHANGED, CHANGED_HINT)
    return {index: dict(_texts(action, wanted[index])) for index, action in actions(path, wanted)}


def _texts(action: Any, addresses: Sequence[int]) -> Iterator[tuple[int, str]]:
    for address in addresses:
        text = action.sass_by_pc(address)
        if text is not None:
            yield address, as_unicode(text)


def actions(path: Path, wanted: Container[int] | None = None) -> Iterator[tuple[int, Any]]:
    """Yield results with their indices: all, or those that are wanted.

    Raises:
        InputError: The module finds no results.
    """
    import ncu_report  # noqa: PLC0415 - 50 ms and a native library: only where it is asked

    # A link to a file with an odd name must last: the reader opens the file again for each result.
    with _plain_path(path) as plain:
        with contextlib.redirect_stdout(io.StringIO()):
            context = ncu_report.load_report(plain)
        if context is None or context.num_ranges() == 0:
            raise InputError("damaged: no results can be read", RERECORD)
        ranges = (context.range_by_idx(index) for index in range(context.num_ranges()))
        places = ((found, index) for found in ranges for index in range(found.num_actions()))
        for number, (found, index) in enumerate(places):
            if wanted is None or number in wanted:
                yield number, found.action_by_idx(index)


@contextlib.contextmanager
def _plain_path(path: Path) -> Iterator[str]:
    """Give NVIDIA's reader a path it accepts: a link, where the name is not UTF-8 or has a compressed file's ending."""
    if _is_taken(path):
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="rooflens-") as folder:
        link = Path(folder) / f"report{PLAIN_SUFFIX}"
        link.symlink_to(path.resolve())
        yield str(link)


def _is_taken(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return path.suffix != PACKED_SUFFIX
