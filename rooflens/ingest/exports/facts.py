"""Facts gathered while an export is read, and the parts left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct, field

from rooflens.ingest.exports.numbers import Style
from rooflens.ingest.exports.tables import Damage

_NAMED = 3


class Facts(Struct):
    """What the tables of one export share.

    Attributes:
        is_wanted: Says which metrics are read.
        style: How numbers are written, according to the last table that showed it.
        unknown_labels: Labels of the details page that stand for no metric we know -> how often they came.
        unknown_units: Units that cannot be converted to a base unit -> how often they came.
        coarse_times: How many launches have a duration scaled so far that fewer than three digits are left.
        is_without_units: Whether values were taken to be in base units, because the row or column of units is missing.
        damage: What could not be read.
    """

    is_wanted: Callable[[str], bool]
    style: Style = field(default_factory=Style)
    unknown_labels: Counter[str] = field(default_factory=Counter)
    unknown_units: Counter[str] = field(default_factory=Counter)
    coarse_times: int = 0
    is_without_units: bool = False
    damage: Damage = field(default_factory=Damage)

    def notes(self) -> list[str]:
        """Say what was left out, one sentence each."""
        said = []
        if self.damage.broken_rows:
            said.append(f"left out {_count(self.damage.broken_rows, 'row')}, cut or broken")
        if self.unknown_labels:
            said.append(
                f"left out {_count(len(self.unknown_labels), 'label')} of unknown metrics: {_some(self.unknown_labels)}"
            )
        if self.unknown_units:
            said.append(
                f"left out values in {_count(len(self.unknown_units), 'unknown unit')}: {_some(self.unknown_units)}"
            )
        if self.coarse_times:
            launches = _count(self.coarse_times, "launch", "es")
            said.append(f"times of {launches} have fewer than 3 digits: `--print-units base` prints all")
        if self.is_without_units:
            said.append("the export has no units: values are read as base units, as `--print-units base` prints them")
        return said


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def _some(counted: Counter[str]) -> str:
    names = [f"`{name}`" for name, _ in counted.most_common(_NAMED)]
    return ", ".join(names) + (", ..." if len(counted) > _NAMED else "")
