"""Events in order of time and key, whatever pieces they come in; and the slots of rows."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.physical.batch import Batch
from millstream.physical.events.timeline import Timeline
from millstream.physical.kernels.timeline import in_order
from millstream.physical.state.slots import Slots


@pytest.mark.parametrize(
    "lengths", [[1], [1, 1], [0, 5], [7, 1], [1, 40], [30, 30, 30], [9, 2, 80, 3]]
)
@pytest.mark.parametrize("instants", [2, 10, 1000])
def test_pieces_are_merged_in_order_of_time_key_and_sign(lengths: list[int], instants: int) -> None:
    random = np.random.default_rng(len(lengths) * instants)
    lengths = [length for length in lengths if length]
    pieces = np.cumsum([0, *lengths])
    times = np.concatenate([np.sort(random.integers(0, instants, n)) for n in lengths])
    codes, changes = random.integers(0, 4, len(times)), random.choice([-2, -1, 1], len(times))
    events = np.stack([times, codes, changes, np.arange(len(times))])
    ordered, bounds = in_order(events, pieces)
    expected = events[:, np.lexsort([changes < 0, codes, times])]
    assert ordered.tolist() == expected.tolist()
    steps = expected[:2]
    fresh = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 1
    assert bounds.tolist() == [0, *fresh.tolist(), len(times)]


def test_of_an_instant_what_comes_stands_before_what_goes() -> None:
    timeline = Timeline([False, False])
    weights = np.array([-1, 1, 2])
    batch = Batch.of([], start=[5, 5, 5], end=[9, 9, 9], weight=weights, frontier=9)
    timeline.add(0, np.array([3, 3, 1]), batch)
    timeline.add(1, np.array([1, 3, 3]), batch)
    steps = timeline.due(9)
    assert steps.code.tolist() == [1, 1, 3, 3, 3, 3]
    assert steps.delta.tolist() == [2, -1, 1, 1, 2, -1]
    assert steps.bounds.tolist() == [0, 2, 6]


def test_nothing_due_is_no_steps() -> None:
    steps = Timeline([True], words=1).due(7)
    assert len(steps) == 0
    assert [len(word) for word in steps.words] == [0]


def test_slots_are_given_out_in_the_order_in_which_they_came_back() -> None:
    random = np.random.default_rng(1)
    slots, free, used = Slots(8), list(range(8)), []
    for _ in range(200):
        lacking = slots.lacking(count := int(random.integers(0, 6)))
        if lacking:
            free += range(slots.capacity, slots.capacity + lacking)
            slots.grow(slots.capacity + lacking)
        taken = slots.take(count).tolist()
        assert taken == free[:count]
        used, free = used + taken, free[count:]
        back = [used.pop(0) for _ in range(int(random.integers(0, len(used) + 1)))]
        slots.release(np.array(back, np.int64))
        free += back
        assert slots.used == len(used)
        assert slots.in_use().tolist() == sorted(used)
