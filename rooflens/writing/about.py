"""Explain names, however typed or pasted: for the command, for Python and for the tools of a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflens.errors import UnknownNameError

if TYPE_CHECKING:
    from rooflens.report.document import Document


def explained(name: str = "") -> Document:
    """Explain a verdict, finding, flag, stall reason, counter, term, column, GPU, or an error message of ncu.

    Args:
        name: Any of these, in any spelling, or lines that ncu printed; empty for the list of all names.

    Raises:
        UnknownNameError: Nothing has this name.
    """
    from rooflens.model.about import about_counter, find_about, find_word, nothing_called
    from rooflens.report.about import (
        about_document,
        columns_document,
        counter_document,
        failures_document,
        heads,
        list_document,
        word_document,
    )

    if not name.strip():
        return list_document()
    if (counter := about_counter(name)) is not None:
        return counter_document(counter)
    if (word := find_word(name)) or columns_document(name):
        return (*(word_document(*word) if word else ()), *columns_document(name))
    try:
        return tuple(block for page in find_about(name) for block in about_document(page))
    except UnknownNameError:
        if found := _said_by_ncu(name):
            return failures_document(found)
        if document := _gpu(name):
            return document
        raise nothing_called(name, ["columns", *heads()]) from None


def is_said_by_ncu(text: str) -> bool:
    """Return whether a text begins like a message of ncu."""
    return re.match(r"==(?:ERROR|WARNING)==|ERR_NV", text.strip()) is not None


def _said_by_ncu(text: str) -> tuple[tuple[str, str], ...]:
    from rooflens.collect.failures import said_of

    return said_of(text)


def _gpu(name: str) -> Document:
    from rooflens.model.roofline.datasheets import load_datasheets
    from rooflens.report.text.listings import gpu_details, gpu_table

    word = re.compile(rf"(?<!\w){re.escape(name.strip())}(?!\w)", re.IGNORECASE)
    found = tuple(gpu for gpu in load_datasheets() if any(map(word.search, (gpu.id, *gpu.names))))
    if not found:
        return ()
    return (gpu_details(found[0]) if len(found) == 1 else gpu_table(found),)
