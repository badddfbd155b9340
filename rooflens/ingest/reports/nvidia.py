"""NVIDIA's `ncu_report` module, which alone can disassemble: the text of instructions.

Nothing else imports it. The module may crash on damaged input and keeps most of what it reads in memory, so this code
runs in a child process.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.reports.jobs import CHANGED, CHANGED_HINT
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX, RERECORD_HINT

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from rooflens.ingest.reports.texts import SassTexts, TextsRequest

READER_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError, SystemError, AttributeError)
"""What NVIDIA's bindings raise for damaged strings and values; a missing metric is None, hence AttributeError."""


def tell(asked: Sequence[TextsRequest]) -> list[SassTexts | InputError]:
    """Read the text of instructions of reports; a damaged report does not affect the others."""
    return [_sass_texts(one) for one in asked]


def _sass_texts(asked: TextsRequest) -> SassTexts | InputError:
    try:
        with asked.path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != asked.digest:
                return InputError(CHANGED, CHANGED_HINT)
        return {
            index: {
                address: as_unicode(text)
                for address in asked.addresses[index]
                if (text := action.sass_by_pc(address)) is not None
            }
            for index, action in actions(asked.path, asked.addresses)
        }
    except (OSError, *READER_ERRORS) as error:
        return InputError(f"damaged: {error}", RERECORD_HINT)
    except InputError as error:
        return error


def actions(path: Path, wanted: Container[int] | None = None) -> Iterator[tuple[int, Any]]:
    """Yield results with their indices: all, or those in `wanted`.

    Raises:
        InputError: The module finds no results.
    """
    import ncu_report  # noqa: PLC0415 - 50 ms and a native library: only where it is asked

    # The module reopens the file for each result, so a link for an odd name must last.
    with _plain_path(path) as plain:
        with contextlib.redirect_stdout(io.StringIO()):
            context = ncu_report.load_report(plain)
        if context is None or context.num_ranges() == 0:
            raise InputError("damaged: no results can be read", RERECORD_HINT)
        ranges = (context.range_by_idx(index) for index in range(context.num_ranges()))
        places = ((found, index) for found in ranges for index in range(found.num_actions()))
        for number, (found, index) in enumerate(places):
            if wanted is None or number in wanted:
                yield number, found.action_by_idx(index)


@contextlib.contextmanager
def _plain_path(path: Path) -> Iterator[str]:
    """Give NVIDIA's reader a path that it accepts: a link if the name is not UTF-8 or has a compressed file's ending.

    Where links are not allowed, as for most Windows users, the file is copied.
    """
    if _is_taken(path):
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="rooflens-") as folder:
        link = Path(folder) / f"report{PLAIN_SUFFIX}"
        try:
            link.symlink_to(path.resolve())
        except OSError:
            shutil.copyfile(path, link)
        yield str(link)


def _is_taken(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return path.suffix != PACKED_SUFFIX
