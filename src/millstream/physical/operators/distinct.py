"""Distinct over elements whose ends are known: G5's δ*.

*Meaning*: for every t, out(t) = each row of in(t) once.
*State*: per row the largest end so far, until the frontier has passed it: one number per row of the
output. (`Pointwise`, which counts, handles input that may be retracted.)
*Pattern*: WEAK: pieces of one row are disjoint, pieces of different rows overlap; MONOTONIC if
nothing expires.
*Cost*: one lookup per element. *Source*: G5 §5.3.1; K §11.5.5.

In order of start, an element adds to the output the part beyond the largest end so far of its row.
Elements out of order wait for the frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.model.arrays import with_room
from millstream.physical.batch import NEVER, Batch, Ints, State, ones
from millstream.physical.kernels.extension import extend
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.waiting import Waiting


@dataclass(frozen=True)
class Distinct(PhysicalPlan):
    input: PhysicalPlan

    @cached_property
    def pattern(self) -> Pattern:
        assert self.input.pattern is not Pattern.STRICT
        monotonic = self.input.pattern is Pattern.MONOTONIC
        return Pattern.MONOTONIC if monotonic else Pattern.WEAK

    @property
    def state(self) -> str:
        return "largest end"

    def open(self, context: Context) -> Operator:
        return DistinctOperator(self)


class DistinctOperator(Operator):
    def __init__(self, node: Distinct) -> None:
        self._ordered = node.input.pattern is Pattern.WEAKEST
        self._waiting = Waiting()
        self._keys = KeySpace(node.types)
        self._largest = np.full(64, NEVER, np.int64)  # end so far, by code
        self._frontier = NEVER

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._forget()
        self._frontier = max(self._frontier, batch.frontier)
        if not self._ordered:
            batch = self._waiting.released(batch)
        codes = self._keys.encode(batch.columns, len(batch))
        self._largest = with_room(self._largest, self._keys.count, NEVER)
        added, start = extend(codes, batch.start, batch.end, self._largest)
        extended = batch.take(added)
        extended.start, extended.weight = start, ones(len(added))
        return [extended]

    def _forget(self) -> None:
        if self._keys.is_stale:
            kept: Ints = np.flatnonzero(self._largest[: self._keys.count] > self._frontier)
            self._keys.keep(kept)
            self._largest = np.append(self._largest[kept], np.full(64, NEVER))

    @property
    def rows(self) -> int:
        return self._keys.count + len(self._waiting)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._largest.nbytes + self._waiting.nbytes

    def save(self) -> State:
        return {
            "waiting": self._waiting.save(),
            "keys": self._keys.save(),
            "largest": self._largest[: self._keys.count].copy(),
            "frontier": self._frontier,
        }

    def restore(self, state: State) -> None:
        self._waiting.restore(state["waiting"])
        self._keys.restore(state["keys"])
        self._largest = state["largest"]
        self._frontier = state["frontier"]
