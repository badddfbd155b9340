from __future__ import annotations

import csv
import io
import json
import re
from importlib.resources import files

from support.loops import for_all

from rooflens.format import harmless
from rooflens.report.data import csv_text, json_text

STEERING = "\x1b[31m\x07\x7f\x9b\u061c\u202e\u2066\u2028"


def _cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_json_holds_names_as_they_are_and_shows_none_that_steers() -> None:
    """Every character is kept; those that a terminal obeys or hides are escaped, and letters are not."""
    document = {"name": f"größe{STEERING}核\u200b"}
    text = json_text(document)
    assert json.loads(text) == document
    assert "größe" in text
    assert "核" in text
    assert all(char.isprintable() or char == "\n" for char in text)


@for_all("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "-2+3+cmd|' /C calc'!A0"])
def test_a_text_that_a_spreadsheet_would_run_is_a_text_again(name: str) -> None:
    """An apostrophe is put before it, unless plain texts are requested."""
    assert _cells(csv_text(["name"], [{"name": name}]))[1] == [f"'{name}"]
    assert _cells(csv_text(["name"], [{"name": name}], raw_cells=True))[1] == [name]


def test_the_button_of_the_page_writes_cells_alike() -> None:
    """The page's own CSV guards the same beginnings, and replaces the same characters."""
    script = files("rooflens.report").joinpath("assets/report/kernels_csv.js").read_text(encoding="utf-8")
    guarded, replaced = re.search(r"/\^\[(.+?)\]/", script), re.search(r"STEERING = /(.+)/g;", script)
    assert guarded
    assert replaced
    found = {char for char in map(chr, range(0x3000)) if csv_text(["a"], [{"a": char}])[2:] == f"'{harmless(char)}\n"}
    assert re.compile(f"[{guarded[1]}]").findall("".join(map(chr, range(0x3000)))) == sorted(found)
    steers = [char for char in map(chr, range(0x3000)) if harmless(char) != char]
    assert re.compile(replaced[1]).findall("".join(map(chr, range(0x3000)))) == steers


def test_numbers_stay_numbers() -> None:
    """A negative number begins like a formula and is kept; missing values are empty, and zero is zero."""
    rows = [{"a": -1.5, "b": 0, "c": None, "d": True, "more": 1}, {}]
    assert csv_text(["a", "b", "c", "d"], rows) == "a,b,c,d\n-1.5,0,,True\n,,,\n"


def test_no_control_character_gets_into_the_csv() -> None:
    """Control characters become question marks; line ends and tabs stay within their cell."""
    ((name,),) = _cells(csv_text(["name"], [{"name": f"a{STEERING}b\nc\td\re"}]))[1:]
    assert name == "a?[31m???????b\nc\td?e"


@for_all("name", ["a\rb", "a\r\nb", 'a"b', "a,b", "\r", '"', "a\nb", " a "])
def test_a_row_is_one_row_whatever_is_in_its_cells(name: str) -> None:
    """Line ends of any kind, quotes and commas are quoted, and read back unchanged."""
    text = csv_text(["name", "next"], [{"name": name, "next": "x"}], raw_cells=True)
    assert _cells(text) == [["name", "next"], [name, "x"]]
