"""Run the command line with `python -m rooflens`; on a bare machine, what works there."""

import importlib.util
import sys

from rooflens.cli import bare


def main() -> None:
    """Run the whole command line if it can be imported."""
    if not bare.is_python_enough() or importlib.util.find_spec("click") is None:
        sys.exit(bare.main())
    from rooflens.cli.group import main as whole  # noqa: PLC0415 - it needs click

    whole()


if __name__ == "__main__":
    main()
