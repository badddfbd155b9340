"""Records: whatever the standard library's frozen dataclasses do, ours do too."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from rooflens.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Ours:
    """One record."""

    name: str
    share: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    spots: tuple[int, ...] = ()

    @property
    def double(self) -> float:
        """Work something out."""
        return 2 * (self.share or 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """The same of the standard library."""

    name: str
    share: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    spots: tuple[int, ...] = ()


VALUES: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    (("a",), {}),
    (("a", 0.5), {"spots": (1, 2)}),
    ((), {"name": "b", "parts": {"x": 1.0}}),
    (("a", math.nan), {}),
)


@pytest.mark.parametrize(("given", "named"), VALUES)
def test_records_hold_show_and_compare_as_those_of_the_standard_library(
    given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Values, text, equality, fields and copies are the same, and so is what a pickle gives back."""
    ours, theirs = Ours(*given, **named), Theirs(*given, **named)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert (ours == Ours(*given, **named)) is (theirs == Theirs(*given, **named)) is True
    assert ours != Ours("c")
    for again in (pickle.loads(pickle.dumps(ours)), copy.copy(ours), dataclasses.replace(ours)):  # noqa: S301 - ours
        assert repr(again) == repr(ours)
    assert dataclasses.replace(ours, share=1.0).double == 2.0
    assert [one.name for one in dataclasses.fields(Ours)] == [one.name for one in dataclasses.fields(Theirs)]
    assert list(inspect.signature(Ours).parameters) == list(inspect.signature(Theirs).parameters)
    assert Ours.__match_args__ == Theirs.__match_args__
    assert not hasattr(ours, "__dict__")


def test_each_record_has_its_own_default() -> None:
    """A default that is made is made anew for each record."""
    one, other = Ours("a"), Ours("a")
    one.parts["x"] = 1.0
    assert other.parts == {}


def test_a_record_stays_as_it_is() -> None:
    """No field can be set or deleted, and hashes follow the values."""
    one = Ours("a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'share'"):
        one.share = 1.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'share'"):
        del one.share
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Ours()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    assert hash(Pair(1, "a")) == hash(Pair(1, "a")) != hash(Pair(2, "a"))


@dataclass(frozen=True, slots=True)
class Pair:
    """A record that can be a key."""

    first: int
    second: str


@dataclass(frozen=True, slots=True)
class Worded:
    """A record that writes its own text and takes a field out of comparisons."""

    first: int
    note: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"<{self.first}>"


@dataclass(frozen=True, slots=True)
class Longer(Pair):
    """A record that derives from another."""

    third: int = 3


def test_what_is_not_plain_is_the_standard_librarys() -> None:
    """Own methods stay, fields can be left out of comparisons, and records can derive from records."""
    assert repr(Worded(1)) == "<1>"
    assert Worded(1, "a") == Worded(1, "b")
    assert repr(Longer(1, "a")) == "Longer(first=1, second='a', third=3)"
    with pytest.raises(FrozenInstanceError):
        Longer(1, "a").third = 4  # type: ignore[misc]
