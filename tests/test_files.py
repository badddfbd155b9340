"""The only reader of texts, and the only writer of files, which writes completely or not at all."""

from __future__ import annotations

import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rooflens.errors import InputError
from rooflens.files import PARTIAL, read_text, refuse_special, replacing, write_whole


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read `.*x`: No such file"), (b"\xff", "x` is not a text file")]
)
def test_what_is_no_text_is_an_error_of_the_users(tmp_path: Path, content: bytes | None, message: str) -> None:
    """A missing file, and one that is not UTF-8, are named with the caller's hint."""
    if content is not None:
        (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_text(tmp_path / "x", "docs show one")
    assert caught.value.hint == "docs show one"


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    """Missing folders above a file are made, and hold nothing else."""
    file = tmp_path / "a" / "b" / "page.html"
    write_whole(file, "page \udcff\n")
    assert file.read_bytes() == b"page ?\n"
    assert list(file.parent.iterdir()) == [file]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """A new file has the permissions of the user's umask, not those of a temporary file."""
    write_whole(tmp_path / "new", b"")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    """A private file stays private when replaced."""
    file = tmp_path / "old"
    file.write_text("old")
    file.chmod(0o600)
    write_whole(file, "new", durable=True)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)


@pytest.mark.parametrize("failing", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, failing: BaseException) -> None:
    """A full disk, or Ctrl-C midway, leaves the old file and no part of the new content."""
    file = tmp_path / "file"
    file.write_text("old")

    def fail() -> None:
        with replacing(file) as partial:
            partial.write_text("half of the n")
            assert partial.name.endswith(PARTIAL)
            raise failing

    with pytest.raises(type(failing)):
        fail()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_error_names_the_file_and_what_to_do(tmp_path: Path) -> None:
    """A place that cannot be written is an input error with the caller's hint."""
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot write `.*file/below`: (Not a directory|File exists)") as caught:
        write_whole(tmp_path / "file" / "below", "", hint="give another --store")
    assert caught.value.hint == "give another --store"


def test_what_must_last_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content reaches the disk before the name, and the name before the call returns."""
    there: list[bool] = []
    file = tmp_path / "file"
    monkeypatch.setattr(os, "fsync", lambda _: there.append(file.exists()))
    write_whole(file, "content", durable=True)
    assert there == [False, True]
    write_whole(file, "content")
    assert len(there) == 2


def test_a_text_beyond_measure_is_none(tmp_path: Path) -> None:
    """A file of gigabytes is not read to its end, and a named pipe not at all."""
    large, pipe = tmp_path / "large.json", tmp_path / "pipe.json"
    with large.open("wb") as stream:
        stream.truncate(5 << 30)
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="over 64 MiB"):
        read_text(large)
    with pytest.raises(InputError, match="not a regular file"):
        read_text(pipe, is_named=False)


def test_what_is_being_written_is_private(tmp_path: Path) -> None:
    """Nobody else can read a file before it has the permissions of the replaced file."""
    with replacing(tmp_path / "file") as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        partial.write_text("content")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_nothing_is_written_through_a_link_laid_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link under the name of the partial file is replaced, and its target keeps its content."""
    victim = tmp_path / "victim"
    victim.write_text("old")
    monkeypatch.setattr("os.urandom", bytes)
    for name in ("page.html.partial", f".page.html.{bytes(8).hex()}.partial"):
        (tmp_path / name).symlink_to(victim)
    with pytest.raises(InputError, match="File exists"):
        write_whole(tmp_path / "page.html", "new")
    assert victim.read_text() == "old"


def test_a_link_is_refused_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    """A symbolic link, dangling or not, is neither replaced nor followed; the hint names its target."""
    victim = tmp_path / "victim"
    victim.write_text("old")
    for target in (victim, tmp_path / "none", tmp_path):
        link = tmp_path / "link"
        link.symlink_to(target)
        with pytest.raises(InputError, match="is a symbolic link: it is not overwritten") as caught:
            write_whole(link, "new")
        assert str(target) in caught.value.hint
        link.unlink()
    assert victim.read_text() == "old"
    assert not (tmp_path / "none").exists()


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a named pipe, a socket and a device are left unchanged."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)  # socket paths must be short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    places = {"pipe": "a named pipe", "folder": "a folder", "socket": "a socket", "/dev/null": "a device"}
    for name, kind in places.items():
        with pytest.raises(InputError, match=f"is {kind}: it is not overwritten"):
            write_whole(tmp_path / name, "new")
    refuse_special(tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe", "socket"]


def test_two_who_write_one_file_both_end_well(tmp_path: Path) -> None:
    """However many write at once, none fails, and the final file is complete."""
    file, contents = tmp_path / "file", [str(number) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: [write_whole(file, content) for _ in range(5)], contents))
    assert file.read_text() in contents
    assert list(tmp_path.iterdir()) == [file]


def test_a_name_may_be_as_long_as_a_name_can_be(tmp_path: Path) -> None:
    """Names of 255 bytes of any characters are written; a longer name is an error with the reason."""
    for name in ("x" * 250 + ".html", "\u6838" * 85):
        write_whole(tmp_path / name, "content")
        assert (tmp_path / name).read_text() == "content"
    with pytest.raises(InputError, match="File name too long"):
        write_whole(tmp_path / ("x" * 256), "content")


@pytest.mark.parametrize(
    ("user", "sudo", "is_given"),
    [(0, ("1000", "100"), True), (1000, ("1000", "100"), False), (0, ("", ""), False), (0, ("x", "1"), False)],
)
def test_what_is_written_under_sudo_belongs_to_the_user(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    sudo: tuple[str, str],
    is_given: bool,  # noqa: FBT001 - a table
) -> None:
    """Under `sudo`, new files and folders belong to the calling user, and existing folders are unchanged."""
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "chown", lambda path, uid, gid, **_: given.append((path.name.rpartition(".")[2], uid, gid)))
    monkeypatch.setenv("SUDO_UID", sudo[0])
    monkeypatch.setenv("SUDO_GID", sudo[1])
    write_whole(tmp_path / "out" / "deep" / "x.html", "page")
    expected = [("deep", 1000, 100), ("out", 1000, 100), ("partial", 1000, 100)]
    assert given == (expected if is_given else [])
    assert (tmp_path / "out" / "deep" / "x.html").read_text() == "page"
