"""Functions that are not deterministic: a new value for each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from millstream.logical.functions import Function, Signature
from millstream.values import to_arrow


def drawing(function: Function, signature: Signature) -> Callable[[int], pa.Array]:
    """What draws the values for so many rows."""
    if function.name == "rand":
        random = np.random.default_rng()  # not one for all: processes that fork must differ
        return lambda length: pa.array(random.random(length))

    def draw(length: int) -> pa.Array:
        return to_arrow([function.evaluate(signature) for _ in range(length)], signature.result)

    return draw
