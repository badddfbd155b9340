"""Nsight Compute reports -> records and tables, in memory or in a store.

It is also a verb of the Python API: `rooflens.ingest(paths, store)`, which `rooflens.api.verbs.ingest` describes.
"""

from __future__ import annotations

import sys
from types import ModuleType


class _Verb(ModuleType):
    """A package that can be called."""

    def __call__(self, *arguments: object, **options: object) -> object:
        """Read reports into a store, as `rooflens.api.verbs.ingest` says."""
        from rooflens.api.verbs import ingest  # noqa: PLC0415 - reading alone imports nothing of the API

        return ingest(*arguments, **options)  # type: ignore[arg-type]  # a type checker sees the function itself


sys.modules[__name__].__class__ = _Verb
