"""Sorted groups hold what came and did not go, however values come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from millstream.physical.accumulators.sorted_groups import SortedGroups

PATTERNS: dict[str, Callable[[random.Random, int], int]] = {
    "rising": lambda draw, i: i,
    "falling": lambda draw, i: -i,
    "anywhere": lambda draw, i: draw.randrange(-(2**63), 2**63),
    "few": lambda draw, i: draw.randrange(60),
    "outwards": lambda draw, i: i if i % 2 else -i,
    "inwards": lambda draw, i: 10**6 - i if i % 2 else i - 10**6,
}
GOINGS: dict[str, Callable[[random.Random, list[int]], int]] = {
    "oldest": lambda draw, held: held.pop(0),
    "newest": lambda draw, held: held.pop(),
    "any": lambda draw, held: held.pop(draw.randrange(len(held))),
    "least": lambda draw, held: held.pop(held.index(min(held))),
    "greatest": lambda draw, held: held.pop(held.index(max(held))),
}


@pytest.mark.parametrize("going", GOINGS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_any_way_of_coming_and_going(pattern: str, going: str) -> None:
    draw = random.Random(f"{pattern} {going}")
    groups = SortedGroups()
    groups.grow(1)
    held: list[int] = []
    for step, stay in enumerate([0.9, 0.9, 0.5, 0.2, 0.9, 0.1, 0.1, 0.1]):
        values, delta, least = [], [], []
        for i in range(400):
            if held and draw.random() > stay:
                values.append(GOINGS[going](draw, held))
                delta.append(-1)
            else:
                values.append(PATTERNS[pattern](draw, 400 * step + i))
                held.append(values[-1])
                delta.append(1)
            least.append(min(held, default=None))
        words, group = np.array(values), np.zeros(400, np.int64)
        events = group, words, words, False, np.array(delta), np.arange(401)
        given, valid = groups.extremes(False, *events)
        assert [v if ok else None for v, ok in zip(given.tolist(), valid, strict=True)] == least
        assert groups.values().tolist() == sorted(Counter(held))
        state = groups.save()
        groups = SortedGroups()
        groups.restore(state)
