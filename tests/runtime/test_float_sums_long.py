"""Sums and averages of doubles over long windows, full of values that drown others.

Every value of the answer is compared with the exact rational sum of the rows in the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms

CLOSE = 1e-9
EXTREME = (1e17, -1e17, 1e300, -1e300, 5e-324, 0.1, -0.3, 1e17 + 2, math.nan, math.inf, -math.inf)


def values(seed: int, count: int, share: float) -> list[float]:
    """Small values, and a share of others that drown them."""
    chance = Random(seed)
    return [
        chance.choice(EXTREME) if chance.random() < share else chance.uniform(-1, 1)
        for _ in range(count)
    ]


def exact_sum(held: Sequence[float]) -> float | None:
    if not held:
        return None
    if any(map(math.isnan, held)) or {math.inf, -math.inf} <= {*held}:
        return math.nan
    infinite = [value for value in held if math.isinf(value)]
    return infinite[0] if infinite else float(sum(map(Fraction, held)))


def exact_average(held: Sequence[float]) -> float | None:
    total = exact_sum(held)
    if total is None or math.isnan(total) or math.isinf(total):
        return total
    return float(sum(map(Fraction, held)) / len(held))


def is_close(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    if math.isnan(expected) or math.isinf(expected):
        return math.isnan(found) if math.isnan(expected) else found == expected
    return abs(found - expected) <= CLOSE * max(1e-300, abs(expected))


def answers(window: str, stream: Sequence[float]) -> list[dict[str, Any]]:
    """SUM and AVG as they change, over rows one instant apart."""
    session = ms.Session(engine="local")
    rows = pa.table({"t": range(len(stream)), "v": pa.array(stream, pa.float64())})
    session.stream("S", rows, time="t")
    table = session.sql(f"SELECT SUM(v) AS total, AVG(v) AS mean FROM S {window}").run()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


WINDOWS: dict[str, Callable[[Sequence[float], int], Sequence[float]]] = {
    "WINDOW(RANGE 20)": lambda stream, at: stream[max(0, at - 19) : at + 1],
    "WINDOW(RANGE 300)": lambda stream, at: stream[max(0, at - 299) : at + 1],
    "WINDOW(ROWS 20)": lambda stream, at: stream[max(0, at - 19) : at + 1],
}


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_sums_and_averages_are_exact_at_every_instant(window: str, share: float) -> None:
    stream = values(7, 1_500, share)
    checked = 0
    for answer in answers(window, stream):
        for at in range(answer["valid_from"], min(answer["valid_to"], len(stream))):
            held = WINDOWS[window](stream, at)
            assert is_close(answer["total"], exact_sum(held)), (at, held)
            assert is_close(answer["mean"], exact_average(held)), (at, held)
            checked += 1
    assert checked == len(stream)


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_what_was_drowned_comes_back() -> None:
    """A thousand tenths, and 1e17, NaN or infinity that pass through the window with them."""
    for passing in (1e17, math.nan, math.inf, -math.inf, 1e308):
        stream = [0.1] * 400 + [passing] + [0.1] * 400
        (last,) = [a for a in answers("WINDOW(RANGE 100)", stream) if covers(a, 700)]
        assert last["total"] == float(100 * Fraction(0.1))
        (during,) = [a for a in answers("WINDOW(RANGE 100)", stream) if covers(a, 450)]
        assert is_close(during["total"], exact_sum(stream[351:451]))


def covers(answer: dict[str, Any], at: int) -> bool:
    return answer["valid_from"] <= at < answer["valid_to"]
