"""The only checker of TOML and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from support.loops import for_all

from rooflens.checking import CheckedTable, parse_json, parse_toml
from rooflens.errors import InputError

TOML = parse_toml('name = "a"\n[[case]]\nsizes = [1, 2]\n[[case]]\nshare = 0.0\n', "`x.toml`", "see docs")


def test_what_is_right_comes_out_as_it_is() -> None:
    """Texts, numbers, lists and tables are read by key."""
    TOML.check_keys(("name", "case"), ("more",))
    first, second = TOML.tables("case")
    assert (TOML.text("name"), TOML.one_of("name", ("a", "b")), list(TOML)) == ("a", "a", ["name", "case"])
    assert (first.counts("sizes", 2), second.number("share", zero=True)) == ((1, 2), 0.0)
    assert "sizes" in first
    assert "sizes" not in second


@for_all(
    "check, message",
    [
        (lambda: TOML.check_keys(("name",)), "`x.toml`: unknown key `case`"),
        (lambda: TOML.check_keys(("name", "case", "kind")), "`x.toml`: missing key `kind`"),
        (lambda: TOML.table("name"), "`x.toml`: `name` must be a table, not 'a'"),
        (lambda: TOML.tables("name"), "`x.toml`: `name` must be a list of tables, not 'a'"),
        (lambda: TOML.one_of("name", ("b", "c")), "`x.toml`: `name` must be `b` or `c`, not 'a'"),
        (
            lambda: TOML.tables("case")[0].text("sizes"),
            "`case[0].sizes` must be a non-empty text",
        ),
        (lambda: TOML.tables("case")[0].counts("sizes", 3), "`case[0].sizes` must be a list of 3 whole numbers"),
        (lambda: TOML.tables("case")[1].number("share"), "`case[1].share` must be a positive number, not 0.0"),
        (lambda: TOML.tables("case")[1].count("share"), "`case[1].share` must be a positive whole number, not 0.0"),
        (lambda: TOML.tables("case")[1].text("name"), "`x.toml`: missing key `case[1].name`"),
    ],
)
def test_a_fault_is_named_with_file_table_and_key(check: Callable[[], object], message: str) -> None:
    """An error says where it is and what was expected, with the document's hint."""
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        check()
    assert caught.value.hint == "see docs"


@for_all("value", [True, "1", None, float("nan"), float("inf"), -1])
def test_what_is_no_amount_is_refused(value: Any) -> None:
    """Booleans, texts, NaN, infinity and negative numbers are refused as numbers and counts."""
    table = CheckedTable("x", {"n": value})
    for check in (table.number, table.count):
        with pytest.raises(InputError, match="`n` must be a"):
            check("n", zero=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "`x` is no run: not JSON"), ("[]", "must be an object"), ('{"a": 1}', "`a` must be an object, not 1")],
)
def test_json_is_called_by_its_own_words(text: str, message: str) -> None:
    """A TOML table is called an object in errors about JSON."""
    with pytest.raises(InputError, match=message):
        parse_json(text, "`x` is no run").table("a")


@dataclass(frozen=True)
class Point:
    """A record with an optional field."""

    x: int
    y: int
    label: str = ""


def test_a_record_is_made_of_a_table() -> None:
    """Values fill a dataclass by name; missing or unknown names are errors."""
    assert CheckedTable("f", {"y": 2}).record(Point, x=1) == Point(1, 2)
    with pytest.raises(InputError, match="f: missing key `y`"):
        CheckedTable("f", {"x": 2}).record(Point)
    with pytest.raises(InputError, match="f: unknown key `z`"):
        CheckedTable("f", {"x": 1, "y": 2, "z": 3}).record(Point)


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
@pytest.mark.parametrize("depth", [40, 1_000, 100_000])
def test_what_is_nested_deeply_is_no_document(parse: Callable[[str, str], CheckedTable], depth: int) -> None:
    """A deeply nested document is refused, without a RecursionError and without walking it."""
    text = f'{{"a": {"[" * depth}{"]" * depth}}}' if parse is parse_json else f"a = {'[' * depth}{']' * depth}"
    with pytest.raises(InputError, match="nested too deeply"):
        parse(text, "`x`")


def test_numbers_have_a_range() -> None:
    """Counts fit a table's column, and numbers can be divided and squared; long ones are cut in errors."""
    table = CheckedTable("x", {"n": 10**400, "small": 1e-300, "zero": 0.0, "count": 2**63, "most": 2**63 - 1})
    for check, key in ((table.number, "n"), (table.number, "small"), (table.count, "count"), (table.count, "n")):
        with pytest.raises(InputError, match="cannot be") as caught:
            check(key)
        assert len(str(caught.value)) < 200
    assert (table.count("most"), table.number("zero", zero=True)) == (2**63 - 1, 0.0)


@for_all("key", [".".join("a" * 200_000), '"a".' * 200_000, f"x = {{{'a . ' * 200_000}b"])
def test_a_key_of_very_many_parts_is_refused_unread(key: str) -> None:
    """A dotted key is counted before it is parsed, which would take minutes for a line of 400 kB."""
    with pytest.raises(InputError, match=re.escape("`x.toml`: nested too deeply")):
        parse_toml(f"{key} = 1", "`x.toml`")


def test_a_value_has_its_type_and_no_other() -> None:
    """Values come as a list; a truth value is no number, and an integer of any size can be shown."""
    table = CheckedTable(
        "x", {"n": [1, 2], "yes": True, "many": 16**5000, "long": "x" * 20_000, "nul": "a\0", "deep": [[1]]}
    )
    assert table.values_of("n", int, "a number", is_list=True) == [1, 2]
    assert table.values_of("yes", bool, "true or false") == [True]
    for key, kind, said in (
        ("n", int, "`n` must be a value, not [1, 2]"),
        ("yes", int, "`yes` must be a value, not true"),
        ("many", int, "`many` must be a value, not an integer of 20,001 bits"),
        ("long", str, "`long` has 20,000 characters, over 16,384"),
        ("nul", str, "`nul` holds a control character"),
        ("deep", int, "`deep` must be a value, not [[1]]"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            table.values_of(key, kind, "a value")
