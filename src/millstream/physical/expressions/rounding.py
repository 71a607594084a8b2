"""Decimal rounding of doubles, exactly as if their shortest digits were rounded.

ROUND(1.005, 2) is 1.01, although the double is a little less than 1.005: what counts are the
shortest digits that identify the double. A decimal of at most 15 digits identifies one double, and
no other such decimal identifies the same one. So a double is at or above the tie between two
results exactly if it is at or above the double of the tie, which one correctly rounded division
computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.physical.expressions.vector import Mask

_SURE = 1e14  # the tie has one digit more than the result, and at most 15
MOST_DIGITS = 20  # powers of ten up to 10^22 are doubles


def half_up(x: Any, digits: int) -> tuple[Any, Mask]:
    """The doubles times 10^digits, rounded half up (away from zero) to whole numbers, and the rows
    where that is exact; the others, too large or not finite, are 0."""
    size = np.abs(x)
    with np.errstate(all="ignore"):
        below = np.floor(_shifted(size, digits))
        sure = below < _SURE
        below = np.where(sure, below, 0.0)
        tie = _shifted(below * 10.0 + 5.0, -digits - 1)
        whole = np.copysign(below + (size >= tie), x)
    return np.where(sure, whole, 0.0), sure


def round_half_up(x: Any, digits: int) -> tuple[Any, Mask]:
    """The doubles rounded to `digits` digits after the point, and the rows where that is exact."""
    whole, sure = half_up(x, digits)
    return _shifted(whole, -digits) + 0.0, sure


def _shifted(x: Any, digits: int) -> Any:
    """Times 10^digits by one operation on exact doubles."""
    return x * 10.0**digits if digits >= 0 else x / 10.0**-digits
