"""Unpack reports: since 2026.3 ncu writes `.ncu-repz`, the usual container as zstd frames; people also use gzip.

The first bytes decide what a file is, not its name, and doubly compressed files are unpacked twice. A few megabytes can
unpack to terabytes, so output is counted as it comes, and deleted if it grows too large. Standard library only, except
for zstd before Python 3.14: a bare GPU machine must tell the formats apart too.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from rooflens.errors import INTACT_HINT, InputError
from rooflens.files import is_utf16
from rooflens.foreign import by_name, foreign_file

MAGIC = b"NVR\0"
"""A report's first bytes."""

PLAIN_SUFFIX, PACKED_SUFFIX = ".ncu-rep", ".ncu-repz"
"""NVIDIA's reader trusts the name: it sees no results in a compressed report called `.ncu-rep`, nor in an uncompressed
report called `.ncu-repz`."""

INCOMPLETE_SUFFIX = ".incomplete"
"""Appended to the name of a report whose collection failed. Of such a file the complete part is read; any other
truncated report is refused."""

UNPROFILED_SUFFIX, LOG_SUFFIX = ".unprofiled.json", ".ncu.log"
"""Replace a report's suffix in the names of its un-profiled run and of ncu's log."""

MAX_UNPACKED_BYTES = 4 << 30
"""Default limit on unpacked size. Published reports unpack to less than 4 MB, or 22 kB per kernel if there are many
kernels, so this suffices for 190,000 of those."""

RERECORD_HINT = "record the report again, or copy it again from where it was made"
NOT_A_REPORT_HINT = (
    "`ncu -o NAME` writes the `.ncu-rep` and `.ncu-repz` files that rooflens reads; what ncu prints and traces of "
    "torch.profiler and nsys are read as well"
)

_COMPRESSIONS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip"}
"""First bytes -> compression of a file."""

_MOST_LAYERS = 2
"""Enough for a `.ncu-repz` that was compressed again on its way; more layers must be deliberate."""

_LIKELY_RATIO = 40
"""Published reports shrink 1.9 to 19 times; only a time limit depends on this value."""

_MOST_RATIO = 200
_UNSUSPECTED_BYTES = 64 << 20
"""A file that unpacks to more than this, and to more than 200 times its input, is a bomb: published reports shrink at
most 41 times at Zstandard's highest level, zeros 1,000 times and more."""

_UNPACKED_CHUNK_BYTES = 1 << 20
_STEP_BYTES = 64 << 10
"""How much a layer unpacks at once: at most this much is lost before a cut."""

HEAD_BYTES = 4096
"""Bytes at the start of a file that identify its format."""


def sidecar(report: Path) -> Path:
    """Return the path of a report's un-profiled run, which is the same whether the report is compressed or not."""
    return _companion(report, UNPROFILED_SUFFIX)


def log_of(report: Path) -> Path:
    """Return the path of ncu's log, kept if collecting a report fails."""
    return _companion(report, LOG_SUFFIX)


def _companion(report: Path, suffix: str) -> Path:
    return report.with_name(report.name.removesuffix(PACKED_SUFFIX).removesuffix(PLAIN_SUFFIX) + suffix)


def first_bytes(path: Path, size_bytes: int = 4) -> bytes:
    """Return the first bytes of a file; empty if it is not a readable file."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(size_bytes)
    except OSError:
        return b""  # opening it will report the error


def is_packed(path: Path) -> bool:
    """Return whether a file is compressed; False if it is not a readable file."""
    return _compression(first_bytes(path)) is not None


def is_incomplete(path: Path) -> bool:
    """Return whether a file's name marks a report whose collection failed."""
    return path.name.endswith(INCOMPLETE_SUFFIX)


def likely_bytes(path: Path) -> int:
    """Estimate an upper limit of a report's unpacked size in bytes; 0 if there is no report."""
    if not path.is_file():
        return 0
    file_bytes = path.stat().st_size
    return min(file_bytes * _LIKELY_RATIO, MAX_UNPACKED_BYTES) if is_packed(path) else file_bytes


@contextmanager
def unpacked(path: Path, max_bytes: int | None = None, *, to_damage: bool = False) -> Iterator[Path]:
    """Give the path of an uncompressed report: `path` itself, or a temporary file removed when the block ends.

    NVIDIA's reader needs a path, which it reopens for each result.

    Args:
        path: The file, plain or compressed.
        max_bytes: Limit on unpacked size; by default `MAX_UNPACKED_BYTES`.
        to_damage: Give the part before the damage if a compressed file is cut or damaged.

    Raises:
        InputError: A compressed file is damaged, holds no report, is too large unpacked, or the disk is full.
    """
    if not is_packed(path):
        yield path
        return
    pieces = chunks(path, max_bytes)
    with temporary_file(_up_to_damage(pieces) if to_damage else pieces, f"report{PLAIN_SUFFIX}") as plain:
        yield plain


def _up_to_damage(pieces: Iterator[bytes]) -> Iterator[bytes]:
    with suppress(_DamagedError):
        yield from pieces


@contextmanager
def spooled(stream: BinaryIO | IO[bytes], max_bytes: int | None = None) -> Iterator[Path]:
    """Give the path of a temporary file with the whole content of a pipe; it is removed when the block ends.

    Args:
        stream: Read to its end and stored as it is, compressed or not.
        max_bytes: Limit on its size; by default `MAX_UNPACKED_BYTES`.

    Raises:
        InputError: The pipe breaks, gives too much, or the disk is full.
    """
    counted = _LimitedStream(stream, max_bytes or MAX_UNPACKED_BYTES, "sends")
    with temporary_file(iter(lambda: counted.read(_UNPACKED_CHUNK_BYTES) or b"", b""), "stdin") as file:
        yield file


@contextmanager
def temporary_file(pieces: Iterator[bytes], name: str) -> Iterator[Path]:
    """Write a file into a temporary folder that is removed when the block ends.

    Raises:
        InputError: The disk is full.
    """
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - most reports are plain files

    with ExitStack() as stack:
        try:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="rooflens-")), name)
            with place.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
        except OSError as error:
            hint = "a compressed report is unpacked into a temporary folder: TMPDIR can name another one"
            raise InputError(f"cannot be unpacked: {error.strerror or error}", hint) from error
        yield place


def chunks(path: Path, max_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the content of a compressed file in pieces, through all layers of compression.

    Raises:
        InputError: The file is damaged, holds no report, or a layer unpacks to more than `max_bytes`, by default
            `MAX_UNPACKED_BYTES`.
        OSError: The file cannot be opened.
    """
    limit = max_bytes or MAX_UNPACKED_BYTES
    with path.open("rb") as file:
        stream = io.BufferedReader(file.raw, _STEP_BYTES)
        kinds: list[str] = []
        while kind := _compression(stream.peek(4)):
            # Each layer multiplies the last, so a few hundred bytes could ask for terabytes.
            if len(kinds) == _MOST_LAYERS:
                raise InputError(f"compressed more than {_MOST_LAYERS} times, as no report is", NOT_A_REPORT_HINT)
            kinds.append(kind)
            layer = _LimitedStream(_Layer(stream, kind), limit, "unpacks to", file.raw.tell)
            stream = io.BufferedReader(layer, _UNPACKED_CHUNK_BYTES)
        head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        other = by_name(path.name) if _may_be_report(head) else foreign_file(head, path.name)
        if kinds and not head.startswith(MAGIC) and other is not None:
            raise InputError(f"not an Nsight Compute report, but {other.what}, {kinds[0]}-compressed", other.instead)
        if kinds and not _may_be_report(head):
            raise InputError(
                f"not an Nsight Compute report: it is {kinds[0]}-compressed, but what is in it does not start with "
                "`NVR`",
                NOT_A_REPORT_HINT,
            )
        while piece := stream.read1(_UNPACKED_CHUNK_BYTES):  # `read` would lose what came before damage
            yield piece


def _compression(head: bytes) -> str | None:
    return next((kind for magic, kind in _COMPRESSIONS.items() if head.startswith(magic)), None)


def _may_be_report(head: bytes) -> bool:
    """Return whether these first bytes may begin a report, or a text that may be an export."""
    return head.startswith(MAGIC) or (bool(head) and (b"\0" not in head or is_utf16(head)))


class _DamagedError(InputError):
    """A truncated or damaged layer of compression."""


class _Layer:
    def __init__(self, stream: Any, kind: str) -> None:
        self._kind = kind
        if kind == "gzip":
            import gzip  # noqa: PLC0415 - most reports are plain files

            self._stream: Any = gzip.GzipFile(fileobj=stream)
            self._errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
        else:
            self._stream, self._errors = _zstd(stream)

    def read(self, size_bytes: int) -> bytes:
        try:
            # Small steps: the library unpacks a whole step before anything here can count its output.
            return bytes(self._stream.read(min(size_bytes, _STEP_BYTES)))
        except self._errors as error:  # with a number it is the disk's error, else the library's
            reason = getattr(error, "strerror", None) or str(error).rpartition("failed: ")[2]
            raise _DamagedError(f"damaged: the compressed report cannot be unpacked: {reason}", INTACT_HINT) from error


def _zstd(stream: Any) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what unpacks zstd frames, and the errors that it raises at damage.

    Raises:
        ModuleNotFoundError: pyarrow is not installed, and this Python is older than 3.14, which unpacks zstd itself.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - 100 ms and a native library: only where it is needed
    except ModuleNotFoundError as missing:
        try:
            from compression.zstd import ZstdError, ZstdFile  # noqa: PLC0415 - as above
        except ModuleNotFoundError:
            raise missing from None
        return ZstdFile(stream), (OSError, EOFError, ZstdError)
    return pa.CompressedInputStream(stream, "zstd"), (OSError,)


class _LimitedStream(io.RawIOBase):
    """A stream that raises an error if it gives more than its limit, or far more than its input explains."""

    def __init__(self, stream: Any, max_bytes: int, verb: str, read_bytes: Callable[[], int] | None = None) -> None:
        self._stream, self._max_bytes, self._verb, self._read_bytes = stream, max_bytes, verb, read_bytes
        self._given_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer))
        self._given_bytes += len(piece)
        if self._given_bytes > self._max_bytes:
            raise InputError(
                f"{self._verb} more than {_size_words(self._max_bytes)}, the limit",
                "ROOFLENS_MAX_UNPACKED=SIZE raises it if you trust the file and have room; or profile fewer kernels",
            )
        # Checked while unpacking, so that a bomb is noticed after megabytes, not once the disk is full.
        if self._read_bytes and self._given_bytes > max(_UNSUSPECTED_BYTES, _MOST_RATIO * self._read_bytes()):
            raise InputError(
                f"unpacks to more than {_MOST_RATIO} times its size, as no report does",
                "if you trust the file, unpack it with `gzip -d` or `zstd -d`, and give what comes out",
            )
        buffer[: len(piece)] = piece
        return len(piece)


def _size_words(size_bytes: int) -> str:
    factor, unit = next((one for one in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if size_bytes >> one[0]), (0, "B"))
    return f"{size_bytes / (1 << factor):.6g} {unit}"
