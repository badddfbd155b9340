"""Run the command line with `python -m rooflens`; on a bare machine, what works there."""

import importlib.util
import sys

from rooflens.cli import bare
from rooflens.errors import StoppedError


def main() -> None:
    """Run the whole command line if it can be imported."""
    if not bare.is_python_enough() or importlib.util.find_spec("click") is None:
        sys.exit(bare.main())
    try:
        from rooflens.cli.group import main as whole  # noqa: PLC0415 - it needs click
    except KeyboardInterrupt:  # on a busy machine the imports take a second
        sys.exit(StoppedError.exit_code)
    whole()


if __name__ == "__main__":
    main()
