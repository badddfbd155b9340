"""Source files beside a report: which one is taken, what is said of one that differs, and what is never read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kernels import make_kernel

from rooflens.errors import InputError
from rooflens.ingest.sources import SourceFolder
from rooflens.model.records import Hotspot, Kernel, SourceFile

TEXT = "__global__ void k(float* a) {\n  a[0] = 1.0f;\n}\n"


def kernel_of(file: str = "/build/src/k.cu", line: int = 2, known: SourceFile | None = None) -> Kernel:
    """Return a kernel with a hot line of a file that the report does not embed."""
    spot = Hotspot("line", file=file, line=line, measures={"samples": 1.0})
    return make_kernel(function_name="k", hotspots=(spot,), sources={file: known} if known else {})


def shown(folder: Path, kernel: Kernel) -> tuple[str | None, tuple[str, ...]]:
    """Return the text of the hot line, and the notes."""
    (added,), notes = SourceFolder(folder).added_to_all([kernel])
    return added.hotspots[0].text, notes


def test_a_file_is_found_by_its_name_and_the_longest_common_path(tmp_path: Path) -> None:
    """Of two files of a name the one whose folders are alike is taken."""
    for place, text in (("src", TEXT), ("old", TEXT.replace("1.0f", "2.0f"))):
        (tmp_path / place).mkdir()
        (tmp_path / place / "k.cu").write_text(text)
    assert shown(tmp_path, kernel_of()) == ("a[0] = 1.0f;", ())


def test_a_file_that_was_changed_is_said_to_be(tmp_path: Path) -> None:
    """By the size that the report holds, else by a line that it does not have; line ends do not count."""
    (tmp_path / "k.cu").write_bytes(TEXT.replace("\n", "\r\n").encode())
    same = SourceFile(compiled_bytes=len(TEXT))
    assert shown(tmp_path, kernel_of(known=same)) == ("a[0] = 1.0f;", ())
    _, notes = shown(tmp_path, kernel_of(known=SourceFile(compiled_bytes=7)))
    assert "is not the file that was compiled" in notes[0]
    text, notes = shown(tmp_path, kernel_of(line=99))
    assert text is None
    assert notes


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    """Links that lead out are not followed, what is no text is left out, and a file is no folder."""
    (tmp_path / "secret.cu").write_text(TEXT)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "k.cu").symlink_to(tmp_path / "secret.cu")
    assert shown(tmp_path / "in", kernel_of())[0] is None
    (tmp_path / "in" / "k.cu").unlink()
    (tmp_path / "in" / "k.cu").write_bytes(b"\x7fELF\0\0" + bytes(64))
    assert shown(tmp_path / "in", kernel_of())[0] is None
    assert shown(tmp_path / "in", kernel_of("/etc/../secret.cu"))[0] is None
    with pytest.raises(InputError, match="is not a folder of sources"):
        SourceFolder(tmp_path / "secret.cu")
