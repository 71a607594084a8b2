"""Random counts: how often a value that depends on them changes.

If rows arrive at random with rate λ and stay for l chronons on average, their number at any instant
is Poisson with mean λ·l, whatever the distribution of their lifetimes (the queue M/G/∞). So the
formulas below are exact for Poisson arrivals. K's are limits: K assumes that a key is either always
or never present.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Level = Callable[[Floats, Floats], Floats]

MOST = 2000.0  # larger means are scaled down: then only the ratio matters


def ever_there(mean: float) -> float:
    """The probability that a count with this mean is not zero."""
    return -math.expm1(-mean)


def unequal(mean: float) -> float:
    """The probability that two counts with this mean differ: 1 - e^(-2m)·I₀(2m). That is how often
    rows that arrive and expire within a granule do not cancel out.

    >>> round(unequal(1e-6) * 1e6, 3), round(unequal(1.0), 3), round(unequal(1e6), 3)
    (2.0, 0.691, 1.0)
    """
    if mean > 300:
        return 1 - 1 / math.sqrt(4 * math.pi * mean)
    if mean < 1e-4:
        return 2 * mean
    return 1 - math.exp(-2 * mean) * float(np.i0(2 * mean))


def poisson(mean: float) -> tuple[Floats, Floats]:
    """Counts that are not too rare, and their probabilities."""
    spread = 6 * math.sqrt(mean) + 6
    counts = np.arange(max(0.0, math.floor(mean - spread)), math.ceil(mean + spread) + 1)
    factorials = np.array([math.lgamma(count + 1) for count in counts])
    chances = np.exp(counts * math.log(max(mean, 1e-300)) - mean - factorials)
    return counts, chances / chances.sum()


def level_changes(level: Level, left: float, right: float) -> tuple[float, float, float]:
    """For a level that depends on the counts of a row in two inputs with these means: its mean, and
    the probabilities that one row more or less in the left and in the right input changes it."""
    scale = max(left, right, MOST) / MOST
    counts, chances = poisson(left / scale)
    others, other_chances = poisson(right / scale)
    grid = np.outer(chances, other_chances)
    rows, columns = np.meshgrid(counts, others, indexing="ij")
    now = level(rows, columns)
    mean = float((grid * now).sum()) * scale
    by_left = float((grid * (level(rows + 1, columns) != now)).sum())
    by_right = float((grid * (level(rows, columns + 1) != now)).sum())
    return mean, by_left, by_right
