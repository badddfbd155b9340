"""Further ncu options that the user gives: passed on, except those that rooflens sets, which ncu takes only once."""

from __future__ import annotations

import shlex

from rooflens.errors import UsageError

_OURS = {
    "--kernel-name": "--kernel",
    "--launch-skip": "--launch-skip",
    "--launch-count": "--launch-count",
    "--nvtx-include": "--nvtx-include",
    "--replay-mode": "--replay-mode",
    "--cache-control": "--cache-control",
    "--clock-control": "--clock-control",
    "--target-processes": "--target-processes",
    "--graph-profiling": "--graph-profiling",
    "--import-source": "--import-source",
    "--kill": "--kill",
    "--metrics": "--metrics",
    "--export": "-o",
    "--force-overwrite": "--force",
    "--set": "--detail",
    "--filter-mode": "--launch-count",
    "--log-file": None,
    "--nvtx": None,
    "--config-file": None,
    "--config-file-path": None,
    "--profile-from-start": None,
}
"""Options that rooflens sets -> our option that changes them; None where none does."""

_NO_PROFILES = (
    "--help",
    "--version",
    "--mode",
    "--hostname",
    "--import",
    "--page",
    "--csv",
    "--print-summary",
    "--raw",
)
_NO_PROFILES_BEGIN = ("--list-", "--query-", "--print-")
"""Options that make ncu list, attach or print instead of writing a report."""

_SHORT = {
    "-k": "--kernel-name",
    "-s": "--launch-skip",
    "-c": "--launch-count",
    "-o": "--export",
    "-f": "--force-overwrite",
    "-i": "--import",
    "-h": "--help",
    "-v": "--version",
}
_LEAST_OF_A_NAME = 4
"""ncu accepts the beginning of an option for all of it; none shorter than `--se` is unique."""


def further_options(given: str) -> tuple[str, ...]:
    """Split the user's options for ncu as a shell does, and refuse those that rooflens sets.

    Raises:
        UsageError: A quote is not closed, or rooflens sets an option itself, or with it ncu would write no report.
    """
    try:
        parts = tuple(shlex.split(given))
    except ValueError as error:
        raise UsageError(f"--ncu-args cannot be split: {error}", "quote its parts as for a shell") from error
    if parts and not parts[0].startswith("-"):
        raise UsageError(f"--ncu-args begins with `{parts[0]}`, which is not an ncu option", _EXAMPLE)
    for part in parts:
        if part.startswith("-"):
            _refuse(part.partition("=")[0])
    return parts


_EXAMPLE = "for example --ncu-args '--section MemoryWorkloadAnalysis --call-stack'"


def _refuse(option: str) -> None:
    """Raise where ncu would take an option for one that rooflens sets, or would not profile."""
    long = _SHORT.get(option[:2], option) if not option.startswith("--") else option
    if long in _NO_PROFILES or long.startswith(_NO_PROFILES_BEGIN):
        raise UsageError(f"--ncu-args cannot contain `{option}`: ncu would write no report", _EXAMPLE)
    for name, ours in _OURS.items():
        if name == long or (len(long) >= _LEAST_OF_A_NAME and name.startswith(long)):
            hint = f"give {ours} to this command" if ours else "it is always set: leave it out"
            raise UsageError(f"--ncu-args cannot contain `{option}`: rooflens sets ncu's {name} itself", hint)
