"""A file about all kernels, in any format: the entry point of `rooflens report` and `Report.save`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooflens.analyzing import Analyzed
from rooflens.model.predict.measured import Prediction, PredictionRule
from rooflens.model.records import Run
from rooflens.writing.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.model.predict.measured import Checked
    from rooflens.model.records import AnalyzedReport

PICTURES = ("pdf", "png", "svg")


class Expected(Struct, frozen=True):
    """Predictions for whole reports by digest, and for kernels by name."""

    reports: Mapping[str, Prediction] = field(default_factory=dict)
    rules: tuple[PredictionRule, ...] = ()

    def check(self, reports: Iterable[AnalyzedReport]) -> tuple[Checked, ...]:
        """Compare the predictions with measurements."""
        from rooflens.model.predict.expectations import check_reports

        return check_reports(reports, self.reports, self.rules)


class Rendered(Struct, frozen=True):
    """The content of a file.

    Attributes:
        notes: Sentences about what a picture leaves out.
    """

    data: bytes
    notes: tuple[str, ...] = ()


def render(
    analyzed: Analyzed, style: str, *, title: str, expected: Expected | None = None, dark: bool = False
) -> Rendered:
    """Write the analyses in a format.

    Args:
        analyzed: The reports.
        style: `html`, `md`, `pdf`, `png`, `svg`, `json` or `csv`.
        title: Title of the page.
        expected: What kernels must compute and move; by default known for bundled workloads.
        dark: Draw a picture for a dark page.

    Raises:
        InputError: A picture would be empty.
    """
    expected = expected or Expected(bundled([report.run for report in analyzed.reports]))
    if style in PICTURES:
        return _picture(analyzed, style, title, dark=dark)
    return Rendered("".join(of_report(analyzed, title, expected).parts(style)).encode("utf-8", "replace"))


def of_report(analyzed: Analyzed, title: str, expected: Expected) -> Answer:
    """Answer what limits all kernels, in one file: a page of its own, Markdown, or data."""
    from rooflens.writing.answers import of_kernels

    def page() -> str:
        from rooflens.report.page.page import render_page

        return render_page(
            analyzed.reports,
            title=title,
            limits=analyzed.limits,
            unread=analyzed.failures,
            predictions=expected.reports,
            rules=expected.rules,
        )

    def kernels() -> Answer:
        return of_kernels(analyzed, title=title, expected=expected.check(analyzed.reports))

    return Answer(lambda: kernels().document(), {**of_kernels(analyzed).data, "html": page})


def _picture(analyzed: Analyzed, style: str, title: str, *, dark: bool) -> Rendered:
    from msgspec.structs import replace

    from rooflens.report.content import build_content
    from rooflens.report.roofline.picture import COLUMN, SLIDE, draw_rooflines

    look = replace(COLUMN if style == "pdf" else SLIDE, dark=dark)
    picture = draw_rooflines(build_content(analyzed.reports, title, analyzed.limits, analyzed.failures), look)
    writers = {"pdf": picture.pdf, "png": picture.png, "svg": picture.svg.encode}
    return Rendered(writers[style](), picture.notes)


def bundled(runs: Sequence[Run]) -> dict[str, Prediction]:
    """Predict, by digest, the reports whose command line ran a bundled workload."""
    from rooflens.model.predict.expectations import predict_case
    from rooflens.workloads.recognize import recognize

    recognized = {run.digest: found for run in runs if (found := recognize(run.command_line)) is not None}
    return {
        digest: predict_case(
            one.workload.name, one.case, None if one.as_listed else one.parameters, one.iterations, one.source
        )
        for digest, one in recognized.items()
    }
