"""The command that collects missing counters: one kernel, one launch, the program as it was recorded."""

from __future__ import annotations

import shlex
from pathlib import Path

from support.loops import for_all

from rooflens.collect.command import NEWEST, Collection, build_argv
from rooflens.model.verdict.collecting import collect_command, not_profiled, program_of


@for_all(
    "command_line, program",
    [
        ("/opt/nvidia/ncu --set full -o reps/naive.ncu-rep -f build/naive.out", "build/naive.out"),
        (
            "ncu -k regex:cuda -o p python src/main.py ./output.csv --eps=0.2 -c 2",
            "python src/main.py ./output.csv --eps=0.2 -c 2",
        ),
        ("ncu --nvtx --nvtx-include Fused/ --call-stack --set=full -f ./a.out", "./a.out"),
        ("ncu --target-processes all env A=b: julia -O3 'my file.jl'", "env A=b: julia -O3 'my file.jl'"),
        ("ncu --set full -- ./a.out -x", "./a.out -x"),
        ("ncu --section-folder-recursive my/sections/ --print-summary per-kernel -f ./a.out", "./a.out"),
        ("nv-nsight-cu-cli --csv ./a.out", "./a.out"),
        ("ncu --set full ./a.out '; rm -rf x' '$(id)'", "./a.out '; rm -rf x' '$(id)'"),
        (
            '"C:\\Program Files\\Nsight Compute\\ncu.exe" --set full -o r build\\Release\\App.exe "a b"',
            'build\\Release\\App.exe "a b"',
        ),
    ],
)
def test_the_program_stands_after_the_options(command_line: str, program: str) -> None:
    """Options of ncu and their values are skipped, and the rest is quoted for a shell."""
    assert program_of(command_line) == program


@for_all(
    "command_line",
    [
        None,
        "",
        "ncu",
        "ncu --set full",
        "ncu --set",
        "ncu --no-such-option maybe_value ./a.out",
        "./a.out --set full",
        "ncu 'unbalanced",
        "ncu ./a.out \x1b[31m",
        "ncu ./a.out\nrm -rf x",
        "ncu ./a.out " + "x" * 300,
    ],
)
def test_a_program_that_is_not_sure_is_not_made_up(command_line: str | None) -> None:
    """For unknown options, other programs, control characters or overlong lines a placeholder replaces the program."""
    assert program_of(command_line) is None
    assert collect_command("k", command_line).endswith("-- PROGRAM")


def test_our_own_command_lines_are_understood() -> None:
    """The program is found in the command that `collect` gives ncu."""
    collection = Collection(
        ("./app", "a b", "--set", "x"), Path("r.ncu-rep"), ("dram__bytes.sum",), kernel="gemm", launch_count=3
    )
    assert program_of(shlex.join(build_argv(NEWEST, collection))) == "./app 'a b' --set x"


def test_hostile_names_stay_one_word() -> None:
    """A kernel's name is quoted; a name with control characters is left out."""
    words = shlex.split(collect_command("k; rm -rf `x`", None))
    assert words[words.index("--kernel") + 1] == "k; rm -rf `x`"
    assert "--kernel" not in collect_command("k\x1b[2J", None)
    assert "--kernel" not in collect_command("", None)


@for_all(
    "capability, says",
    [("6.1", "2019"), ("7.0", "older"), ("7.2", "older"), ("7.5", None), ("12.0", None), (None, None), ("x", None)],
)
def test_which_chips_ncu_still_profiles(capability: str | None, says: str | None) -> None:
    """Turing is the oldest: older chips need an ncu of their time, and unknown ones may be tried."""
    said = not_profiled(capability)
    assert (said is None) is (says is None)
    assert says is None or says in (said or "")
