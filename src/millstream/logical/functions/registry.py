"""All scalar functions by name."""

from __future__ import annotations

from millstream.logical.functions import (
    arithmetic,
    logic,
    mathematics,
    nested,
    strings,
    temporal,
)
from millstream.logical.functions.function import Function
from millstream.logical.functions.nested import field_access

_FAMILIES = (arithmetic, logic, mathematics, strings, temporal, nested)
_FUNCTIONS = {function.name: function for family in _FAMILIES for function in family.FUNCTIONS}


def lookup(name: str) -> Function | None:
    """The function of that canonical name; `.x` is the access to the field x of a struct."""
    if name.startswith(".") and len(name) > 1:
        return field_access(name[1:])
    return _FUNCTIONS.get(name.lower())


def names() -> list[str]:
    """The canonical names of all functions and operators, sorted."""
    return sorted(_FUNCTIONS)
