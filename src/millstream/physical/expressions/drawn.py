"""Functions that are not deterministic: a new value for each row."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from millstream.logical.functions import Function, Signature
from millstream.values import to_arrow


class Draws:
    """Where values are drawn from. Drawn again from the same seed in the same order, they are the
    same: what was drawn for a row stays, however often its query is run."""

    def __init__(self, seed: int | None = None) -> None:
        self._seeds = np.random.SeedSequence(seed)

    def generator(self) -> np.random.Generator:
        """One of its own for each place that draws."""
        return np.random.default_rng(self._seeds.spawn(1)[0])


def drawing(function: Function, signature: Signature, draws: Draws) -> Callable[[int], pa.Array]:
    """What draws the values for so many rows."""
    random = draws.generator()
    if function.name == "rand":
        return lambda length: pa.array(random.random(length))
    if function.name == "uuid":
        return lambda length: pa.array([_uuid(random) for _ in range(length)], pa.string())

    def draw(length: int) -> pa.Array:
        """The present, the same for all rows of a batch."""
        return to_arrow([function.evaluate(signature)] * length, signature.result)

    return draw


def _uuid(random: np.random.Generator) -> str:
    return str(uuid.UUID(bytes=random.bytes(16), version=4))
