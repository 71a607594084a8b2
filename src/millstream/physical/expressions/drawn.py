"""Functions that are not deterministic: a new value for each row."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Call
from millstream.logical.functions import Function, Signature
from millstream.model.values import to_arrow


class Draws:
    """Where values are drawn from. Drawn again from the same seed in the same order, they are the
    same: what was drawn for a row stays, however often its query is run, and wherever in a plan
    the same call stands."""

    def __init__(self, seed: int | None = None) -> None:
        self._seed = secrets.randbits(64) if seed is None else seed
        self._calls: list[Call] = []

    def generator(self, call: Call) -> np.random.Generator:
        """The values of one call; of another one that looks like it they are different."""
        known = [number for number, other in enumerate(self._calls) if other is call]
        if not known:
            known = [len(self._calls)]
            self._calls.append(call)
        return np.random.default_rng([self._seed, known[0]])


def drawing(
    function: Function, signature: Signature, random: np.random.Generator
) -> Callable[[int], pa.Array]:
    """What draws the values for so many rows."""
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
