"""`collect`, `doctor` and `calibrate` on a bare GPU machine: Python 3.10, and nothing installed.

`python3 -m rooflens` comes here where the package's own command line cannot be imported. Reports are read elsewhere.
Defaults of options come from no file and no variable here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rooflens import __version__
from rooflens.cli.console import echo, show_error
from rooflens.cli.ending import ended_by_signals
from rooflens.cli.streams import flush, prepare
from rooflens.errors import (
    READS_SINCE,
    EnvironmentMissingError,
    RooflensError,
    StoppedError,
    UsageError,
    lacking_package,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = """Usage: python3 -m rooflens (collect | doctor | calibrate) [OPTIONS]

  Neither installed nor needed here is what reads reports: this machine can collect them, and say what it lacks.

Commands:
  collect    Run Nsight Compute on a bundled workload or your own program, and keep the report.
  doctor     Check what this machine can do.
  calibrate  Measure what this GPU can reach. Needs nvcc.
"""


def is_python_enough() -> bool:
    """Return whether the package's own command line runs in this Python."""
    return sys.version_info[:2] >= READS_SINCE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, and return the exit code."""
    prepare()
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with ended_by_signals():
            try:
                return _run_command(words)
            finally:
                flush()
    except RooflensError as error:
        show_error(error)
        return error.exit_code
    except ImportError as error:
        lacking = lacking_package(error)
        if lacking is None:
            raise
        show_error(lacking)
        return lacking.exit_code
    except KeyboardInterrupt:
        return StoppedError.exit_code
    except SystemExit as end:  # argparse has printed the help
        return end.code if isinstance(end.code, int) else 0


def _run_command(words: Sequence[str]) -> int:
    words = [*words[1:]] if words[:1] == ["--isolated"] else words  # no settings are read here anyway
    name, rest = (words[0], list(words[1:])) if words else ("--help", [])
    if name in {"-h", "--help"}:
        echo(_HELP, nl=False)
        return 0
    if name == "--version":
        echo(f"rooflens, version {__version__}")
        return 0
    if name in {"doctor", "calibrate"} and rest:
        raise UsageError(f"`{name}` takes no arguments, not `{rest[0]}`", f"python3 -m rooflens {name}")
    if name == "doctor":
        return _doctor()
    if name == "calibrate":
        return _calibrate()
    if name == "collect":
        return _collect(rest)
    lacking = "without click" if is_python_enough() else "with Python {}.{}".format(*sys.version_info)
    needs = "`pip install .` in the clone, with Python {}.{} or newer; a report can be read elsewhere".format(
        *READS_SINCE
    )
    raise EnvironmentMissingError(f"only `collect`, `doctor` and `calibrate` work {lacking}", needs)


def _doctor() -> int:
    from rooflens.cli.machine_checks import show_checks

    return show_checks()


def _calibrate() -> int:
    from rooflens.cli.calibrating import calibrate

    calibrate()
    return 0


def _collect(words: Sequence[str]) -> int:
    from rooflens.cli.collecting import OPTIONS, OUTPUT, SAYS, CommandLine, collect
    from rooflens.cli.options import PlainParser

    place = words.index("--") if "--" in words else len(words)
    before, command = tuple(words[:place]), tuple(words[place + 1 :]) if "--" in words else None
    parser = PlainParser("python3 -m rooflens collect", (*OPTIONS, OUTPUT), SAYS)
    parser.add_argument("workload", nargs="?", help="a bundled workload; or a command of your own after `--`")
    options = parser.values(before)
    output = options.pop(OUTPUT.keyed)
    return collect(CommandLine("collect", options, before, command), output)
