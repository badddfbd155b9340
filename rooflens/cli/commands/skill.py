"""`rooflens skill`: what a language model must know to use rooflens."""

from __future__ import annotations

from importlib.resources import files

import click

from rooflens.cli.console import echo


@click.command()
def skill() -> None:
    """Print the skill for agents: which commands to run, how to read verdicts, what never to conclude."""
    echo(files("rooflens").joinpath("skills", "rooflens", "SKILL.md").read_text("utf-8"), nl=False)
