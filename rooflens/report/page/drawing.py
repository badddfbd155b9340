"""Draw charts one by one, or have whoever knows how draw several at once: the page is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    from rooflens.report.page.charts import Chart

    DrawChart = Callable[[Chart], str]

WORTH_SHARING = 6
"""So many charts take longer to draw than another process takes to begin."""


class Drawing(Protocol):
    """Charts on their way, within a block."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """Give up what is not drawn."""

    def results(self) -> Iterable[tuple[Chart, str]]:
        """Return each chart with its block, in any order."""


class Draw(Protocol):
    """Draws charts."""

    def __call__(self, draw: DrawChart, charts: Sequence[Chart], /) -> Drawing:
        """Begin to draw; `draw` draws one."""


class OneByOne:
    """Charts that are drawn here, when they are asked for."""

    def __init__(self, draw: DrawChart, charts: Sequence[Chart], /) -> None:
        self._draw = draw
        self._charts = charts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: nothing is on its way."""

    def results(self) -> Iterator[tuple[Chart, str]]:
        """Draw them in their order."""
        return ((chart, self._draw(chart)) for chart in self._charts)
