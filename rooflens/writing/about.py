"""Explain names, however typed or pasted: for the command, for Python and for the tools of a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflens.errors import UnknownNameError, near_names

if TYPE_CHECKING:
    from rooflens.report.document import Document

MOST_ALIKE, MOST_SUGGESTED = 2, 6
"""Names like the one asked for that are explained at once, and that are suggested."""


def explained(name: str = "") -> Document:
    """Explain a verdict, finding, flag, stall reason, counter, term, column, GPU, or what ncu prints, errors too.

    Args:
        name: Any of these, in any spelling, or lines that ncu printed; empty for the list of all names.

    Raises:
        UnknownNameError: Nothing has this name, and no two things at most have one like it.
    """
    from rooflens.model.about import known_names, nothing_called
    from rooflens.model.printed import everything_printed, find_like, nearest
    from rooflens.report.about import heads, list_document

    if not name.strip():
        return list_document()
    if found := _about_exact_name(name):
        return found
    like = find_like(name, known_names())
    if 0 < len(like) <= MOST_ALIKE:
        return tuple(block for one in like for block in _about_exact_name(one))
    others = ["columns", *heads(), *everything_printed()]
    near = (*near_names(name, [*known_names(), *others]), *nearest(name, known_names()))
    raise nothing_called(name, others, like[:MOST_SUGGESTED] or tuple(dict.fromkeys(near)))


def _about_exact_name(name: str) -> Document:
    """Explain what has exactly this name, but for case, unit and the like; empty if nothing has."""
    from rooflens.model.about import about_counter, find_about, find_word
    from rooflens.report.about import about_document, columns_document, counter_document, word_document

    if (counter := about_counter(name)) is not None:
        return counter_document(counter)
    word = find_word(name)
    told = (*(word_document(*word) if word else ()), *_about_label(name), *columns_document(name)) or _stall(name)
    if told:
        return told
    try:
        return tuple(block for page in find_about(name) for block in about_document(page))
    except UnknownNameError:
        return _failures(name) or _gpu(name)


def _about_label(name: str) -> Document:
    from rooflens.model.about import is_item
    from rooflens.model.printed import find_label, find_rule, find_section
    from rooflens.report.about import label_document, rule_document, section_document

    if label := find_label(name):
        return label_document(label)
    if is_item(name):
        return ()
    section = find_section(name)
    return section_document(section) if section else rule_document(rule) if (rule := find_rule(name)) else ()


def _stall(name: str) -> Document:
    from rooflens.model.about import OTHER_NAMES, about
    from rooflens.model.printed import find_stall
    from rooflens.report.about import about_document

    reason = find_stall(name)
    return about_document(about("stalls", OTHER_NAMES.get(reason, reason))) if reason else ()


def explains(name: str) -> bool:
    """Return whether something has exactly this name, but for case, unit and the like."""
    return bool(_about_exact_name(name))


def is_ncu_message(text: str) -> bool:
    """Return whether a text begins like a message of ncu."""
    return re.match(r"==(?:ERROR|WARNING)==|ERR_NV", text.strip()) is not None


def _failures(text: str) -> Document:
    from rooflens.failures import failure_of
    from rooflens.report.about import failures_document

    found = failure_of(text)
    return failures_document(found) if found else ()


def _gpu(name: str) -> Document:
    from rooflens.model.roofline.datasheets import load_datasheets
    from rooflens.report.text.listings import gpu_details, gpu_table

    word = re.compile(rf"(?<!\w){re.escape(name.strip())}(?!\w)", re.IGNORECASE)
    found = tuple(gpu for gpu in load_datasheets() if any(map(word.search, (gpu.id, *gpu.names))))
    if not found:
        return ()
    return (gpu_details(found[0]) if len(found) == 1 else gpu_table(found),)
