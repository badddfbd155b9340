"""Terminal, JSON, CSV, Markdown and the page of `predict` give the same forecast for any options."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

import rooflens
from rooflens.cli.commands.predict import _command
from rooflens.cli.group import main
from rooflens.format import duration, si, significant
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.model.predict.forecast import predicted as predicted_row
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import OPTIONS, Options
from rooflens.report.forecast.data import PREDICTION, ForecastAt

if TYPE_CHECKING:
    from rooflens.model.predict.rows import Operation

SETS = 40
NO_NUMBERS = {"style", "output", "force"}
"""Options that change no number: where an answer goes, and in which format."""

GPUS = ("h100-sxm", "b200", "a100-sxm4-80gb", "t4", "h200", "rtx-4090", "rtx-5090")
DTYPES = ("fp32", "bf16", "fp16", "fp8", "fp16:fp16", "mxfp8", "nvfp4")


def asked(random: Random, operation: Operation) -> dict[str, list[str]]:
    """Choose options of an operation at random, by the names of the command's parameters."""
    sizes = {
        size.name: [str(size.default if size.default is not None else 128 * random.randint(1, 40))]
        for size in operation.sizes
        if size.default is None or random.random() < 0.3
    }
    given = dict(sizes)
    if sizes and random.random() < 0.5:
        name = random.choice([*sizes])
        first = int(sizes[name][0])
        given[name] = [f"{first}:{4 * first}:x2"]
    given["gpu"] = random.sample(GPUS, random.randint(1, 2))
    if random.random() < 0.5:
        given["dtype"] = [",".join(random.sample(DTYPES, random.randint(1, 2)))]
    if random.random() < 0.3:
        given["out_dtype"] = [random.choice(("bf16", "fp32"))]
    if random.random() < 0.3:
        given["link"] = [random.choice(("nvlink", "pcie"))]
    elif random.random() < 0.5:
        given["network_gb_per_s"] = [random.choice(("12.5", "50"))]
    if random.random() < 0.4:
        given["measured_ms"] = [f"{random.uniform(0.01, 5):.3f}"]
    return given


def run(*arguments: str) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["predict", *arguments])


def words_of(html: str) -> str:
    """Return the words of a page, without scripts and styles."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    return spaced(unescape(re.sub(r"<[^>]+>", " ", body)))


def spaced(text: str) -> str:
    """Write any white space as one space."""
    return re.sub(r"\s+", " ", text.replace("\u00a0", " "))


def predicted(random: Random) -> tuple[list[str], set[str], list[dict[str, Any]]]:
    """Find options that the command accepts, with its JSON."""
    while True:
        operation = OPERATIONS[random.choice([*OPERATIONS])]
        flags = {one.name: one.opts[0] for one in _command(operation).params}
        given = asked(random, operation)
        arguments = [operation.name]
        for name, values in given.items():
            for value in values:
                arguments += [flags[name], value]
        done = run(*arguments, "--format", "json")
        if done.exit_code == 0:
            found = json.loads(done.stdout)
            return arguments, set(given), found.get("predictions", [found])


def test_page_terminal_and_json_agree_whatever_is_asked(tmp_path: Path) -> None:
    """For 40 random sets of options, covering every option, the numbers in JSON are in the table and on the page."""
    random, used, offenders = Random(46), set[str](), []  # noqa: S311 - a test repeats itself
    for _ in range(SETS):
        arguments, given, forecasts = predicted(random)
        used |= given
        page = tmp_path / "page.html"
        assert run(*arguments, "-o", str(page), "--force").exit_code == 0
        shown = {"terminal": spaced(run(*arguments).stdout), "page": words_of(page.read_text(encoding="utf-8"))}
        chosen = shown["page"].partition("All numbers")[0]
        for one in forecasts:
            floor = duration(one["t_lower_s"] * 1e9)
            roofs = si(one["peak_flop_per_s"], "FLOP/s"), si(one["bandwidth_bytes_per_s"], "B/s")
            cells = (significant(one["ridge"]), floor, si(one["flop"], "FLOP"), si(one["bytes"], "B"))
            for number in map(spaced, (*roofs, *cells)):
                offenders += [
                    f"{arguments} {kind} lacks {number}" for kind, text in shown.items() if number not in text
                ]
            for number in map(spaced, (floor, *roofs)):
                offenders += [f"{arguments}: cannot choose {number}"] if number not in chosen else []
        for text in re.findall(r"[\d.,]+ [num\u00b5]?s\b", chosen):
            offenders += [f"{arguments}: only the page says {text}"] if not _is_known(text, forecasts, shown) else []
    options = {one.name for name in OPERATIONS for one in _command(OPERATIONS[name]).params}
    sizes = {size.name for operation in OPERATIONS.values() for size in operation.sizes}
    assert options - sizes - NO_NUMBERS <= used
    assert not offenders, "\n".join(offenders[:20])


def test_command_python_and_server_give_one_forecast() -> None:
    """For 40 random sets of options with one size, type and GPU, the three doors give the same numbers."""
    random, offenders, server = Random(67), [], Answers(Root(Path()))  # noqa: S311 - a test repeats itself
    found = 0
    while found < SETS:
        arguments, _, forecasts = predicted(random)
        if len(forecasts) > 1:
            continue
        found += 1
        (told,) = forecasts
        given = dict(zip(arguments[1::2], arguments[2::2], strict=True))
        options: dict[str, Any] = {}
        for one in OPTIONS:
            if (text := given.get(f"--{one.name.replace('_', '-')}")) is not None:
                options[one.name] = one.kind(text)
        options |= {"dtype": told["dtype"], "gpu": told["gpu"]}
        row = predicted_row(told["operation"], told["sizes"], Options(**options))
        in_python = rooflens.predict(told["operation"], **options, **told["sizes"])
        written = json.loads(json.dumps(PREDICTION.json(ForecastAt(row, told["sizes"], in_python))))
        offenders += [f"{arguments}: Python has another {name}" for name in told if written[name] != told[name]]
        numbers = server.predict(told["operation"], told["sizes"], **options).data
        offenders += [f"{arguments}: the server has another {name}" for name in numbers if numbers[name] != told[name]]
    assert not offenders, "\n".join(offenders[:20])


def _is_known(text: str, forecasts: list[dict[str, Any]], shown: dict[str, str]) -> bool:
    """Return whether a time on the page is also in JSON or on the terminal."""
    times = [
        value
        for one in forecasts
        for part in (one, *one["parts"])
        for name, value in part.items()
        if name.endswith("_s") and not name.endswith("_per_s") and isinstance(value, (int, float))
    ]
    return (
        any(spaced(duration(time * 1e9)) == text for time in times) or text in shown["terminal"] or text == "5 \u00b5s"
    )
