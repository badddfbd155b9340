"""Keep runs, kernels, metrics and verdicts in Parquet files, one for each table and report.

Stores are recognised here without importing pyarrow.
"""

from __future__ import annotations

import re
from pathlib import Path

from rooflens.addresses import is_address, opened, shown, without_secrets
from rooflens.errors import InputError

MARKER = "rooflens-store.json"
"""The file that marks a folder as a store, with the version of its schema."""

_DIGEST = re.compile(r"[0-9a-f]{6,64}")
"""The first digits of a report's SHA-256, or all of them."""


def store_at(given: str) -> tuple[str, str] | None:
    """Recognise a store, or a report in a store by the first digits of its digest.

    Args:
        given: A path or an address; `STORE/DIGEST` is a report.

    Returns:
        The store, and the digits, which are empty for the whole store; None if there is no store.

    Raises:
        InputError: The address cannot be opened or read at the moment.
    """
    if is_address(given):
        files, root = opened(given)
        try:
            return (given, "") if files.get_file_info(f"{root}/{MARKER}").is_file else None
        except OSError as error:
            message = f"`{shown(given)}` cannot be read: {without_secrets(error, given)}"
            raise InputError(message, "check the address") from error
    place = Path(given)
    if (place / MARKER).is_file():
        return given, ""
    if not place.exists() and _DIGEST.fullmatch(place.name) and (place.parent / MARKER).is_file():
        return str(place.parent), place.name
    return None


def no_report(store: str, digits: str) -> InputError:
    """Make the error for digits that match no report of a store."""
    message = f"`{shown(store)}` has no report whose digest starts with `{digits}`"
    return InputError(message, "the table `runs` lists them")
