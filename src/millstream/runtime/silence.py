"""Silence: while nothing arrives, the clock moves the frontiers.

A stream by arrival time is as far as the clock, since no row can arrive in the past. A stream with
`IDLE AFTER d` is idle once nothing has arrived from it for d. If other streams are active, an idle
one follows the slowest of them. If no stream is active, an idle one advances from its own frontier
by the time passed since its last row: data replayed from another year stays in that year. Bounded
inputs never move by the clock.

The query checks the clock soon after the last row, then less and less often: rows that expire in
silence are reported with a delay of about a twentieth of that silence, and the checks take a small
share of the time however expensive a round is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER
from millstream.runtime.table_input import TableInput

if TYPE_CHECKING:
    from millstream.runtime.clock import Clock
    from millstream.runtime.inputs import Input

_PRECISION = 20  # one part of the silence: the delay of rows that expire in it
_SHORTEST, _LONGEST = 20_000, 1_000_000  # microseconds between two checks of the clock
_LEAST_REST, _MOST_REST = 1, 50  # time between two checks, in multiples of a check's duration


class Silence:
    """The inputs of one query while they are silent. `by_clock`: tables without a stream follow the
    clock. `by_granule`: the answer changes at instants of a grid, even if no table does. `bounded`:
    the query reads the available rows and ends, so its inputs are never idle."""

    def __init__(
        self,
        inputs: Sequence[Input],
        clock: Clock,
        *,
        by_clock: bool,
        by_granule: bool,
        bounded: bool,
    ) -> None:
        self._tables = [input for input in inputs if isinstance(input, TableInput)]
        self._streams = [input for input in inputs if not isinstance(input, TableInput)]
        self._clock = clock
        self._by_clock = by_clock and not self._streams
        self._by_granule = by_granule
        self._bounded = bounded
        self._since = 0  # the last arrival, by the stopwatch
        self._looked = 0  # the end of the last check of the clock
        self._took = 0  # the duration of that check

    # --- what happens ----------------------------------------------------------------------------

    def begin(self, ticks: int) -> None:
        self._since = self._looked = ticks

    def heard(self, inputs: Iterable[Input]) -> None:
        """A round in which these inputs had rows is over. The arrival counts as now: while the
        query was busy, its sources were not silent."""
        ticks = self._clock.ticks()
        for input in inputs:
            input.heard = input.moved = ticks
            self._since = self._looked = ticks

    def looked(self, began: int) -> None:
        """A round caused only by the clock is over."""
        self._looked = self._clock.ticks()
        self._took = self._looked - began

    def brought(self, input: Input, frontier: int) -> None:
        """An input advances to a frontier without a row. The rest of a time unit is carried
        over."""
        unit = input.stream.domain.microseconds
        if unit is not None and input.idle and frontier == self._continued(input):
            input.moved += (frontier - input.frontier) * unit
        else:
            input.moved = self._clock.ticks()
        input.frontier = frontier

    # --- how far the clock brings the streams ----------------------------------------------------

    def note_idle(self) -> None:
        """Mark the sources that have been silent for too long as idle."""
        ticks = self._clock.ticks()
        for input in self._patient():
            if not input.ready:
                input.idle = ticks - input.heard >= _patience(input)

    def frontiers(self) -> list[tuple[Input, int]]:
        """The frontier of each stream that the clock moves."""
        live = [input for input in self._streams if not input.ended]
        now = self._clock.now()
        arriving = [input for input in live if self._goes_by_arrival(input)]
        awake = [input for input in live if not input.idle and input not in arriving]
        slowest = min([input.frontier for input in awake] + [now for _ in arriving], default=None)
        idle = [input for input in live if input.idle]
        if slowest is None:
            slowest = max(map(self._continued, idle), default=NEVER)
        return [*((input, now) for input in arriving), *((input, slowest) for input in idle)]

    def _continued(self, input: Input) -> int:
        """The frontier of an idle stream, advanced by the time passed since its last move."""
        if input.frontier in (NEVER, INFINITY):
            return input.frontier
        unit = input.stream.domain.microseconds
        assert unit is not None
        return min(input.frontier + (self._clock.ticks() - input.moved) // unit, INFINITY - 1)

    def _goes_by_arrival(self, input: Input) -> bool:
        return not input.stream.time and not input.bounded and not self._bounded

    def _patient(self) -> list[Input]:
        """The streams that may become idle."""
        if self._bounded:
            return []
        return [i for i in self._streams if i.patience is not None and not i.ended]

    # --- when to look next -----------------------------------------------------------------------

    def next_look(self, awaited: Iterable[int], frontier: int) -> int | None:
        """When the clock can move the query next, by the stopwatch: a source becomes idle, or time
        has passed. `awaited` are instants that snapshots wait for."""
        looks = [i.heard + _patience(i) for i in self._patient() if not i.idle]
        if self._is_moved_by_clock(awaited, frontier):
            looks.append(self._next_tick(awaited))
        return min(looks, default=None)

    def _is_moved_by_clock(self, awaited: Iterable[int], frontier: int) -> bool:
        """Whether the frontier of the query follows the clock: it waits for no input."""
        if self._by_clock:
            ahead = any(table.is_ahead for table in self._tables)
            return ahead or self._by_granule or any(instant >= frontier for instant in awaited)
        live = [input for input in self._streams if not input.ended]
        known = any(i.frontier > NEVER or self._goes_by_arrival(i) for i in live)
        return known and all(input.idle or self._goes_by_arrival(input) for input in live)

    def _next_tick(self, awaited: Iterable[int]) -> int:
        ticks = self._clock.ticks()
        least = _SHORTEST + _LEAST_REST * self._took
        most = _LONGEST + _MOST_REST * self._took
        pause = min(max((ticks - self._since) // _PRECISION, least), most)
        if any(instant < self._reach() for instant in awaited):
            pause = least
        return self._looked + pause

    def _reach(self) -> int:
        """The frontier if the clock moved the query now."""
        moved = [frontier for _, frontier in self.frontiers()]
        return min(moved, default=self._clock.now() if self._by_clock else NEVER)


def _patience(input: Input) -> int:
    assert input.patience is not None
    return input.patience
