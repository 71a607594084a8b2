"""TimeWindow: extends the validity of each row to the window.

*Meaning*: for every t, out(t) = the sum of in(u) over the granules u of the window that ends at the
last instant, before or at t, at which the window slides.
*State*: none: a row of granule k enters when the window first reaches it, at `enter(k)`, and leaves
at `enter(k + size)`.
*Pattern*: that of the input, since both are monotone in k; MONOTONIC if the window is unbounded.
*Cost*: constant per element. *Source*: K algorithms 12 and 18, eq. 17.1.

Elements must cover one granule. Only at the end of a bounded input do rows that never end arrive as
one element, which adds to the window until it is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from millstream.model.errors import QueryError
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch, Ints, merged
from millstream.physical.instants import plus
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.pieces import check_pieces


@dataclass(frozen=True)
class TimeWindow(PhysicalPlan):
    """`size` and `slide` are multiples of `granule`; INFINITY is UNBOUNDED."""

    input: PhysicalPlan
    size: int
    slide: int = 1
    granule: int = 1

    @cached_property
    def pattern(self) -> Pattern:
        if self.size == INFINITY and self.input.pattern is not Pattern.STRICT:
            return Pattern.MONOTONIC
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        return TimeWindowOperator(self)


class TimeWindowOperator(Operator):
    def __init__(self, node: TimeWindow) -> None:
        self._node = node

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        if batch.frontier == INFINITY:
            for_ever = batch.end == INFINITY
            if for_ever.any():
                now = batch.where(~for_ever)
                return [merged([self._windowed(now), self._filled(batch.where(for_ever))])]
        return [self._windowed(batch)]

    def _windowed(self, batch: Batch) -> Batch:
        end = plus(batch.start, self._node.size)
        if self._node.slide == self._node.granule:
            return Batch(batch.columns, batch.start, end, batch.weight, batch.frontier)
        return batch.timed(self.enter(batch.start), self.enter(end))

    def enter(self, start: Ints) -> Ints:
        """When the granule that starts there enters the window."""
        granule, slide = self._node.granule, self._node.slide
        if slide == granule:
            return start
        free = start <= INFINITY - 2 * slide
        begun = np.where(free, start, 0)
        return np.where(free, (begun + slide) // slide * slide - granule, INFINITY)

    def _filled(self, batch: Batch) -> Batch:
        """For rows that never end: each granule adds one more, until the first one leaves."""
        if self._node.size == INFINITY:
            raise unsettled()
        count = self._node.size // self._node.granule
        check_pieces(np.full(len(batch), count), self._node.granule)
        # All start at one instant, so step by step they are in order.
        rows = np.tile(np.arange(len(batch)), count)
        steps = np.repeat(np.arange(count, dtype=np.int64), len(batch)) * self._node.granule
        filled = batch.take(rows)
        return replace(filled, start=self.enter(filled.start + steps))


def unsettled() -> QueryError:
    return QueryError(
        "the answer never settles: a window keeps moving over rows that are valid forever",
        help="ask for a snapshot at an instant, or bound the window below",
    )
