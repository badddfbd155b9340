"""The page: one offline HTML file, made of sections in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from markupsafe import Markup

from rooflens.errors import InputError
from rooflens.model.predict.expectations import check_reports
from rooflens.model.predict.measured import Prediction, PredictionRule
from rooflens.model.records import AnalyzedReport
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.html.embed import table_library
from rooflens.report.kernel.predicted import expectations_document
from rooflens.report.overview.headline import headline
from rooflens.report.page.charts import roofline_figures
from rooflens.report.page.first_screen import first_screen
from rooflens.report.page.kernels import kernels
from rooflens.report.page.ladder import ladders, named_ladders
from rooflens.report.page.method import explanations, method
from rooflens.report.page.program_map import program_map
from rooflens.report.page.selectors import items, pickers, selectors
from rooflens.report.page.sweeps import sweeps
from rooflens.report.summary import caveats, failed_words, origin, synthetic_words
from rooflens.report.templates import render, write_blocks
from rooflens.report.writers.frame import Page, framed

Section = Callable[[Content], Markup]


def predicted(content: Content) -> Markup:
    """Show every report that has a prediction; nothing if none has."""
    document = expectations_document(content.predictions, content.reports)
    return render("report/page#predicted", body=write_blocks(document)) if document else Markup()


SECTIONS: tuple[Section, ...] = (ladders, sweeps, kernels, predicted, explanations, method)
"""The sections below the first screen, from top to bottom; a new part is a function of `Content` and an entry here."""

ANCHORS: Mapping[Section, tuple[str, str]] = {
    kernels: ("kernels", "Kernels"),
    sweeps: ("sweeps", "Sweeps"),
    predicted: ("predicted", "Predicted and measured"),
    method: ("method", "Method"),
}
"""Name in the address of a section that the bar at the top links to, and its words."""

STYLES = (
    "shared/document.css",
    "report/program_map.css",
    "report/first_screen.css",
    "report/selectors.css",
    "report/cards.css",
    "report/kernels_table.css",
    "report/sweeps.css",
    "report/expectations.css",
    "report/about.css",
)
SCRIPTS = ("report/format.js", "report/selectors.js", "report/first_screen.js", "report/loops.js")
LATE_SCRIPTS = (
    "shared/reveal.js",
    "report/kernels_table.js",
    "report/cards.js",
    "report/words.js",
    "report/kernels_csv.js",
    "report/program_map.js",
)
"""Files of `assets`, in order; each script is a function of its own that shares only the object `lens`. The first ones
run before a browser reads the rest of the page, so that nothing there keeps the first chart waiting."""


def render_page(  # noqa: PLR0913 - a page is made of these
    reports: Sequence[AnalyzedReport],
    *,
    title: str,
    limits: Thresholds | None = None,
    unread: Sequence[tuple[str, InputError]] = (),
    predictions: Mapping[str, Prediction] = MappingProxyType({}),
    rules: Sequence[PredictionRule] = (),
) -> str:
    """Render one self-contained HTML page of all analyses.

    Args:
        reports: The reports with the model's records, failed kernels included.
        title: What ran, in the words of the caller.
        limits: The thresholds the verdicts were reached with; the shipped ones by default.
        unread: Path and error of each report that could not be read; the page names them.
        predictions: By digest of the report, what its program must compute and move.
        rules: What one launch of a kernel of a name must compute and move.

    Returns:
        The whole HTML document; it fetches nothing and runs with scripts off as plain text and tables.
    """
    checked = check_reports(reports, predictions, rules)
    content = build_content(reports, title, limits or default_thresholds(), unread, checked)
    answer, rows, figures = headline(content), items(content), roofline_figures(content)
    below = {section: written for section in SECTIONS if (written := section(content)).strip()}
    anchors = [*(ANCHORS[section] for section in below if section in ANCHORS)]
    return framed(
        Page(
            title=title,
            facts=origin(content),
            sections=[
                program_map(content) if len(content.kernels) > 1 else Markup(),
                *([named_ladders(content.ladders, content, lead=True)] if content.ladders_lead else []),
                selectors(
                    rows,
                    pickers(rows, content.report_labels.values(), has_modules=content.has_modules),
                    figures,
                    anchors,
                    counted=(content.noun, content.other.launches if content.other else 0),
                )
                + first_screen(content, figures),
            ],
            headline=render("report/page#headline", headline=answer),
            keys=render("report/page#keys", shown=len(rows) > 1),
            head=render(
                "report/page#header",
                sure=answer.sure,
                failed=failed_words(content.failed_kernels, content.noun),
                unread=content.unread,
                unread_count=content.unread_count,
                report_count=content.unread_count + len(content.runs),
                caveats=caveats(content),
                launches=len(content.counted),
                noun=content.noun,
            ),
            synthetic=synthetic_words(content.runs) if content.synthetic else "",
            blocks={"items": rows},
            styles=STYLES,
            scripts=SCRIPTS,
            below=[*below.values()],
            late_scripts=LATE_SCRIPTS,
            libraries=() if content.is_of_one else (table_library(),),
        )
    )
