"""Split: the input cut into granules.

*Meaning*: for every t of the grid, out(t) = in(t), as elements of one granule each.
*State*: the valid rows, and their known future.
*Pattern*: WEAKEST: granule by granule, in order. *Cost*: constant per row and granule. *Source*: K
§11.7.1 with l_out = the granule.

Time begins with the first input of the query: elements before that are not cut, and nothing is
emitted until no source can start earlier. At the end of a bounded input, rows that never end become
one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, State
from millstream.physical.instants import up
from millstream.physical.kernels.steps import previous_steps
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.pieces import check_pieces
from millstream.physical.state.multisets import Multisets


@dataclass(frozen=True)
class Split(PhysicalPlan):
    input: PhysicalPlan
    granule: int = 1

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern.WEAKEST

    @property
    def state(self) -> str:
        return "keyed"

    def open(self, context: Context) -> Operator:
        return SplitOperator(self, context)


class SplitOperator(Operator):
    def __init__(self, node: Split, context: Context) -> None:
        self._granule = node.granule
        self._context = context
        self._multiset = Multisets(node.types, [node.input.pattern is Pattern.WEAKEST])
        self._known = NEVER  # the frontier of the input
        self._frontier = NEVER  # of the output
        self._given = NEVER  # everything before it has been emitted

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._multiset.forget()
        self._multiset.add(0, batch)
        self._known = max(self._known, batch.frontier)
        return self.begin() if self._context.has_begun else []

    def begin(self) -> Sequence[Batch]:
        if self._known <= self._frontier:
            return []
        self._frontier = self._known
        return [self._cut(*self._pieces(self._frontier))]

    def _pieces(self, frontier: int) -> tuple[Ints, Ints, Ints, Ints]:
        """The codes, starts, ends and levels known up to the frontier."""
        levels = self._multiset.counts[:, 0]
        held = np.flatnonzero(levels)
        held_levels = levels[held]
        steps, counts = self._multiset.due(frontier)
        order = np.argsort(steps.step_code, kind="stable")  # by time within each row
        codes, times = steps.step_code[order], steps.step_time[order]
        before, after = counts.before[0, order], counts.after[0, order]
        previous = previous_steps(codes)
        last = np.append(previous[1:] < 0, True)[: len(codes)]  # the last of its row
        still = np.isin(held, codes, invert=True)
        return (
            np.concatenate([codes, codes[last], held[still]]),
            np.concatenate(
                [
                    np.where(previous < 0, NEVER, times[previous]),
                    times[last],
                    held[still] * 0 + NEVER,
                ]
            ),
            np.concatenate([times, times[last] * 0 + INFINITY, held[still] * 0 + INFINITY]),
            np.concatenate([before, after[last], held_levels[still]]),
        )

    def _cut(self, codes: Ints, start: Ints, end: Ints, level: Ints) -> Batch:
        """The granules that begin before the frontier and were not emitted yet."""
        granule = self._granule
        first = max(self._given, self._context.beginning)
        begin = up(np.maximum(start, first), granule)
        stop = up(np.minimum(end, self._frontier), granule)
        if self._frontier == INFINITY:  # rows without end are cut only as far as others change
            changes = np.concatenate([begin, end[end < INFINITY], [NEVER]])
            settled = int(up(changes[changes < INFINITY].max(keepdims=True), granule)[0])
            stop = np.minimum(stop, settled)
        holds = (level > 0) & (begin < INFINITY)
        count = np.where(holds & (begin < stop), (stop - begin) // granule, 0)
        check_pieces(count, granule)
        index = np.repeat(np.arange(len(codes)), count)
        steps = np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
        instants = begin[index] + steps * granule
        ends = instants + granule
        if self._frontier == INFINITY:
            open_ended = np.flatnonzero(holds & (end == INFINITY))
            index = np.append(index, open_ended)
            instants = np.append(instants, np.maximum(begin[open_ended], settled))
            ends = np.append(ends, np.full(len(open_ended), INFINITY))
        self._given = self._frontier
        order = np.argsort(instants, kind="stable")
        rows = self._multiset.rows(codes[index[order]])
        weight = level[index[order]]
        return Batch(rows, instants[order], ends[order], weight, self._frontier)

    @property
    def rows(self) -> int:
        return self._multiset.size

    @property
    def nbytes(self) -> int:
        return self._multiset.nbytes

    @property
    def touched(self) -> int:
        return self._multiset.touched

    def save(self) -> State:
        return {
            "multiset": self._multiset.save(),
            "known": self._known,
            "frontier": self._frontier,
            "given": self._given,
        }

    def restore(self, state: State) -> None:
        self._multiset.restore(state["multiset"])
        self._known = state["known"]
        self._frontier, self._given = state["frontier"], state["given"]
