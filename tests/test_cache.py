"""The cache: its place, and that its files are trusted only if complete, and if nobody else can have written them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from rooflens.cache import cache_folder, keep, kept, trim

DATA = b"one\r\ntwo \xb5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rooflens"


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache is where XDG says, else below the home folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rooflens"
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "relative/cache", "."):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / ".cache" / "rooflens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "rooflens"


def test_what_is_kept_is_read_again(folder: Path) -> None:
    """A reader gets every byte back, and the cache holds nothing else."""
    assert kept("a") is None
    keep("a", DATA)
    assert kept("a") == DATA
    assert [file.name for file in folder.iterdir()] == ["a"]


def test_others_may_not_look_into_it(folder: Path) -> None:
    """Folders and files of the cache are for this user only, whatever the umask; folders that are there are closed."""
    folder.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        keep("templates/a", DATA)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "templates", folder / "templates" / "a")]
    assert modes == [0o700, 0o700, 0o600]


def _by_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def _by_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


OTHERS: dict[str, Callable[[Path], None]] = {
    "a file that others may write": lambda file: file.chmod(0o666),
    "a file that its group may write": lambda file: file.chmod(0o620),
    "a link": _by_link,
    "a pipe, which would wait for its writer": _by_pipe,
    "a folder that others may write": lambda file: file.parent.chmod(0o777),
    "a cache that others may write": lambda file: file.parent.parent.chmod(0o777),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("change", [*OTHERS.values()], ids=[*OTHERS])
def test_what_others_may_have_written_is_not_read(folder: Path, change: Callable[[Path], None]) -> None:
    """Such a file counts as missing, is never opened, and is replaced by a private one."""
    keep("templates/a", DATA)
    change(folder / "templates" / "a")
    assert kept("templates/a") is None
    keep("templates/a", DATA)
    assert kept("templates/a") == DATA


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such users")
def test_a_folder_of_somebody_else_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cache is another user's, or a link leads away from it, nothing is read, written or removed."""
    keep("templates/a", DATA)
    with monkeypatch.context() as patched:
        patched.setattr("rooflens.files.os.geteuid", lambda: 12345)
        keep("templates/b", DATA)
        trim("templates", 0)
        assert kept("templates/a") is None
    assert [file.name for file in (folder / "templates").iterdir()] == ["a"]
    (folder / "templates").rename(folder / "moved")
    (folder / "templates").symlink_to("moved")
    keep("templates/b", DATA)
    trim("templates", 0)
    assert kept("templates/a") is None
    assert [file.name for file in (folder / "moved").iterdir()] == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sudo of this kind")
def test_root_by_sudo_shares_the_cache_of_its_caller(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written under `sudo` belongs to who called it, and is read by both."""
    keep("a", DATA)
    owner = folder.stat().st_uid
    monkeypatch.setattr("rooflens.files.os.geteuid", lambda: 0)
    monkeypatch.setattr("rooflens.files.os.chown", lambda *_, **__: None)
    monkeypatch.setenv("SUDO_UID", str(owner + 1))
    monkeypatch.setenv("SUDO_GID", "1")
    assert (kept("a") is None) == (owner != 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert kept("a") == DATA


@pytest.mark.parametrize("damage", [lambda kept: kept[:-1], lambda kept: kept + b"!", lambda _: b"", lambda _: b"\xff"])
def test_what_is_damaged_is_not_used(folder: Path, damage: object) -> None:
    """A file without its digest counts as missing, and is replaced by a complete one."""
    keep("a", DATA)
    (folder / "a").write_bytes(damage((folder / "a").read_bytes()))  # type: ignore[operator]
    assert kept("a") is None
    keep("a", DATA)
    assert kept("a") == DATA


def test_a_cache_that_cannot_be_used_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the folder cannot be made, or there is no home, nothing is cached."""
    folder.write_text("a file, not a folder")
    keep("a", DATA)
    assert kept("a") is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", _no_home)
    keep("a", DATA)
    assert kept("a") is None


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
