from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.report.ci.places import checkout, in_checkout, outside_words


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a checkout with two files, and a secret beside it."""
    for name in ("repo/src/k.cu", "repo/top.cu", "secret.cu"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "repo"


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("{root}/src/k.cu", "src/k.cu"),
        ("{root}/src/gone.cu", "src/gone.cu"),  # below the root it is taken at its word
        ("{root}/src/../src/k.cu", "src/k.cu"),
        ("/build/app/src/k.cu", "src/k.cu"),
        ("/build/app/top.cu", "top.cu"),
        ("src/k.cu", "src/k.cu"),
        ("./src/k.cu", "src/k.cu"),
        ("C:\\work\\src\\k.cu", "src/k.cu"),
        ("/usr/include/stdio.h", None),
        ("../secret.cu", None),
        ("/build/../../secret.cu", None),
        ("{root}/../secret.cu", None),
        ("src", None),
        ("a\\0b", None),
        ("x/" * 4000, None),
        ("n" * 3000, None),
    ],
)
def test_files_are_named_from_the_root_of_the_checkout(root: Path, file: str, found: str | None) -> None:
    """By their own path, or by the end of it that the checkout has; nothing outside it is ever named from there."""
    assert in_checkout(file.format(root=root), root) == found


def test_the_checkout_is_githubs_or_that_of_git(tmp_path: Path) -> None:
    """The workspace where GitHub says so and it is there, else the folder with `.git`, else the working directory."""
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    assert checkout({}, inner) == inner
    (tmp_path / "repo" / ".git").touch()
    assert checkout({}, inner) == tmp_path / "repo"
    assert checkout({"GITHUB_WORKSPACE": str(tmp_path)}, inner) == tmp_path
    assert checkout({"GITHUB_WORKSPACE": str(tmp_path / "gone")}, inner) == tmp_path / "repo"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["src/k.cu"], ""),
        (["/usr/x.h"], "1 line not annotated: /usr/x.h is not in this checkout"),
        (["/usr/x.h", "top.cu", "/usr/x.h"], "2 lines not annotated: /usr/x.h is not in this checkout"),
        (
            ["/usr/x.h", "/y.h", "z.h"],
            "3 lines not annotated: /usr/x.h and 2 other files are not in this checkout",
        ),
    ],
)
def test_what_is_outside_is_counted(root: Path, files: list[str], words: str) -> None:
    """One line says how many are left out, and names the first of their files."""
    assert outside_words(files, root, "line", "not annotated") == words
