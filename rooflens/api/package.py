"""What a name means that the package itself lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.api.kernel import Kernel
from rooflens.api.report import Report
from rooflens.meant import BY_NAME

if TYPE_CHECKING:
    from types import ModuleType


def meant_of_module(module: ModuleType, name: str) -> Any:
    """Return what a name means that `rooflens` lacks, by the table of `rooflens.meant`.

    Args:
        module: The package.
        name: The requested name.

    Raises:
        AttributeError: The table lacks it; the message names what opened reports, kernels or the command line have.
    """
    if (does := BY_NAME.get(("rooflens", name))) is not None:
        return does(module)
    places = {f"`rl.open(path).{name}`": Report, f"`rl.open(path)[0].{name}`": Kernel}
    has = [place for place, kind in places.items() if hasattr(kind, name)]
    hint = f": an opened report has it: {has[0]}" if has else ""
    hint = ": it is the command `rooflens about NAME`" if name == "about" else hint
    raise AttributeError(f"module `rooflens` has no attribute `{name}`{hint}")
