"""Measure what this machine's GPU attains: compile the calibration program, run it and return its output."""

from __future__ import annotations

import json
from pathlib import Path

from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.local_gpu import local_gpu
from rooflens.model.cases import Workload
from rooflens.processes import capture, last_words, signal_name
from rooflens.workloads.build import build

PROGRAM = Workload(
    name="calibrate",
    kind="cuda",
    summary="attainable rates of this GPU",
    program="calibrate.cu",
    folder=Path(__file__).parent / "calibrate",
    cases=(),
)
"""Compiled like a workload, but without a `workload.toml`, so that nothing profiles it."""

REPETITIONS = 20

_NO_GPU = "no NVIDIA GPU can be used"
"""What each of our CUDA programs prints if it finds no GPU (`require_gpu` in `common.cuh`)."""

_SILENT = "it said nothing"
_LONGEST_S = 600
"""A run takes well under a minute; after this time it hangs."""


def calibrate() -> str:
    """Measure the first GPU of this machine; return the JSON document about it.

    Raises:
        EnvironmentMissingError: There is no GPU or no nvcc, or nvcc fails.
        ProgramError: The program fails, hangs, or prints something else.
    """
    local_gpu()
    return run_program(build(PROGRAM))


def run_program(program: Path, repetitions: int = REPETITIONS) -> str:
    """Run the compiled program and return its document, checked to be one JSON object.

    Raises:
        EnvironmentMissingError: There is no GPU.
        ProgramError: The program fails, hangs, or prints something else.
    """
    command = [str(program), "--iterations", str(repetitions)]
    try:
        done = capture(command, _LONGEST_S)
    except EnvironmentMissingError as error:
        raise ProgramError(f"the calibration {error}", _hint(command)) from error
    if done.status is None:
        raise ProgramError(f"the calibration did not end in {_LONGEST_S} s", _hint(command))
    if done.status != 0:
        raise _failure(done.status, done.stderr, command)
    if not _is_document(done.stdout):
        raise ProgramError(
            f"the calibration printed no JSON document: {last_words(done.stdout) or _SILENT}", _hint(command)
        )
    return done.stdout


def _failure(status: int, stderr: str, command: list[str]) -> EnvironmentMissingError | ProgramError:
    said = last_words(stderr) or _SILENT
    if _NO_GPU in stderr:
        return EnvironmentMissingError(
            f"calibrating needs a GPU: {said}",
            "run `rooflens calibrate` on a machine with an NVIDIA GPU and its driver",
        )
    ending = f"status {status}" if status > 0 else f"signal {signal_name(-status)}"
    return ProgramError(f"the calibration failed ({ending}): {said}", _hint(command))


def _is_document(text: str) -> bool:
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("rates"), dict)


def _hint(command: list[str]) -> str:
    return f"run it by itself to see all it says: `{' '.join(command)}`; another program on the GPU can be the cause"
