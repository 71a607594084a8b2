"""The last rows of a stream: whatever waits at the end of a batch is there when the next one comes,
and rows of one instant are in their order though batches part them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch
from millstream.physical.events.sweep import Exchanges
from millstream.physical.state.last_rows import LastRows

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=20)  # gap, order
CUTS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 0, 1]), st.booleans()))


def sums(rows: list[tuple[int, int, int]], window: int) -> dict[int, int]:
    """After each instant, of (time, order, value)."""
    found = {}
    for now in sorted({time for time, _, _ in rows}):
        came = sorted(row for row in rows if row[0] <= now)
        found[now] = sum(value for _, _, value in came[-window:])
    return found


def batch_of(rows: list[tuple[int, int, int]], frontier: int) -> Batch:
    start = [time for time, _, _ in rows]
    order = pa.array([order for _, order, _ in rows], pa.int64())
    return Batch.of([order], start, [INFINITY] * len(rows), frontier=frontier)


@settings(max_examples=examples(300))
@given(ROWS, CUTS, st.integers(1, 3))
def test_sums_of_the_last_rows(
    steps: list[tuple[int, int]], cuts: list[tuple[int, int, bool]], window: int
) -> None:
    times = np.cumsum([gap for gap, _ in steps], dtype=np.int64).tolist()
    rows = [
        (time, order, 1 << n) for n, (time, (_, order)) in enumerate(zip(times, steps, strict=True))
    ]
    last = LastRows(window, 1, keyed=False)
    found: dict[int, int] = {}
    total = read = reached = 0
    for size, behind, stops in [*cuts, (len(rows), 0, False)]:
        part = rows[read : read + size]
        read += len(part)
        reached = max(reached, rows[read - 1][0] - behind if read else 0)
        at_end = read == len(rows) and size == len(rows)
        batch = batch_of(part, INFINITY if at_end else reached)
        words = [np.array([value for _, _, value in part], np.int64)]
        came = last.swept(np.zeros(len(part), np.int64), batch, words, 1)
        if isinstance(came, Exchanges):
            changes = came.came[0] - came.went[0]
        else:
            events = came.delta * came.words[0]
            changes = [
                events[a:b].sum() for a, b in zip(came.bounds[:-1], came.bounds[1:], strict=True)
            ]
        for time, change in zip(came.step_time.tolist(), changes, strict=True):
            assert time not in found, "no instant comes in halves"
            total += int(change)
            found[time] = total
        assert len(last) == min(window, sum(time in found for time, _, _ in rows)) + sum(
            time not in found for time, _, _ in rows[:read]
        )
        if stops:
            state = last.save()
            last = LastRows(window, 1, keyed=False)
            last.restore(state)
    assert found == sums(rows, window)
