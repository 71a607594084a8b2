"""Arithmetic on arrays of instants that saturates at INFINITY."""

from __future__ import annotations

import numpy as np

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Ints


def plus(instants: Ints, distance: int) -> Ints:
    """instants + distance, for a distance that is not negative."""
    if distance >= INFINITY:
        return np.full(len(instants), INFINITY)
    later: Ints = np.minimum(instants, INFINITY - distance) + distance
    return later


def up(instants: Ints, granule: int) -> Ints:
    """The first multiple of the granule at or after each instant; NEVER and INFINITY stay."""
    if granule == 1:
        return instants
    free = (instants <= INFINITY - granule) & (instants > NEVER + granule)
    return np.where(free, -(-np.where(free, instants, 0) // granule) * granule, instants)
