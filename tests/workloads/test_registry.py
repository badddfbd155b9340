"""The registry loads every folder, and refuses bad ones by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.loops import for_all

from rooflens.errors import InputError, UnknownNameError
from rooflens.model.cases import Workload, evaluate
from rooflens.model.records import LEVELS
from rooflens.model.verdict_classes import BOUNDS
from rooflens.workloads.registry import FOLDER, find_workload, load_workloads, parse_workload

CUDA = {
    "attention_ladder",
    "fma",
    "fp16_fma",
    "gather",
    "gemm_ladder",
    "histogram",
    "int8_mma",
    "int8_wgmma",
    "l2_stream",
    "pointer_chase",
    "roofline",
    "saxpy",
    "spill",
    "stencil",
    "tiny_launches",
    "transpose",
}

GOOD = """
kind = "cuda"
summary = "a test"
program = "main.cu"

[[case]]
name = "small"
parameters = { n = 8 }
toy = { n = 2 }
dtype = "fp32"
flop = "2*n"
bytes = "12*n"
source = "counted"
expect = { bound = "memory", resource = "dram", why = "because" }
"""


def test_every_cuda_workload_is_registered() -> None:
    """The CUDA workloads are registered, sorted, each with its program."""
    workloads = [workload for workload in load_workloads() if workload.kind == "cuda"]
    assert [workload.name for workload in workloads] == sorted(CUDA)
    for workload in workloads:
        assert (workload.folder / workload.program).is_file()


def test_every_folder_with_a_toml_is_a_workload() -> None:
    """Adding a folder is enough to register a workload."""
    assert {workload.name for workload in load_workloads()} == {path.parent.name for path in FOLDER.glob("*/*.toml")}


@for_all("workload", load_workloads(), lambda workload: workload.name)
def test_expectations_use_the_words_of_verdicts(workload: Workload) -> None:
    """Every case predicts an existing class and level, with a reason."""
    for case in workload.cases:
        assert case.expect.bound in BOUNDS
        assert case.expect.bound != "memory" or case.expect.resource in LEVELS
        assert case.expect.why
        assert case.source


@for_all("workload", load_workloads(), lambda workload: workload.name)
def test_toys_name_the_same_parameters(workload: Workload) -> None:
    """A toy changes sizes without adding parameters; case names are unique."""
    for case in workload.cases:
        assert set(case.toy) == set(case.parameters)
    assert len({case.name for case in workload.cases}) == len(workload.cases)


@for_all("workload", [w for w in load_workloads() if w.kind == "cuda"], lambda w: w.name)
def test_programs_take_the_parameters_of_their_cases(workload: Workload) -> None:
    """Every parameter of a case is an argument of the program."""
    text = (workload.folder / workload.program).read_text(encoding="utf-8")
    for case in workload.cases:
        for name in case.parameters:
            assert f'take("{name}"' in text


def test_first_case_is_the_default() -> None:
    """Without a name the first case is used."""
    workload = parse_workload(Path("folder/test"), GOOD)
    assert workload.name == "test"
    assert workload.case(None) is workload.cases[0]
    assert workload.case("small").toy == {"n": 2}


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    """A misspelled workload or case is a usage error with a hint."""
    with pytest.raises(UnknownNameError, match="no workload is called `nonsense`"):
        find_workload("nonsense")
    with pytest.raises(UnknownNameError, match="no case of `saxpy` is called `nonsense`") as caught:
        find_workload("saxpy").case("nonsense")
    assert "n28" in caught.value.hint


@for_all(
    "text",
    [
        "kind = ",
        "",
        GOOD.replace('kind = "cuda"', ""),
        GOOD.replace('program = "main.cu"', ""),
        GOOD.replace('dtype = "fp32"', ""),
        GOOD.replace("expect", "expects"),
        GOOD.replace("[[case]]", "[case]"),
        GOOD.replace("{ n = 8 }", "8"),
    ],
)
def test_bad_files_are_refused(text: str) -> None:
    """An incomplete `workload.toml` is an input error that names the folder."""
    with pytest.raises(InputError, match=r"broken/workload\.toml"):
        parse_workload(Path("broken"), text)


@for_all(
    "formula",
    [
        "__import__('os').getcwd()",
        "n.real",
        "n[0]",
        "[n for n in (1, 2)]",
        "lambda: n",
        "n if n else 1",
        "n == 8",
        "'n'",
        "missing * 2",
        "n / 0",
        "n +",
        "",
        "-n",
        "n % 3",
    ],
)
def test_formulas_are_arithmetic_only(formula: str) -> None:
    """Only + - * / // ** over numbers and parameters is evaluated."""
    with pytest.raises(InputError, match="cannot be evaluated"):
        evaluate(formula, {"n": 8})


def test_arithmetic_is_evaluated() -> None:
    """Operators have Python's meaning and precedence."""
    assert evaluate("2*n**3 + n//3 - 6/n", {"n": 4}) == 2 * 64 + 1 - 1.5
