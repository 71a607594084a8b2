"""Nondeterministic functions: a new value per row."""

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
    """A source of random values. The same seed and order give the same values: a row keeps its
    value however often its query runs, and wherever in a plan the call is."""

    def __init__(self, seed: int | None = None) -> None:
        self._seed = secrets.randbits(64) if seed is None else seed
        self._calls: list[Call] = []

    def generator(self, call: Call) -> np.random.Generator:
        """The generator of one call; a different call with the same text gets different values."""
        known = [number for number, other in enumerate(self._calls) if other is call]
        if not known:
            known = [len(self._calls)]
            self._calls.append(call)
        return np.random.default_rng([self._seed, known[0]])


def drawing(
    function: Function, signature: Signature, random: np.random.Generator
) -> Callable[[int], pa.Array]:
    """A function that draws the values for a number of rows."""
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
