"""`rooflens store`: what is done to a store as a whole."""

from rooflens.cli.commands.store.group import store

__all__ = ["store"]
