"""A folder of source files beside a report: files found by path, name and size, read within bounds.

Nothing outside the folder is read: links that lead out of it are not followed. What is no text, or too large, is no
source.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode, count, some
from rooflens.ingest.metrics.code import line_text
from rooflens.model.records import Hotspot, Kernel, SourceFile
from rooflens.model.source.same import compiled_as, difference

_MOST_FILES = 100_000
_MOST_SOURCE_BYTES = 4 << 20
_MOST_ALIKE = 64
_LEFT_OUT = frozenset({"node_modules", "__pycache__"})


class SourceFolder:
    """The source files below a folder."""

    def __init__(self, folder: str | os.PathLike[str], *, is_asked: bool = True) -> None:
        """Take the folder.

        Args:
            folder: The folder.
            is_asked: A user named it, and wants to hear if it holds no file of a report.

        Raises:
            InputError: It is not a folder.
        """
        self.folder = Path(folder)
        self._is_asked = is_asked
        self._notes: dict[str, None] = {}
        self._read: dict[tuple[str, int | None], tuple[str, bytes, str] | str | None] = {}
        if not self.folder.is_dir():
            hint = "give the folder that holds the kernels' source files"
            raise InputError(f"`{as_unicode(str(folder))}` is not a folder of sources", hint)
        self._root = self.folder.resolve()

    def added_to_all(self, kernels: Sequence[Kernel]) -> tuple[list[Kernel], tuple[str, ...]]:
        """Return the kernels of a report with the text of their lines, and what a user should know of the files."""
        self._notes = {}
        added = [self._added_to(kernel) for kernel in kernels]
        if not self._is_asked:
            return added, tuple(self._notes)
        own = [one for one in kernels if one.hotspots]
        files = dict.fromkeys(spot.file for kernel in own for spot in kernel.hotspots if spot.file is not None)
        if own and not files:
            self._notes["it names no source lines: compile with `-lineinfo` and profile again"] = None
        elif files and not self._notes and not any(spot.text for kernel in added for spot in kernel.hotspots):
            named = some(f"`{PurePosixPath(name.replace(chr(92), '/')).name}`" for name in files)
            self._notes[f"none of its source files is in `{as_unicode(str(self.folder))}`: {named}"] = None
        return added, tuple(self._notes)

    def _added_to(self, kernel: Kernel) -> Kernel:
        """Return a kernel with the text of its lines, as far as the report embeds none and the folder has it."""
        files = dict.fromkeys(spot.file for spot in kernel.hotspots if spot.file is not None)
        found = {
            name: made
            for name in files
            if (known := kernel.sources.get(name, SourceFile())).text is None
            and (made := self._source(kernel, name, known)) is not None
        }
        if not found:
            return kernel
        lines = {name: (source.text or "").splitlines() for name, source in found.items()}
        return replace(
            kernel,
            sources={**kernel.sources, **found},
            hotspots=tuple(_with_text(spot, lines) for spot in kernel.hotspots),
        )

    def _source(self, kernel: Kernel, name: str, compiled: SourceFile) -> SourceFile | None:
        read = self._find(name, compiled)
        if not isinstance(read, tuple):
            if read is not None:
                self._notes[read] = None
            return None
        path, data, text = read
        differs, moves_lines = difference(kernel, name, compiled, data, text)
        if differs:
            after = "none of its lines is shown" if moves_lines else "its lines may be others"
            self._notes[f"`{path}` is not the file that was compiled: {differs}; {after}"] = None
        return replace(compiled, text=None if moves_lines else text, path=path, differs=differs)

    def _find(self, name: str, compiled: SourceFile) -> tuple[str, bytes, str] | str | None:
        """Return path, bytes and text of a file; a sentence if it cannot be used, None if there is none."""
        key = name, compiled.compiled_bytes
        if key not in self._read:
            self._read[key] = self._chosen_file(name, compiled)
        return self._read[key]

    def _chosen_file(self, name: str, compiled: SourceFile) -> tuple[str, bytes, str] | str | None:
        """Choose among the files of a name: the one compiled by its size, else the one most alike in path."""
        parts = PurePosixPath(name.replace("\\", "/")).parts
        alike = self._by_name.get(parts[-1], ()) if parts else ()
        read = [(path, _read_text(self._root / path)) for path in alike[:_MOST_ALIKE]]
        texts = [(path, data) for path, data in read if isinstance(data, bytes)]
        if not texts:
            return next((f"`{path}` is left out: {why}" for path, why in read if isinstance(why, str)), None)
        best = [one for one in texts if compiled_as(one[1], compiled)] or texts
        lengths = [_common(PurePosixPath(path).parts, parts) for path, _ in best]
        nearest = [one for one, length in zip(best, lengths, strict=True) if length == max(lengths)]
        if len({data for _, data in nearest}) > 1:
            return f"{count(len(nearest), 'file')} are called `{parts[-1]}`: give a folder with one of them"
        path, data = nearest[0]
        return path, data, as_unicode(data.decode("utf-8", "replace"))

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for at, path in enumerate(self._walk_files()):
            if at >= _MOST_FILES:
                break
            found[PurePosixPath(path).name].append(path)
        return found

    def _walk_files(self) -> Iterator[str]:
        """Yield the files below the folder by their paths in it; hidden folders are left out."""
        for place, folders, files in os.walk(self._root):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _LEFT_OUT)
            for file in sorted(files):
                path = Path(place) / file
                if path.is_symlink() and not path.resolve().is_relative_to(self._root):
                    continue
                yield path.relative_to(self._root).as_posix()


def _with_text(spot: Hotspot, lines: Mapping[str, list[str]]) -> Hotspot:
    if spot.text is not None or spot.line is None or spot.file is None or spot.file not in lines:
        return spot
    return replace(spot, text=line_text(lines[spot.file], spot.line))


def _common(path: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the parts that two paths end with alike."""
    length = 0
    while length < min(len(path), len(other)) and path[-1 - length] == other[-1 - length]:
        length += 1
    return length


def _read_text(path: Path) -> bytes | str:
    """Return the bytes of a text file; a phrase if it is none, or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return "it is not a file"
            if status.st_size > _MOST_SOURCE_BYTES:
                return f"it has {status.st_size:,} bytes, and more than {_MOST_SOURCE_BYTES:,} are no source"
            data = file.read(_MOST_SOURCE_BYTES + 1)
    except OSError as error:
        return error.strerror or "it cannot be read"
    return "it is not a text" if b"\0" in data else data[:_MOST_SOURCE_BYTES]
