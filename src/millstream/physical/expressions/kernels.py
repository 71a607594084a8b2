"""All kernels by the name of their function."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.functions import Signature
from millstream.physical.expressions import (
    arithmetic,
    comparisons,
    mathematics,
    nested,
    strings,
    temporal,
)
from millstream.physical.expressions.nodes import Kernel, Node

_FAMILIES = (arithmetic, comparisons, mathematics, strings, temporal, nested)
_KERNELS = {name: build for family in _FAMILIES for name, build in family.KERNELS.items()}


def kernel_of(name: str, signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """The kernel that evaluates the function on whole columns; None if only the reference can."""
    build = nested.field_builder(name) or _KERNELS.get(name)
    return None if build is None else build(signature, arguments)
