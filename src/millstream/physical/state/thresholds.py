"""Values on the two sides of a moving threshold.

A comparison with one value splits the sorted others at a position. When the threshold moves, only
the values between the old and the new position change sides. So values are kept sorted; a move
costs two binary searches and the values it crosses.

Values are order-preserving int64 words (`ordering.py`), each with a code. New values are kept
separately and merged when they are an eighth of all, so that none is moved often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from millstream.physical.batch import Ints, Mask, State

Comparison: TypeAlias = Literal["<", "<=", ">", ">="]
FEW = 1024  # this many new values are always kept separately


@dataclass(slots=True)
class Crossed:
    """Values that a moving threshold crossed: their codes, the number of the move, and +1 if the
    comparison holds from then on, -1 if it no longer holds."""

    code: Ints
    move: Ints
    change: Ints


class Thresholds:
    """The values for which `value comparison threshold` holds; none if there is no threshold."""

    def __init__(self, comparison: Comparison) -> None:
        self._above = comparison in (">", ">=")  # which side of the position holds
        self._side: Literal["left", "right"] = "left" if comparison in ("<", ">=") else "right"
        self._runs = [_Run(_NONE, _NONE), _Run(_NONE, _NONE)]  # all values, and new ones

    def __len__(self) -> int:
        return sum(len(run.words) for run in self._runs)

    @property
    def nbytes(self) -> int:
        return sum(run.words.nbytes + run.codes.nbytes for run in self._runs)

    def add(self, words: Ints, codes: Ints) -> None:
        """Add values that are not present yet."""
        old, new = self._runs
        new = new.merged(words, codes)
        if len(new.words) > FEW + len(old.words) // 8:
            old, new = old.merged(new.words, new.codes), _Run(_NONE, _NONE)
        self._runs = [old, new]

    def holds(self, words: Ints, threshold: int, known: bool) -> Mask:
        """Which values satisfy the comparison."""
        if not known:
            return np.zeros(len(words), np.bool_)
        if self._above:
            return words >= threshold if self._side == "left" else words > threshold
        return words < threshold if self._side == "left" else words <= threshold

    def crossed(self, thresholds: Ints, known: Mask) -> Crossed:
        """The values that change sides as the threshold moves from each of these to the next one;
        move i is the one to `thresholds[i + 1]`."""
        parts = [self._crossed(run, thresholds, known) for run in self._runs]
        return Crossed(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _crossed(self, run: _Run, thresholds: Ints, known: Mask) -> tuple[Ints, Ints, Ints]:
        none = len(run.words) if self._above else 0
        places = np.where(known, run.words.searchsorted(thresholds, self._side), none)
        first, last = np.minimum(places[:-1], places[1:]), np.maximum(places[:-1], places[1:])
        count = last - first
        move = np.repeat(np.arange(len(count)), count)
        inside = np.arange(len(move)) - np.repeat(np.cumsum(count) - count, count)
        up = (places[1:] > places[:-1]) == self._above
        return run.codes[first[move] + inside], move, np.where(up[move], -1, 1)

    def renumber(self, renumbered: Ints) -> None:
        """The new codes by the old ones; values whose new code is -1 are dropped."""
        runs = []
        for run in self._runs:
            codes = renumbered[run.codes]
            kept = np.flatnonzero(codes >= 0)
            runs.append(_Run(run.words[kept], codes[kept]))
        self._runs = runs

    def save(self) -> State:
        words, codes = zip(*((run.words, run.codes) for run in self._runs), strict=True)
        return {"words": np.concatenate(words), "codes": np.concatenate(codes)}

    def restore(self, state: State) -> None:
        empty = _Run(_NONE, _NONE)
        self._runs = [empty.merged(state["words"], state["codes"]), empty]


_NONE: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class _Run:
    """Sorted values."""

    words: Ints
    codes: Ints

    def merged(self, words: Ints, codes: Ints) -> _Run:
        order = np.argsort(words, kind="stable")
        words, codes = words[order], codes[order]
        if not len(self.words):
            return _Run(words, codes)
        places = self.words.searchsorted(words)
        return _Run(np.insert(self.words, places, words), np.insert(self.codes, places, codes))
