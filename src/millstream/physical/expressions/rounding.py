"""Decimal rounding of doubles, exactly as if their shortest digits were rounded.

ROUND(1.005, 2) is 1.01, although the double is a little less than 1.005: what counts are the
shortest digits that name the double. A decimal of at most 15 digits names one double, and no other
such decimal names the same; so a double is at least the tie between two results exactly if it is
at least the double that the tie names, which one correctly rounded division gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.physical.expressions.vector import Mask

_SURE = 1e14  # the tie has a digit more than the result, and must have at most 15
MOST_DIGITS = 20  # powers of ten up to 10^22 are doubles


def half_up(x: Any, digits: int) -> tuple[Any, Mask]:
    """The doubles times 10^digits, rounded half up (away from zero) to whole numbers, and the rows
    where that is right; the others, too large or not finite, are 0."""
    size = np.abs(x)
    with np.errstate(all="ignore"):
        below = np.floor(_shifted(size, digits))
        sure = below < _SURE
        below = np.where(sure, below, 0.0)
        tie = _shifted(below * 10.0 + 5.0, -digits - 1)
        whole = np.copysign(below + (size >= tie), x)
    return np.where(sure, whole, 0.0), sure


def round_half_up(x: Any, digits: int) -> tuple[Any, Mask]:
    """The doubles rounded to so many digits after the point, and the rows where that is right."""
    whole, sure = half_up(x, digits)
    return _shifted(whole, -digits) + 0.0, sure


def _shifted(x: Any, digits: int) -> Any:
    """Times 10^digits by one operation on doubles that are exact."""
    return x * 10.0**digits if digits >= 0 else x / 10.0**-digits
