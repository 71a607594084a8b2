"""The rows of a relation, in the versions that stream rows may still look up.

A version is an interval in which a row is present, with its multiplicity. Whatever the relation's
elements are (signed, intervals, in any order), their events become the steps of each row's weight,
in order of time; a step ends one version and begins the next. So versions of a row never overlap,
and a row retracted at the instant it is added is never seen. A version that ended before all future
lookups is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model.arrays import larger, with_room
from millstream.physical.batch import NEVER, Batch, Columns, Ints, State
from millstream.physical.kernels.versions import (
    FREE,
    USED,
    VERSION,
    VersionPool,
    drop_ended,
    link_versions,
    look_up,
)
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.multisets import Multisets

_SAVED = ("start", "end", "weight", "row")
_NOTHING = (np.empty(0, np.int64),) * 3


class Versions:
    """Rows have the codes of their keys in `keys`, a key space that is not shared; `ordered`:
    elements arrive in order of start and of end."""

    def __init__(self, types: Sequence[pa.DataType], keys: KeySpace, ordered: bool) -> None:
        self._keys = keys
        self._rows = Multisets(types, [ordered])
        self._looked_at = 0
        self._passed = NEVER  # all changes before it are applied
        self._pool = VersionPool(
            versions=_free_places(0, 64, -1),
            holding=np.full(64, -1, np.int32),
            key_of=np.full(64, -1, np.int32),
            newest=np.full((64, 2), -1, np.int32),
            lists=np.array([0, -1, -1, 0], np.int64),
        )

    @property
    def count(self) -> int:
        return int(self._pool.lists[USED])

    @property
    def pending(self) -> int:
        """How many changes are in the future."""
        return self._rows.pending

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._pool) + self._rows.nbytes

    @property
    def touched(self) -> int:
        """How many versions and events were examined so far."""
        return self._looked_at + self._rows.touched

    def add(self, codes: Ints, batch: Batch) -> None:
        """Add elements of the relation, each with the code of its key."""
        rows = self._rows.add(0, batch)
        self._pool = self._pool._replace(
            holding=with_room(self._pool.holding, self._rows.keys.count, -1),
            key_of=with_room(self._pool.key_of, self._rows.keys.count, -1),
            newest=with_room(self._pool.newest, self._keys.count, -1),
        )
        self._pool.key_of[rows] = codes

    # --- looking up ------------------------------------------------------------------------------

    def look_up(self, codes: Ints, starts: Ints, horizon: int) -> tuple[Ints, Ints, Ints]:
        """For keys at these instants, in order of time: which lookup finds which row, by its number
        here, and its multiplicity. The instants are before the horizon, and the relation is
        complete up to it."""
        rows, instants, counts = self._changes(horizon)
        if not len(rows) and not len(codes):
            return _NOTHING
        self._make_room(len(rows))
        found, numbers, weights, touched = look_up(
            *self._pool, rows, instants, counts, codes, starts
        )
        self._looked_at += touched
        return found, numbers, weights

    def _changes(self, horizon: int) -> tuple[Ints, Ints, Ints]:
        """The rows that change before the horizon, when, and their new multiplicity."""
        if horizon <= self._passed:
            return _NOTHING
        self._passed = horizon
        steps, counts = self._rows.due(horizon)
        return steps.step_code, steps.step_time, counts.after[0]

    def _make_room(self, count: int) -> None:
        pool, capacity = self._pool, len(self._pool.versions)
        if self.count + count <= capacity:
            return
        room = larger(capacity, self.count + count)
        more = _free_places(capacity, room, int(pool.lists[FREE]))
        self._pool = pool._replace(versions=np.concatenate([pool.versions, more]))
        pool.lists[FREE] = capacity

    def rows(self, numbers: Ints) -> Columns:
        return self._rows.rows(numbers)

    # --- forgetting ------------------------------------------------------------------------------

    def expire(self, frontier: int) -> None:
        """Drop the versions that have ended by the frontier: no earlier lookup will follow."""
        drop_ended(*self._pool, frontier)

    def forget(self) -> None:
        """Drop rows without versions, and keys without rows. Rows returned before must have been
        read."""
        if self._rows.keys.is_stale:
            self._forget_rows()
        if self._keys.is_stale:
            self._forget_keys()

    def _forget_rows(self) -> None:
        pool, numbers = self._pool, self._pool.versions["row"]
        used = np.flatnonzero(numbers >= 0)
        renumbered = self._rows.forget(numbers[used])
        assert renumbered is not None
        kept = np.flatnonzero(renumbered[:-1] >= 0)
        numbers[used] = renumbered[numbers[used]]
        self._pool = pool._replace(
            holding=with_room(pool.holding[kept], len(kept) + 1024, -1),
            key_of=with_room(pool.key_of[kept], len(kept) + 1024, -1),
        )
        if len(pool.versions) > 4 * (self.count + 1024):  # after a burst
            self._hold(self._ordered())

    def _forget_keys(self) -> None:
        key_of = self._pool.key_of[: self._rows.keys.count]
        used = np.zeros(self._keys.count, np.bool_)
        used[key_of] = True
        kept = np.flatnonzero(used)
        key_of[:] = self._keys.keep(kept)[key_of]
        newest = with_room(self._pool.newest[kept], len(kept) + 1024, -1)
        self._pool = self._pool._replace(newest=newest)

    def _ordered(self) -> NDArray[Any]:
        """The versions in order of end and then of start."""
        versions = self._pool.versions[self._pool.versions["row"] >= 0]
        return versions[np.lexsort((versions["start"], versions["end"]))]

    def _hold(self, versions: NDArray[Any]) -> None:
        """Replace all versions by these, in the order of `_ordered`, and rebuild the chains."""
        count, room = len(versions), len(versions) + 64
        pool = self._pool
        pool.holding[:], pool.newest[:] = -1, -1
        self._pool = pool._replace(
            versions=np.concatenate([versions, _free_places(count, room, -1)]),
            lists=np.array([count, -1, -1, count], np.int64),
        )
        link_versions(*self._pool, count)

    def save(self) -> State:
        """Saves the versions without their chains."""
        versions = self._ordered()
        return {
            "rows": self._rows.save(),
            "key_of": self._pool.key_of[: self._rows.keys.count].copy(),
            "versions": {name: versions[name].copy() for name in _SAVED},
            "passed": self._passed,
        }

    def restore(self, state: State) -> None:
        """The keys must have been restored."""
        self._rows.restore(state["rows"])
        self._passed = state["passed"]
        self._pool = self._pool._replace(
            holding=with_room(self._pool.holding, self._rows.keys.count, -1),
            key_of=with_room(state["key_of"], self._rows.keys.count, -1),
            newest=with_room(self._pool.newest, self._keys.count, -1),
        )
        versions = np.zeros(len(state["versions"]["row"]), VERSION)
        for name in _SAVED:
            versions[name] = state["versions"][name]
        self._hold(versions)


def _free_places(first: int, stop: int, after: int) -> NDArray[Any]:
    """A list of the places from `first` to `stop`, followed by `after`."""
    places = np.zeros(stop - first, VERSION)
    places["row"] = -1
    places["next"] = np.append(np.arange(first + 1, stop), after)
    return places
