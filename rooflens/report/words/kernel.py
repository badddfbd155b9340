"""A kernel in words: its name, its report, and how busy its units are."""

from __future__ import annotations

from pathlib import PurePath

from rooflens import format as fmt
from rooflens.model.records import Analysis

NAME_WIDTH = 64
PIPES_SHOWN = 2

LEAST_SHARE = 0.01
"""A unit that is less busy than this is not named."""

_EXTREMES = (("<0.1 %", "under 0.1 %"), (">99 %", "over 99 %"))
"""How `format.percent` writes what is nearly none or all, and the same without signs that Markdown escapes."""

_SAME_WORK = frozenset({"lsu"})
"""Pipes whose share is that of a memory level's stage."""


def short_name(name: str) -> str:
    """Cut a kernel's name to what distinguishes it from others; never empty."""
    return fmt.cut_name(name.strip() or "(no name)", NAME_WIDTH)


def file_of(source: str) -> str:
    """Name a report by its path if that is relative, so that it opens as given.

    An absolute path, or one that leads up, is cut to the file name, as another machine lacks the folders.
    """
    path = PurePath(source.replace("\\", "/"))
    is_above = path.is_absolute() or ".." in path.parts or ":" in source
    return path.name if is_above else str(path)


def plain(text: str, width: int | None = None) -> str:
    """Write words without characters that Markdown escapes, cut to a width."""
    for short, long in _EXTREMES:
        text = text.replace(short, long)
    return text if width is None else fmt.cut_end(text, width)


def shares(analysis: Analysis, pipes_shown: int = PIPES_SHOWN) -> list[tuple[str, float]]:
    """Return memory levels and the busiest pipes with their shares of peak, the busiest first, without idle ones."""
    levels = [(name, level.share) for name, level in analysis.levels.items() if level.share is not None]
    pipes = [
        (name, pipe.share) for name, pipe in analysis.pipes.items() if pipe.share is not None and name not in _SAME_WORK
    ]
    busiest = sorted(pipes, key=lambda pair: -pair[1])[:pipes_shown]
    return sorted((pair for pair in (*levels, *busiest) if pair[1] >= LEAST_SHARE), key=lambda pair: -pair[1])
