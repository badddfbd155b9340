"""The text of lines: the one place that answers what a line says, from what a report embeds or a folder holds."""

from __future__ import annotations

from rooflens.model.records import Kernel

_MOST_CHARACTERS = 160
_TAB = 4


def lines_around(kernel: Kernel, file: str, first: int, last: int, around: int) -> tuple[tuple[int, str], ...]:
    """Return lines of a source file with those around them, each with its number, from 1.

    Args:
        kernel: The kernel that names the file.
        file: Its name in the line table.
        first: The first of them, from 1.
        last: The last of them.
        around: How many lines before and after them.

    Returns:
        The lines without the indentation that all of them have; empty where the text of the file is not known.
    """
    source = kernel.sources.get(file)
    if source is None or source.text is None:
        return ()
    lines = source.text.splitlines()
    chosen = range(max(1, first - around), min(len(lines), last + around) + 1)
    texts = [lines[number - 1].expandtabs(_TAB).rstrip() for number in chosen]
    margin = min((len(text) - len(text.lstrip()) for text in texts if text.strip()), default=0)
    return tuple((number, text[margin:][:_MOST_CHARACTERS]) for number, text in zip(chosen, texts, strict=True))
