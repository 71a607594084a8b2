"""Schedules: every way in which rows can come to a plan, as steps drawn from a tape.

Inputs are cut into batches of any size and interleaved in any way, the frontier of each advances as
fast or as slowly as its rows allow, batches without rows carry it further, and between any two
batches the plan may be stopped and started again. A tape of zeros is the simplest schedule: one
batch an input, whichever is furthest behind first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER
from oracle.random_streams import Tape


@dataclass(frozen=True)
class Arrival:
    """Rows of a stream, by their numbers in its order, and its frontier after them."""

    stream: str
    rows: tuple[int, ...]
    frontier: int


@dataclass(frozen=True)
class Restart:
    """The state is saved; a new plan takes it over if `anew`, else the same one continues."""

    anew: bool


class Line:
    """The rows of a stream in the order in which they come, and how far it has got."""

    def __init__(self, stream: str, starts: Sequence[int], order: Sequence[int]) -> None:
        self.stream = stream
        self.starts = starts
        self.order = order
        self.place = 0
        self.largest = self.frontier = NEVER
        left = accumulate((starts[row] for row in reversed(order)), min)
        self._limits = [INFINITY, *left][::-1]

    @property
    def limit(self) -> int:
        """No row that is still to come starts before it."""
        return self._limits[self.place]

    @property
    def is_over(self) -> bool:
        return self.place == len(self.order)

    def take(self, count: int) -> tuple[int, ...]:
        taken = tuple(self.order[self.place : self.place + count])
        self.place += len(taken)
        self.largest = max([self.largest, *(self.starts[row] for row in taken)])
        return taken

    def go_on(self, frontier: int) -> int:
        """The frontier moves there if it may."""
        self.frontier = max(self.frontier, min(frontier, self.limit))
        return self.frontier


@dataclass
class Manner:
    """How one schedule makes its choices."""

    tape: Tape

    def __post_init__(self) -> None:
        pick = self.tape.pick
        self.size = pick(0, 1, 2, 3, 5, 9)  # of a batch, 0 for any
        self.turn = pick("behind", "any", "any", "first", "last")
        self.pace = pick("rule", "rule", "next", "any", "any")
        self.beats = pick(0, 0, 2, 4)  # of ten
        self.restarts = pick(0, 0, 1, 3, 10)  # of ten

    def chance(self, tenths: int) -> bool:
        return self.tape.number(10) >= 10 - tenths

    def next_line(self, lines: Sequence[Line]) -> Line:
        match self.turn:
            case "behind":
                return min(lines, key=lambda line: line.limit)
            case "any":
                return self.tape.pick(*lines)
        return lines[0 if self.turn == "first" else -1]

    def count(self, line: Line) -> int:
        left = len(line.order) - line.place
        return left - self.tape.number(left) if self.size == 0 else self.size

    def frontier(self, line: Line) -> int:
        """The rule is that the frontier follows the largest start."""
        rule = min(line.largest, line.limit)
        if self.pace == "next":
            return line.limit if line.limit < INFINITY else rule
        return rule if self.pace == "rule" else self.any_frontier(line)

    def any_frontier(self, line: Line) -> int:
        rule = min(line.largest, line.limit)
        if line.is_over:
            ahead = (max(line.starts, default=0) + self.tape.number(30), INFINITY)
        else:
            ahead = (line.limit - self.tape.number(5), line.limit)
        return self.tape.pick(rule, *ahead, line.frontier)


def schedule(
    tape: Tape, starts: Mapping[str, Sequence[int]], ordered: frozenset[str]
) -> Iterator[Arrival | Restart]:
    """Steps that bring the rows of all streams, those of `ordered` ones in order of time, and then
    the end of each."""
    manner = Manner(tape)
    lines = [Line(stream, of, _order(tape, of, stream in ordered)) for stream, of in starts.items()]
    while waiting := [line for line in lines if not line.is_over]:
        if manner.chance(manner.restarts):
            yield Restart(tape.pick(True, True, False))
        if manner.chance(manner.beats):
            line = tape.pick(*lines)
            yield Arrival(line.stream, (), line.go_on(manner.any_frontier(line)))
            continue
        line = manner.next_line(waiting)
        taken = line.take(manner.count(line))
        yield Arrival(line.stream, taken, line.go_on(manner.frontier(line)))
    for line in tape.pick(lines, lines[::-1]):
        if manner.chance(manner.restarts):
            yield Restart(anew=True)
        yield Arrival(line.stream, (), line.go_on(INFINITY))


def _order(tape: Tape, starts: Sequence[int], ordered: bool) -> list[int]:
    """The order in which rows come: that of the stream, or a little beside it, or any."""
    rows = list(range(len(starts)))
    spread = tape.pick(3, 1, 1_000)
    random = Random(tape.number(256))
    if ordered:
        return rows
    place = [start + spread * random.random() for start in starts]
    return sorted(rows, key=place.__getitem__)
