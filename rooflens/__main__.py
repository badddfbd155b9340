"""Run the command line with `python -m rooflens`."""

from rooflens.cli.group import main

if __name__ == "__main__":
    main()
