"""All kernels by the name of their function."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.functions import Signature
from millstream.physical.expressions import (
    arithmetic,
    comparisons,
)
from millstream.physical.expressions.nodes import Kernel, Node

_FAMILIES = (arithmetic, comparisons)
_KERNELS = {name: build for family in _FAMILIES for name, build in family.KERNELS.items()}

# Functions that queries guard against the rows for which they are not defined.
GUARDED = frozenset(["/", "%", "div", "element", "element_at", "split_part", "like"])


def kernel_of(name: str, signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """What evaluates the function on whole columns; None where only the reference can."""
    build = _KERNELS.get(name)
    return None if build is None else build(signature, arguments)
