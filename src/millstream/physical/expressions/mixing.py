"""Two ways to compute a batch: a fast one for the usual rows, an exact one for the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.physical.expressions.nodes import Kernel
from millstream.physical.expressions.vector import Gathering, Mask, Vector, present


def mixed(values: pa.Array, usual: Mask, fast: Kernel, exact: Kernel) -> Vector:
    """By `fast` in the usual rows (also where the value is NULL), by `exact` in the others."""
    if usual.all():
        return fast(values)
    valid = present(values)
    if valid is not None:
        usual = usual | ~valid
        if usual.all():
            return fast(values)
    if not usual.any():
        return exact(values)
    easy, hard = np.flatnonzero(usual), np.flatnonzero(~usual)
    first = fast(values.take(pa.array(easy)))
    gathering = Gathering(first.values.type, len(values))
    gathering.add(easy, first)
    gathering.add(hard, exact(values.take(pa.array(hard))))
    return gathering.vector()
