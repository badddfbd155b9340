"""The programs of the calculator: they give what `rooflens predict` gives, for every operation, and keep its rules."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from forecasting import GPUS, row
from support.loops import for_all
from support.programs import run

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.communication import link_of
from rooflens.model.predict.forecast import Forecast, forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.rates import side_rates
from rooflens.model.predict.rows import ELEMENT_BYTES, UNITS, Operation, pipes_for, widths_of
from rooflens.model.predict.sizes import check_shape
from rooflens.model.roofline.datasheets import Datasheet
from rooflens.report.forecast.programs import TOGETHER, calculator, gpu_choices, traced
from rooflens.report.text import forecast as forecasts

each_operation = for_all("operation", OPERATIONS.values(), lambda operation: operation.name)


def inputs_of(
    operation: Operation, sizes: Mapping[str, int], dtype: str, gpu: Datasheet, out_dtype: str | None = None
) -> dict[str, Any]:
    """Look up what the page's script looks up before it runs a program."""
    found: dict[str, Any] = {**sizes, "element_bytes": ELEMENT_BYTES[dtype], "bandwidth": gpu.dram_bandwidth.value}
    found["result_bytes"] = widths_of(operation, dtype, out_dtype).result
    for unit in UNITS:
        pipe = next((name for name in pipes_for(unit, dtype) if name in gpu.peaks), None)
        if pipe:
            rates = side_rates(gpu, pipe, dtype)
            found |= {f"{unit} pipe": pipe, f"{unit} peak": gpu.peaks[pipe].value, "l2 rate": rates.l2_bytes_per_s}
            found |= {f"{unit} special": rates.special_per_s, f"{unit} issued": rates.issued_per_s}
    group = operation.group(sizes)
    if group > 1:
        link = link_of(gpu, group)
        found |= {"link": link.kind, "link rate": link.bytes_per_s_per_direction}
    return found


def numbers(result: Forecast) -> dict[str, Any]:
    """Give all numbers that a whole and its parts share."""
    return forecasts.numbers(result) | forecasts.other_numbers(result)


def random_sizes(operation: Operation, seed: int) -> dict[str, int]:
    """Choose sizes of all magnitudes that fit one another."""
    chance = random.Random(seed)  # noqa: S311 - sizes, no secrets
    for _ in range(10_000):
        sizes = {}
        for size in operation.sizes:
            least, most = size.limits
            exponent = chance.randint(0, 12)
            sizes[size.name] = min(most, max(least, chance.choice((0, 1, 3)) * 2**exponent))
        try:
            check_shape(sizes)
        except UsageError:
            continue
        return sizes
    raise AssertionError(f"no sizes fit {operation.name}")


@each_operation
def test_a_program_gives_what_the_forecast_gives(operation: Operation) -> None:
    """All numbers of the whole and of each part, over random sizes, types and GPUs, with and without a measurement."""
    program = json.loads(json.dumps(traced(operation)))
    compared = 0
    for seed in range(40):
        chance = random.Random(seed)  # noqa: S311 - sizes, no secrets
        sizes, dtype = random_sizes(operation, seed), chance.choice(list(ELEMENT_BYTES))
        gpu = chance.choice(list(GPUS.values()))
        measured_s = chance.choice((None, 3e-3))
        out_dtype = chance.choice((None, *ELEMENT_BYTES)) if operation.results or operation.parts else None
        try:
            result = forecast(operation, sizes, dtype, gpu, out_dtype=out_dtype)
        except InputError:
            continue  # no such pipe, or no link to so many
        made = run(program["steps"], {**inputs_of(operation, sizes, dtype, gpu, out_dtype), "measured": measured_s})
        assert made[program["refusal"]] is None
        assert made[program["group"]] == operation.group(sizes)
        wanted = numbers(result) | forecasts.numbers_of_whole(measured_s, result)
        assert {name: made[at] for name, at in program["whole"].items()} == wanted
        assert len(program["parts"]) == len(result.parts)
        for part, steps in zip(result.parts, program["parts"], strict=True):
            assert steps.pop("label") == part.label
            assert made[steps["count"]] == part.count
            assert {name: made[steps[name]] for name in numbers(part)} == numbers(part)
            steps["label"] = part.label
        compared += 1
    assert compared > 20


@each_operation
def test_every_operation_starts_with_sizes_that_fit(operation: Operation) -> None:
    """Where the page starts an operation that was not asked for, the forecast takes its sizes."""
    (sizes,) = (
        {size["name"]: size["start"] for size in known["sizes"]}
        for name, known in calculator([row("dot", n="8")])["operations"].items()
        if name == operation.name
    )
    check_shape(sizes)
    assert forecast(operation, sizes, "bf16", GPUS["h100-sxm"]).t_lower_s > 0
    assert set(TOGETHER.get(operation.name, ())) <= sizes.keys()


def test_sizes_that_do_not_fit_are_refused_in_the_words_of_the_command_line() -> None:
    """The page shows the same message, with the sizes in it."""
    program = traced(OPERATIONS["decode"])
    sizes = {size.name: size.default for size in OPERATIONS["decode"].sizes} | {"heads": 33}
    with pytest.raises(UsageError) as refused:
        check_shape(sizes)
    made = run(program["steps"], sizes)
    message = made[program["refusal"]]
    for at, value in enumerate(made):
        message = message.replace(f"{{{at}}}", str(value))
    assert message == str(refused.value)


def test_the_page_knows_every_gpu_and_its_limits() -> None:
    """All GPUs are in the groups of the selector once, the newest first, and in its data with their sources."""
    data = calculator([row("gemm", m="64", n="64", k="64", gpu="a100-sxm4-80gb")])
    headings = [heading for heading, _ in gpu_choices()]
    assert (headings[:3], headings[-1]) == (["Rubin", "Blackwell", "Hopper"], "Pascal")
    ids = [id_ for _, gpus in gpu_choices() for id_, _ in gpus]
    assert sorted(ids) == sorted(GPUS) == sorted(data["gpus"])
    a100 = data["gpus"]["a100-sxm4-80gb"]
    value, source = a100["peaks"]["tensor_bf16"]
    assert (value, data["sources"][source]) == (312e12, GPUS["a100-sxm4-80gb"].peaks["tensor_bf16"].source)
    assert a100["l2"][0] == pytest.approx(5120 * 1.41e9)
    assert data["start"] == {
        "operation": "gemm",
        "gpu": "a100-sxm4-80gb",
        "dtype": "bf16",
        "sizes": {"m": 64, "n": 64, "k": 64, "batch": 1, "tile": 0, "l2_tile": 0, "tensor_parallel": 1},
        "measured": None,
        "link": "",
        "out_dtype": "",
    }
