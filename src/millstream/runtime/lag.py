"""Lag: how long rows wait before the query takes them, and a warning if they wait long.

A query falls behind if its streams bring more rows than it can process. The rows then wait in
queues, or in Spark, which delivers ever larger batches. Bounded inputs never lag: they are read as
fast as they are processed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from millstream.model.errors import OverloadWarning, warn_caller
from millstream.runtime.table_input import TableInput

if TYPE_CHECKING:
    from millstream.runtime.clock import Clock
    from millstream.runtime.inputs import Input

_LOOK = 1_000_000  # microseconds between two checks
_LONG = 5.0  # seconds that rows may wait
_TIMES = 2  # checks in a row before a warning: the first batches are slow
_GROWTH = 1.3  # the growth of batches if rows wait elsewhere


class Load(NamedTuple):
    """Per stream: rows per second that arrive and that are taken, and seconds that rows wait."""

    came: float
    took: float
    lag: float


class Lag:
    """Watches the inputs of one query. `sheds`: whether rows may be dropped."""

    def __init__(self, query: str, inputs: Sequence[Input], clock: Clock, sheds: bool) -> None:
        self._query = query
        self._clock = clock
        self._sheds = sheds
        live = (i for i in inputs if not i.bounded and not isinstance(i, TableInput))
        self._watched: list[_Queued | _Elsewhere] = [
            _Queued(input) if input.queued is not None else _Elsewhere(input) for input in live
        ]
        self._looked = 0

    def begin(self, ticks: int) -> None:
        self._looked = ticks

    def look(self, began: int) -> None:
        """Called at the end of a round; warns once, about the first stream whose rows wait long."""
        ticks = self._clock.ticks()
        if not self._watched or ticks - self._looked < _LOOK:
            return
        passed, self._looked = (ticks - self._looked) / 1e6, ticks
        for watched in self._watched:
            load = watched.look(passed, (ticks - began) / 1e6)
            if load is not None:
                self._watched = []
                self._warn(watched.input, load)
                return

    def _warn(self, input: Input, load: Load) -> None:
        name, declared = input.stream.name, input.stream.rate
        told = "no rate is declared" if declared is None else f"{declared:,.0f} are declared"
        warn_caller(
            f'query "{self._query}" falls behind: rows of stream "{name}" wait for about '
            f"{load.lag:,.0f} seconds; {load.came:,.0f} rows per second arrive ({told}), and "
            f"{load.took:,.0f} are taken",
            OverloadWarning,
            self._help(declared, load),
        )

    def _help(self, declared: float | None, load: Load) -> str:
        if not self._sheds:
            return "allow dropping rows with SHED, or run the query on more processors"
        if declared is None or declared < load.came:
            return (
                "rows are dropped by the rates that streams declare: start the query again WITH "
                f"(rate = {load.came:.0f})"
            )
        return "the estimates are too low for this machine: measure it with millstream calibrate"


class _Queued:
    """A stream whose rows wait in a queue of the query."""

    def __init__(self, input: Input) -> None:
        self.input = input
        self._taken = self._arrived = 0
        self._found = 0  # consecutive checks that found rows waiting long

    def look(self, passed: float, round: float) -> Load | None:
        waiting, taken = self.input.queued or 0, self.input.received
        took = (taken - self._taken) / passed
        came = (taken + waiting - self._arrived) / passed
        self._taken, self._arrived = taken, taken + waiting
        lag = waiting / took if took else 0.0
        self._found = self._found + 1 if lag >= _LONG else 0
        return Load(came, took, lag) if self._found >= _TIMES else None


class _Elsewhere:
    """A stream whose rows wait elsewhere: the rows that arrive during a round are the next batch,
    so batches that take longer and longer show that the query falls behind."""

    def __init__(self, input: Input) -> None:
        self.input = input
        self._taken = 0
        self._round = 0.0
        self._found = 0

    def look(self, passed: float, round: float) -> Load | None:
        rows, before = self.input.received - self._taken, self._round
        self._taken, self._round = self.input.received, round
        grew = rows > 0 and round >= max(_GROWTH * before, 1.0) and passed < round + _LONG
        self._found = self._found + 1 if grew else 0
        if self._found <= _TIMES or round < _LONG:
            return None
        return Load(rows / before, rows / round, round)
