"""Read predictions of whole reports or of kernels by name, and check reports against them.

A prediction is written `gemm:m=4096,n=4096,k=4096,dtype=bf16`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from rooflens.checking import CheckedTable, parse_toml
from rooflens.errors import UsageError
from rooflens.globs import covers
from rooflens.model.cases import Case, LaunchWork, evaluate
from rooflens.model.predict.explain import check
from rooflens.model.predict.forecast import work_of
from rooflens.model.predict.measured import Checked, Coverage, Prediction, PredictionRule, read_coverage
from rooflens.model.predict.operations import the_operation
from rooflens.model.predict.rows import counted_type, the_dtype
from rooflens.model.predict.sizes import check_shape, checked_sizes, parse_values
from rooflens.model.records import Analysis, AnalyzedReport

_PREDICTION_HINT = "for example gemm:m=4096,n=4096,k=4096,dtype=bf16; `rooflens predict` lists the operations"

FILE_HINT = (
    'each kernel is a table `[[kernel]]` with `match = "*gemm*"` and `predict = "gemm:m=4096,n=4096,k=4096,dtype=bf16"`'
)


def parse_prediction(text: str) -> Prediction:
    """Read a prediction: an operation, its sizes, `dtype` (the usual), `out_dtype` and `iterations` (1).

    Raises:
        UsageError: The operation, a size or the type is unknown, or a size is missing.
    """
    name, _, rest = text.partition(":")
    operation = the_operation(name.strip())
    pairs = [_key_and_value(part) for part in rest.split(",") if part.strip()]
    given = dict(pairs)
    if len(given) < len(pairs):
        raise UsageError(f"`{text}` gives a size twice", _PREDICTION_HINT)
    dtype = the_dtype(given.pop("dtype", operation.dtype))
    out_dtype = given.pop("out_dtype", None)
    is_stated_once = "iterations" not in given
    iterations = _single_value("iterations", given.pop("iterations", "1"))
    sizes = checked_sizes(operation, {key: _single_value(key, value) for key, value in given.items()})
    check_shape(sizes)
    flop, moved_bytes = work_of(operation, sizes, dtype, out_dtype)
    return Prediction(
        operation=operation.name,
        case=rest.strip() if "dtype" in rest else f"{rest.strip()},dtype={dtype}".lstrip(","),
        parameters=sizes,
        dtype=counted_type(dtype),
        source=f"FLOPs: {operation.flop_source}. Bytes: {operation.bytes_source}",
        flop=flop or None,
        moved_bytes=moved_bytes,
        iterations=iterations,
        is_stated_once=is_stated_once,
    )


def _key_and_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"`{text.strip()}` is not a size of a prediction", _PREDICTION_HINT)
    return key.strip().replace("-", "_"), value.strip()


def _single_value(key: str, text: str) -> int:
    values = parse_values(text)
    if len(values) != 1 or values[0] < 0 or (key == "iterations" and not values[0]):
        raise UsageError(f"`{key}` of a prediction is one number, not `{text}`", _PREDICTION_HINT)
    return values[0]


def parse_rules(text: str, file: str) -> tuple[PredictionRule, ...]:
    """Read a file of predictions by kernel name: `[[kernel]]` tables with `match` and `predict`.

    Raises:
        InputError: The text is not TOML, or a table has other keys or values.
    """
    document = parse_toml(text, f"`{file}`", FILE_HINT)
    document.check_keys(("kernel",))
    return tuple(_rule(table) for table in document.tables("kernel"))


def _rule(table: CheckedTable) -> PredictionRule:
    table.check_keys(("match", "predict"))
    try:
        return PredictionRule(table.text("match"), parse_prediction(table.text("predict")))
    except UsageError as error:
        raise table.error(str(error), error.hint) from error


def rule_of(name: str, rules: Sequence[PredictionRule]) -> PredictionRule | None:
    """Find the first rule whose pattern matches a kernel's whole name."""
    return next((rule for rule in rules if covers(rule.kernel, name)), None)


def check_reports(
    reports: Iterable[AnalyzedReport],
    predictions: Mapping[str, Prediction],
    rules: Sequence[PredictionRule] = (),
) -> tuple[Checked, ...]:
    """Check each report against its prediction, and the kernels that a rule names against the rule.

    Args:
        reports: The reports with the analyses of their kernels.
        predictions: What whole reports must compute and move, by digest.
        rules: What one launch of a kernel must compute and move, by its name; the first match counts.
    """
    found: list[Checked] = []
    for report in reports:
        coverage, prediction = read_coverage(report.run), predictions.get(report.run.digest)
        if report.analyses and prediction is not None:
            found.append(check(_with_iterations(prediction, report.analyses), report.analyses, coverage))
        parts = prediction.parts if prediction is not None else ()
        found += _by_rule(report.analyses, coverage, (*rules, *parts))
    return tuple(found)


def _with_iterations(prediction: Prediction, kernels: Sequence[Analysis]) -> Prediction:
    """Take launches of one kernel for iterations, where each moves about what was predicted and nobody said how many.

    Parts of one operation, such as splits of k, move the predicted bytes together: they stay one iteration.
    """
    launches = sum(one.launches for one in kernels)
    moved = [one.levels["dram"].amount_bytes for one in kernels]
    if (
        not prediction.is_stated_once
        or launches < 2
        or len({(one.kernel.name, one.kernel.grid) for one in kernels}) > 1
    ):
        return prediction
    known = [amount * one.launches for amount, one in zip(moved, kernels, strict=True) if amount]
    if not prediction.moved_bytes or len(known) < len(kernels):
        return prediction
    together = math.log(sum(known) / prediction.moved_bytes)
    each = together - math.log(launches)
    return replace(prediction, iterations=launches) if abs(each) < abs(together) else prediction


def _by_rule(kernels: Sequence[Analysis], coverage: Coverage, rules: Sequence[PredictionRule]) -> Iterator[Checked]:
    """Check the launches of each rule together, by their mean launch."""
    matched: dict[str, list[Analysis]] = {}
    for analysis in kernels:
        if rule := rule_of(analysis.kernel.name, rules):
            matched.setdefault(rule.kernel, []).append(analysis)
    each = replace(coverage, once_each=False, in_range=True)
    for rule in rules:
        if several := matched.pop(rule.kernel, []):
            launches = sum(analysis.launches for analysis in several)
            yield replace(check(replace(rule.prediction, iterations=launches), several, each), kernel=rule.kernel)


def predict_case(
    operation: str,
    case: Case,
    parameters: Mapping[str, int] | None = None,
    iterations: int = 1,
    source: str | None = None,
) -> Prediction:
    """Predict what a case must compute and move.

    Args:
        operation: Name of the workload.
        case: The case that has the formulas.
        parameters: Sizes other than those of the case; its expected limiter does not hold for them.
        iterations: How often the program repeats its work.
        source: Where the formulas come from; by default what the case says.
    """
    expect = case.expect if parameters is None else None
    sizes = dict(case.parameters if parameters is None else parameters)
    return Prediction(
        operation=operation,
        case=case.name if parameters is None else "",
        parameters=sizes,
        dtype=case.dtype,
        source=source or case.source,
        flop=case.flop_count(parameters),
        moved_bytes=case.byte_count(parameters),
        bound=expect.bound if expect else None,
        resource=expect.resource if expect else None,
        why=expect.why if expect else "",
        iterations=iterations,
        parts=tuple(PredictionRule(part.match, _predict_part(operation, case, part, sizes)) for part in case.parts),
    )


def _predict_part(operation: str, case: Case, part: LaunchWork, sizes: Mapping[str, int]) -> Prediction:
    """Predict what one launch of a case's kernel must compute and move."""
    return Prediction(
        operation=operation,
        case=part.name,
        parameters=sizes,
        dtype=case.dtype,
        source=case.source,
        flop=evaluate(part.flop, sizes),
        moved_bytes=evaluate(part.bytes, sizes),
    )
