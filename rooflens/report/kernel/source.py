"""The source lines of a kernel in their context, and what a move makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from rooflens import format as fmt
from rooflens.model.records import Analysis, Edit, Hotspot, Kernel, Move
from rooflens.model.source.excerpt import lines_around
from rooflens.report.document import Document, Excerpt, ExcerptLine, Heading, Span, Words, code, paragraph
from rooflens.report.words.kernel import plain
from rooflens.report.words.labels import file_label, place_label

_AROUND = 2
_MOST_EDITS = 3
_MOST_LINES = 8
"""Lines of a statement that an excerpt shows: a longer one is known by its beginning."""


def in_context(kernel: Kernel, spot: Hotspot | None) -> tuple[Excerpt, ...]:
    """Show the line of a hot spot with those around it; nothing where the text of its file is not known."""
    if spot is None or spot.file is None or spot.line is None:
        return ()
    lines = lines_around(kernel, spot.file, spot.line, spot.line, _AROUND)
    if not lines:
        return ()
    shown = (ExcerptLine(number, text, "here" if number == spot.line else "") for number, text in lines)
    return (Excerpt(_line_words(kernel, spot.file, spot.line), tuple(shown)),)


def changed(analysis: Analysis) -> dict[int, Edit]:
    """Return the statements of a kernel that are shown as changed, by the number of the first move that names each."""
    edits: dict[tuple[str, int], tuple[int, Edit]] = {}
    for number, move in enumerate(analysis.verdict.moves, start=1):
        if move.edit is not None:
            edits.setdefault((move.edit.file, move.edit.line), (number, move.edit))
    return dict([*edits.values()][:_MOST_EDITS])


def changes(analysis: Analysis) -> Document:
    """Show the statement that each move changes, and a sketch of what it becomes."""
    moves = analysis.verdict.moves
    blocks = [_change(analysis.kernel, at, moves[at - 1], edit) for at, edit in changed(analysis).items()]
    if not blocks:
        return ()
    return (Heading("What the moves change"), *(block for one in blocks for block in one))


def differences(kernel: Kernel) -> Iterator[Words]:
    """Say which files of the folder of sources are not the ones that were compiled."""
    for file, source in kernel.sources.items():
        if source.differs:
            after = "its lines may be others" if source.text is not None else "none of its lines is shown"
            yield (
                code(source.path or file_label(file)),
                plain(f" is not the file that was compiled: {source.differs}; {after}."),
            )


def _change(kernel: Kernel, number: int, move: Move, edit: Edit) -> Document:
    last = min(edit.last_line, edit.line + _MOST_LINES - 1)
    lines = lines_around(kernel, edit.file, edit.line, last, _AROUND)
    indent = min((len(text) - len(text.lstrip()) for at, text in lines if at == edit.line), default=0)
    rows: list[ExcerptLine] = []
    for at, text in lines:
        rows.append(ExcerptLine(at, text, "here" if edit.line <= at <= last else ""))
        if at == last:
            rows += [ExcerptLine(0, f"{' ' * indent}{new}", "new") for new in edit.after]
    title = (f"Move {number}, ", *_line_words(kernel, edit.file, edit.line))
    return (Excerpt(title, tuple(rows)), *((paragraph(*said),) if (said := [*_edit_words(kernel, move, edit)]) else ()))


def _edit_words(kernel: Kernel, move: Move, edit: Edit) -> Iterator[Words]:
    if edit.ways_before is not None and move.where:
        today, then = (None if ways is None else fmt.significant(ways) for ways in (edit.ways_before, edit.ways_after))
        after = "" if then is None else f", and {then} with the sketch"
        place = code(place_label(move.where[0].hotspot, kernel.inside))
        yield "Replayed from the addresses of a block, ", place, f" takes {today} passes an access, as counted{after}."
    if edit.after:
        note = f"{fmt.sentence_case(plain(edit.note))}. " if edit.note else ""
        yield f"{note}A sketch, not compiled; check it: `{edit.check}`."


def _line_words(kernel: Kernel, file: str, line: int) -> tuple[str | Span, ...]:
    """Name a line, the file in the folder that its text is from, and whether that is another one."""
    source = kernel.sources[file]
    differs = (" (not the file that was compiled)",) if source.differs else ()
    where = (", from ", code(source.path)) if source.path is not None and source.path != file_label(file) else ()
    return (code(f"{file_label(file)}:{line}"), *where, *differs)
