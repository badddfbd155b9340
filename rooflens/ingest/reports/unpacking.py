"""Unpack reports that ncu compressed: from 2026.3 on it writes `.ncu-repz`, the ordinary container as zstd frames.

What a file is, its first bytes say, whatever its name. Everything else reads the plain container: it is unpacked into a
temporary file, because NVIDIA's reader wants a path, opens it again for each result and, if older, reads no other.
Standard library only, but for the unpacking itself: a bare GPU box has to tell the two kinds apart.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"NVR\0"
"""A report's first bytes."""

PLAIN_SUFFIX, PACKED_SUFFIX = ".ncu-rep", ".ncu-repz"
"""NVIDIA's reader goes by the name: it finds no results in a compressed report called `.ncu-rep`, nor the other way."""

MAX_UNPACKED_BYTES = 4 << 30
"""A file that unpacks to more is refused: zstd makes terabytes of a few megabytes. Published reports unpack to under
4 MB, and to 22 kB a kernel where there are many: this holds 190,000 of those."""

INTACT_HINT = "copy the report again from the machine that wrote it, or profile again"
NOT_A_REPORT_HINT = "`ncu -o NAME` writes the `.ncu-rep` and `.ncu-repz` files that rooflens reads"

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MOST_RATIO = 40
"""Published reports shrink 1.9 to 19 times; only a time limit is made of this."""

_CHUNK_BYTES = 1 << 20


def is_packed(path: Path) -> bool:
    """Return whether the file at `path` is zstd-compressed; False where it is no file that can be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_ZSTD_MAGIC)) == _ZSTD_MAGIC
    except OSError:
        return False  # who opens it next says why


def likely_bytes(path: Path) -> int:
    """Return about how large the report at `path` is at most, unpacked; 0 where there is none."""
    if not path.is_file():
        return 0
    file_bytes = path.stat().st_size
    return min(file_bytes * _MOST_RATIO, MAX_UNPACKED_BYTES) if is_packed(path) else file_bytes


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Give the path of the plain report: `path` itself, or a temporary file that goes when the block is left.

    Raises:
        InputError: A compressed file is damaged, holds no report, unpacks to too much, or there is no room for it.
    """
    if not is_packed(path):
        yield path
        return
    with _temporary_folder() as folder:
        plain = Path(folder, f"report{PLAIN_SUFFIX}")
        try:
            with plain.open("wb") as file:
                for chunk in chunks(path):
                    file.write(chunk)
        except OSError as error:
            raise _no_room(error) from error
        yield plain


def _temporary_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="rooflens-")
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> InputError:
    hint = "a compressed report is unpacked into a temporary folder: TMPDIR names another one"
    return InputError(f"cannot be unpacked: {error.strerror or error}", hint)


def chunks(path: Path) -> Iterator[bytes]:
    """Yield what is in the compressed report at `path`, piece by piece.

    Raises:
        InputError: The file is damaged, holds no report, or unpacks to more than `MAX_UNPACKED_BYTES`.
        OSError: It cannot be opened.
    """
    import pyarrow as pa  # noqa: PLC0415 - 100 ms and a native library: only where a report is compressed

    unpacked_bytes = 0
    with path.open("rb") as file, pa.CompressedInputStream(file, "zstd") as stream:
        while chunk := _next_chunk(stream):
            if not unpacked_bytes and not chunk.startswith(MAGIC):
                break
            unpacked_bytes += len(chunk)
            if unpacked_bytes > MAX_UNPACKED_BYTES:
                raise InputError(
                    f"unpacks to more than {MAX_UNPACKED_BYTES >> 20:,} MiB, the most that rooflens takes",
                    "profile fewer kernels into one report, or unpack it yourself with `zstd -d`",
                )
            yield chunk
    if not unpacked_bytes:
        raise InputError(
            "not an Nsight Compute report: it is zstd-compressed, but what is in it does not start with `NVR`",
            NOT_A_REPORT_HINT,
        )


def _next_chunk(stream: Any) -> bytes:
    try:
        return bytes(stream.read(_CHUNK_BYTES))
    except OSError as error:  # with a number it is the disk's, without one zstd's
        reason = error.strerror or str(error).rpartition("failed: ")[2]
        raise InputError(f"damaged: the compressed report cannot be unpacked: {reason}", INTACT_HINT) from error
