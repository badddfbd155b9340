from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.report.ci.annotations import Annotation, commands, inert


def parse(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as GitHub's runner does: name, properties and text, with its escapes taken back."""
    assert line.startswith("::")
    command, _, text = line[2:].partition("::")
    name, _, properties = command.partition(" ")
    pairs = (pair.partition("=") for pair in properties.split(","))
    return name, {key: _back(value, ":,") for key, _, value in pairs}, _back(text, "")


def _back(text: str, more: str) -> str:
    for char in ("\r", "\n", *more, "%"):
        text = text.replace(f"%{ord(char):02X}", char)
    return text


@pytest.mark.parametrize(
    ("file", "title", "text"),
    [
        ("src/a.cu", "k", "plain"),
        ("a,b:c%2C.cu", "k<ns::a, b>", "100 % :: ::error::x"),
        ("::error file=x::y", "%0A::error::y", "%25 stays"),
    ],
)
def test_what_github_reads_back_is_what_was_said(tmp_path: Path, file: str, title: str, text: str) -> None:
    """Colons, commas and per cents of a name neither end a property nor turn into other characters."""
    place = tmp_path / file
    (line,) = commands([Annotation("warning", str(place), 7, title, text)], tmp_path).splitlines()
    assert parse(line) == ("warning", {"file": file, "line": "7", "title": title}, text)


def test_line_ends_and_control_characters_make_no_second_command(tmp_path: Path) -> None:
    """A name of several lines is one command on one line, and nothing in it reaches a terminal."""
    hostile = "x\r\n::error::gone\u2028::error::y\x1b[2J\x85"
    text = commands([Annotation("notice", f"{tmp_path}/{hostile}", 1, hostile, hostile)], tmp_path)
    assert text.count("\n") == 1
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    name, properties, _ = parse(text.rstrip("\n"))
    assert (name, list(properties)) == ("notice", ["file", "line", "title"])


def test_lines_outside_the_checkout_are_left_out(tmp_path: Path) -> None:
    """A header of CUDA or a path that leads out of the checkout annotates nothing; a file of the checkout does."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").touch()
    files = ("/usr/local/cuda/include/cuda_fp16.hpp", "../secret.cu", "/build/src/a.cu")
    text = commands([Annotation("warning", file, 7, "k", "slow") for file in files], tmp_path)
    assert text == "::warning file=src/a.cu,line=7,title=k::slow\n"


@pytest.mark.parametrize("text", ["::error::x", "a\n  ::error::x", "k ##[error]x", "\t::add-mask::x\n##[group]"])
def test_text_in_a_log_is_no_command(text: str) -> None:
    """The runner obeys a line that begins with two colons, and `##[` anywhere: neither is left, and the rest stays."""
    made = inert(text)
    assert made.replace("\u2060", "") == text
    assert "##[" not in made
    assert not any(line.strip().startswith("::") for line in made.splitlines())
