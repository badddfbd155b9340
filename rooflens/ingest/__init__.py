"""Read Nsight Compute reports into records and tables, in memory or in a store.

The package is also callable: `rooflens.ingest(paths, store)` is a verb of the API (`rooflens.api.verbs.ingest`).
"""

from __future__ import annotations

import sys
from types import ModuleType


class _Verb(ModuleType):
    """A package that can be called like a function."""

    def __call__(self, *arguments: object, **options: object) -> object:
        """Read reports into a store, as `rooflens.api.verbs.ingest` says."""
        from rooflens.api.verbs import ingest  # noqa: PLC0415 - reading alone imports nothing of the API

        return ingest(*arguments, **options)  # type: ignore[arg-type]  # a type checker sees the function itself


sys.modules[__name__].__class__ = _Verb
