"""Lines, instructions and functions of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent
from rooflens.model.hotspots import leading_stall
from rooflens.model.records import ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model import records
    from rooflens.model.records import Grain


class Hotspot:
    """A source line, an instruction or a function, and its share of its kernel.

    >>> import rooflens as rl
    >>> spot = rl.open("sampled.ncu-rep")[0].hotspots(by="sass")[0]
    >>> spot.pc, round(spot.share, 2), spot.measures["samples"]
    (16, 0.78, 7.0)
    """

    __slots__ = ("_record", "_samples")

    def __init__(self, record: records.Hotspot, samples: float | None) -> None:
        """Take a record, and the samples of its whole kernel; None if there are no samples."""
        self._record = record
        self._samples = samples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hotspot):
            return NotImplemented
        return (self._record, self._samples) == (other._record, other._samples)

    def __hash__(self) -> int:
        return hash((self.by, self.file, self.line, self.function, self.pc))

    def __repr__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else self.function or "?"
        if self.pc is not None:
            where = f"{self.sass or 'instruction'} at {self.pc:#x}{f', {where}' if self.file else ''}"
        part = "" if self.share is None else f": {percent(self.share)} of the samples"
        return f"<Hotspot {where}{part}>"

    @property
    def by(self) -> Grain:
        """Kind of the place: `line`, `sass` (an instruction) or `function`."""
        return self._record.by

    @property
    def file(self) -> str | None:
        """Path of the source file as given to the compiler; None if the report has no line information."""
        return self._record.file

    @property
    def line(self) -> int | None:
        """Number of the source line, from 1; None like `file`."""
        return self._record.line

    @property
    def function(self) -> str | None:
        """Function that contains its instructions; None for a line in several functions."""
        return self._record.function

    @property
    def pc(self) -> int | None:
        """Offset of the instruction from the start of the kernel's code, in bytes; None for lines and functions."""
        return self._record.pc

    @property
    def sass(self) -> str | None:
        """The instruction as text; None for lines and functions, and if it cannot be disassembled."""
        return self._record.sass

    @property
    def text(self) -> str | None:
        """The text of the source line; None if the report does not embed the file."""
        return self._record.text

    @property
    def share(self) -> float | None:
        """Fraction of the kernel's samples taken here, 0 to 1; None if it was not sampled."""
        return ratio(self._record.measures.get("samples", 0.0), self._samples)

    @property
    def stall(self) -> str | None:
        """What most of its samples wait for, such as `long_scoreboard`; None if samples have no reasons."""
        return leading_stall(self._record)

    @property
    def measures(self) -> Mapping[str, float]:
        """Amounts by measure (`rooflens.model.hotspots.MEASURES`), stalls included; zeros are left out."""
        return self._record.measures
