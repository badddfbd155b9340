"""Frozen records at a fifth of the cost: `dataclass` as the standard library has it, for `frozen` and `slots`.

The standard library writes and compiles six methods for each dataclass. A command declares one to two hundred, which
was a fifth of all its CPU time. Here only `__init__` is compiled, and all records share the other methods.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Declare a dataclass; one that is frozen, has slots and derives from none costs less."""
        if cls is not None or options != {"frozen": True, "slots": True}:
            return dataclasses.dataclass(cls, **options)
        return _frozen


__all__ = ["dataclass"]


def _frozen(cls: type) -> type:
    if cls.__bases__ != (object,) or not all(_is_plain(value) for value in vars(cls).values()):
        return dataclasses.dataclass(frozen=True, slots=True)(cls)
    own = frozenset(vars(cls))
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = made.__dataclass_params__.init = made.__dataclass_params__.eq = True
    for method in (_init_of(made), *_SHARED):
        if method.__name__ not in own:
            setattr(made, method.__name__, method)
    return made  # type: ignore[no-any-return]  # the class that was given, with slots


def _is_plain(value: object) -> bool:
    """Return whether a member asks for nothing that is not done here: a field in no comparison, or without `init`."""
    if getattr(value, "__name__", "") == "__post_init__":
        return False
    return not isinstance(value, dataclasses.Field) or (
        value.init and value.repr and value.compare and value.hash is None and value.kw_only is MISSING
    )


def _init_of(cls: Any) -> Any:
    """Compile `__init__`: a frozen record is filled past its own `__setattr__`."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    arguments, lines = ["self"], []
    for field in dataclasses.fields(cls):
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            known[f"_{name}"] = field.default_factory
            arguments.append(f"{name}=_MISSING")
            value = f"_{name}() if {name} is _MISSING else {name}"
        elif field.default is not MISSING:
            known[f"_{name}"] = field.default
            arguments.append(f"{name}=_{name}")
        else:
            arguments.append(name)
        lines.append(f"    _set(self, {name!r}, {value})")
    text = "\n".join((f"def __init__({', '.join(arguments)}):", *lines, "    return None"))
    exec(text, known)  # noqa: S102 - of the names of fields alone
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _values(record: Any) -> tuple[Any, ...]:
    return tuple([getattr(record, name) for name in record.__match_args__])


def __repr__(self: Any) -> str:  # noqa: N807 - a method of all records, as those below
    named = (f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({', '.join(named)})"


def __eq__(self: Any, other: object) -> Any:  # noqa: N807
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def __hash__(self: Any) -> int:  # noqa: N807
    return hash(_values(self))


def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807, ARG001
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> None:  # noqa: N807, ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def __reduce__(self: Any) -> tuple[Any, ...]:  # noqa: N807
    return type(self), _values(self)


_SHARED = (__repr__, __eq__, __hash__, __setattr__, __delattr__, __reduce__)
"""Methods of every record; one that a class writes itself stays."""
