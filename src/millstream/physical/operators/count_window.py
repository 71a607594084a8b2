"""CountWindow: the last rows of the input, or of each of its partitions.

*Meaning*: for every t, out(t) = the last `rows` of the first ⌊n/slide⌋·slide of the n rows up to t;
with keys, of each partition. Rows of one instant are in the given order.
*State*: the rows of the windows, and those that wait for the window to slide. An unbounded window
keeps only the latter.
*Form*: a row leaves when others arrive, at an unknown time. SIGNED emits it as `+1 [t, ∞)` and
later as `-1 [t', ∞)`, and no idle partition holds anything back. INTERVALS emits it when it has
left, as K does; the oldest row then holds the frontier back, unless the operator is the last one
(`final`).
*Pattern*: STRICT; as intervals WEAK, and without keys WEAKEST; MONOTONIC if unbounded.
*Cost*: constant per row. *Source*: K algorithms 13, 14 and 19, eq. 17.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from millstream.logical.expressions import Expression
from millstream.model.arrays import larger, of_int64, with_room
from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch, Ints, Mask, State, merged
from millstream.physical.events.open_starts import OpenStarts
from millstream.physical.expressions.evaluation import Evaluation
from millstream.physical.kernels.count_window import slide_windows
from millstream.physical.kernels.steps import order_by_key
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.operators.pointwise import Form
from millstream.physical.operators.time_window import unsettled
from millstream.physical.ordering import one_by_one
from millstream.physical.pieces import check_pieces
from millstream.physical.state.counted_rows import counted_rows
from millstream.physical.state.keys import KeySpace
from millstream.physical.state.slots import Slots
from millstream.physical.state.store import RowStore
from millstream.physical.state.waiting import Waiting

# Arrays by key and by slot, as a checkpoint names them.
_SAVED = ("arrived", "oldest", "oldest_number", "latest", "unseen", "following", "since")


@dataclass(frozen=True)
class CountWindow(PhysicalPlan):
    """`rows` may be INFINITY. Elements of the input cover one granule."""

    input: PhysicalPlan
    rows: int
    order: tuple[Expression, ...]
    keys: tuple[Expression, ...] = ()
    slide: int = 1
    granule: int = 1
    form: Form = Form.SIGNED
    final: bool = False

    @cached_property
    def pattern(self) -> Pattern:
        if self.rows == INFINITY:
            return Pattern.MONOTONIC
        if self.form is Form.SIGNED:
            return Pattern.STRICT
        return Pattern.WEAK if self.keys else Pattern.WEAKEST

    @property
    def state(self) -> str:
        return "queues by key" if self.keys else "queue"

    def open(self, context: Context) -> Operator:
        return CountWindowOperator(self, context)


class CountWindowOperator(Operator):
    def __init__(self, node: CountWindow, context: Context) -> None:
        self._node = node
        self._order = Evaluation(node.order, node.input.schema, context)
        self._key_values = Evaluation(node.keys, node.input.schema, context)
        self._waiting = Waiting()
        self._keys = KeySpace([key.type for key in node.keys])
        self._slots = Slots()
        self._rows = RowStore(node.types)
        self._following = np.full(64, -1, np.int64)  # the next row of the partition, by slot
        self._arrived, self._oldest_number = np.zeros((2, 64), np.int64)  # by partition
        self._oldest, self._latest, self._unseen = np.full((3, 64), -1, np.int64)
        self._gone: Ints = np.empty(0, np.int64)  # slots to free once they have been read
        # As intervals: when each slot entered the window, NEVER if it is not in it.
        self._settles = node.form is Form.INTERVALS
        self._since = np.full(64 if self._settles else 0, NEVER, np.int64)
        self._starts = OpenStarts() if self._settles and not node.final else None
        self._scratch = np.zeros(64, np.int64)

    def process(self, port: int, batch: Batch) -> Sequence[Batch]:
        self._slots.release(self._gone)
        self._gone = np.empty(0, np.int64)
        released = self._waiting.released(batch)
        for_ever = released.end == INFINITY
        last = batch.frontier == INFINITY and bool(for_ever.any())
        arrivals = self._in_order(self._repeated(released, for_ever) if last else released)
        nothing = np.empty(0, np.int64)
        slots, times, changes = self._slide(arrivals) if len(arrivals) else (nothing,) * 3
        end = np.full(len(slots), INFINITY)
        given = Batch(self._rows.rows(slots), times, end, changes, batch.frontier)
        if last:
            self._check_settled(given, int(arrivals.start[-1]))
        return [self._settled(slots, times, changes, batch.frontier) if self._settles else given]

    def _settled(self, slots: Ints, times: Ints, changes: Ints, frontier: int) -> Batch:
        """The intervals of the rows that leave, and at the end of time of those that stay."""
        came, went = np.flatnonzero(changes > 0), np.flatnonzero(changes < 0)
        self._since[slots[came]] = times[came]
        left, end = slots[went], times[went]
        if frontier == INFINITY:
            stay = self._staying(left)
            left = np.append(left, stay)
            end = np.append(end, np.full(len(stay), INFINITY))
        start = self._since[left]
        self._since[left] = NEVER
        one = np.ones(len(left), np.int64)
        if self._starts is not None:
            self._starts.add(times[came], changes[came])
            self._starts.remove(start, one)
            frontier = min(frontier, self._starts.least)
        return Batch(self._rows.rows(left), start, end, one, frontier)

    def _staying(self, left: Ints) -> Ints:
        """The slots in the window after these have left, in order of start."""
        stays = self._since > NEVER
        stays[left] = False
        slots = np.flatnonzero(stays)
        return slots[np.argsort(self._since[slots], kind="stable")]

    def _repeated(self, batch: Batch, for_ever: Mask) -> Batch:
        """At the end of a bounded input: rows that never end are repeated in each granule, as many
        times as the window can hold."""
        if self._node.rows == INFINITY:
            raise unsettled()
        granules = self._node.rows + 3 * self._node.slide
        held = batch.where(for_ever)
        check_pieces(np.full(len(held), granules), self._node.granule)
        steps = np.repeat(np.arange(granules), len(held)) * self._node.granule
        again = held.take(np.tile(np.arange(len(held)), granules))
        again.start = again.start + steps
        return merged([batch.where(~for_ever), again])

    def _check_settled(self, given: Batch, last: int) -> None:
        """Check that the window does not change when it slides once more over rows that never
        end."""
        since = last - self._node.slide * self._node.granule
        late = given.where(given.start > since)
        if counted_rows([*late.columns, of_int64(late.start)], late.weight).weight.any():
            raise unsettled()

    def _in_order(self, batch: Batch) -> Batch:
        values, batch = self._order.kept(batch)
        return one_by_one(batch, values)

    def _slide(self, batch: Batch) -> tuple[Ints, Ints, Ints]:
        partitions = self._partitions(batch)
        if self._node.keys:
            order = order_by_key(partitions, self._scratch)
            partitions, batch = partitions[order], batch.take(order)
        stored = self._slots.used
        slots = self._stored(batch)
        changed, times, changes, freed = slide_windows(
            partitions, batch.start, slots, stored, self._node.rows, self._node.slide,
            self._arrived, self._oldest, self._oldest_number, self._latest, self._unseen,
            self._following,
        )  # fmt: skip
        self._gone = freed
        if self._node.rows == INFINITY:
            self._drop_seen(changed)
        return changed, times, changes

    def _partitions(self, batch: Batch) -> Ints:
        values, failed = self._key_values.over(batch.columns, len(batch))
        assert failed is None, "keys of windows are columns"
        codes = self._keys.encode(values, len(batch))
        count = self._keys.count
        for name, nothing in (
            ("_arrived", 0), ("_oldest_number", 0),
            ("_oldest", -1), ("_latest", -1), ("_unseen", -1), ("_scratch", 0),
        ):  # fmt: skip
            setattr(self, name, with_room(getattr(self, name), count, nothing))
        return codes

    def _stored(self, batch: Batch) -> Ints:
        if self._rows.is_stale:
            self._rows.vacuum(self._slots.in_use())
        lacking = self._slots.lacking(len(batch))
        if lacking:
            capacity = larger(self._slots.capacity, self._slots.capacity + lacking)
            self._rows.move(np.arange(self._rows.capacity), capacity)
            more = np.full(capacity - self._slots.capacity, -1, np.int64)
            self._following = np.append(self._following, more)
            if self._settles:
                self._since = np.append(self._since, np.full(len(more), NEVER))
            self._slots.grow(capacity)
        slots = self._slots.take(len(batch))
        first, last = int(slots[0]), int(slots[-1])
        in_a_row = last - first == len(slots) - 1 and bool((np.diff(slots) == 1).all())
        self._rows.put(slice(first, last + 1) if in_a_row else slots, batch.columns)
        return slots

    def _drop_seen(self, seen: Ints) -> None:
        """An unbounded window does not need rows it has seen: nothing ever leaves it."""
        self._gone = np.concatenate([self._gone, seen])
        self._oldest = self._unseen.copy()
        self._oldest_number = self._arrived // self._node.slide * self._node.slide

    @property
    def rows(self) -> int:
        return self._slots.used + len(self._waiting)

    @property
    def nbytes(self) -> int:
        own = self._following.nbytes + self._since.nbytes + 6 * self._arrived.nbytes
        own += 0 if self._starts is None else self._starts.nbytes
        parts = (self._waiting, self._rows, self._keys, self._slots)
        return own + sum(part.nbytes for part in parts)

    def save(self) -> State:
        self._slots.release(self._gone)
        self._gone = np.empty(0, np.int64)
        used = self._slots.in_use()
        return {
            "waiting": self._waiting.save(),
            "keys": self._keys.save(),
            "used": used,
            "rows": self._rows.save(used),
            "arrays": {name: getattr(self, f"_{name}").copy() for name in _SAVED},
        }

    def restore(self, state: State) -> None:
        self._waiting.restore(state["waiting"])
        self._keys.restore(state["keys"])
        for name in _SAVED:
            setattr(self, f"_{name}", state["arrays"][name])
        self._rows.move(np.arange(self._rows.capacity), len(self._following))
        self._rows.restore(state["rows"], state["used"])
        self._slots.grow(len(self._following))
        self._slots.occupy(state["used"])
        self._scratch = np.zeros(len(self._arrived), np.int64)
        if self._starts is not None:
            starts = self._since[self._since > NEVER]
            self._starts.add(starts, np.ones(len(starts), np.int64))
