"""What kernels on a page should do: known for bundled workloads, stated by users for their own programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.cli.console import say
from rooflens.files import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.predict.measured import Prediction, PredictionRule
    from rooflens.model.records import AnalyzedReport
    from rooflens.writing.rendering import Expected


def read_stated(given: str | None) -> Prediction | tuple[PredictionRule, ...] | None:
    """Read the value of `--predict` before any report: a prediction for all kernels, or rules by name.

    Raises:
        UsageError: The prediction cannot be parsed.
        InputError: The file cannot be read.
    """
    if given is None:
        return None
    from rooflens.model.predict.expectations import FILE_HINT, parse_prediction, parse_rules

    if not given.endswith(".toml"):
        return parse_prediction(given)
    return parse_rules(read_text(Path(given), FILE_HINT), given)


def find_expected(
    reports: Sequence[AnalyzedReport], stated: Prediction | tuple[PredictionRule, ...] | None
) -> Expected:
    """Combine the user's predictions with, for the other reports, what bundled workloads are known to do.

    Patterns that match no kernel are named on stderr.
    """
    from rooflens.writing.rendering import Expected, bundled

    runs = [report.run for report in reports]
    if stated is None:
        return Expected(bundled(runs))
    if not isinstance(stated, tuple):
        return Expected(dict.fromkeys((run.digest for run in runs), stated))
    from rooflens.model.predict.expectations import rule_of

    analyses = (analysis for report in reports for analysis in report.analyses)
    met = {rule.kernel for a in analyses if (rule := rule_of(a.kernel.name, stated))}
    for rule in stated:
        if rule.kernel not in met:
            say(f"warning: the prediction of `{rule.kernel}` matches no kernel")
    return Expected(bundled(runs), stated)
