"""User-defined aggregates (K §11.5.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce

import pyarrow as pa

from millstream.logical.evaluate import UserAggregate
from millstream.logical.expressions import AggregateCall
from millstream.logical.functions import EvaluationError
from millstream.model.codec import packed, unpacked
from millstream.model.elements import Row
from millstream.model.errors import QueryError
from millstream.physical.accumulators.general import Bag, BagAccumulator
from millstream.physical.accumulators.words import ABSENT
from millstream.physical.batch import Ints, State


class Recomputed(BagAccumulator):
    """An aggregate without `remove`: recomputed over all rows of the group."""

    def __init__(self, call: AggregateCall, user: UserAggregate) -> None:
        super().__init__(replace(call, order=()))
        self._user = user

    def _needed(self, arguments: Sequence[pa.Array]) -> Sequence[pa.Array]:
        return arguments

    def _value(self, group: int, bag: Bag) -> object:
        return self._user.evaluate(self._rows(bag))


class Incremental(Recomputed):
    """An aggregate with `remove`: one partial aggregate per group is updated with the rows.

    If user code fails, the group loses its partial aggregate and is recomputed until that succeeds.
    """

    def __init__(self, call: AggregateCall, user: UserAggregate) -> None:
        super().__init__(call, user)
        self._partial: dict[int, object] = {}

    def _after(self, group: int, changes: list[tuple[int, int]]) -> object:
        if group in self._partial:
            try:
                self._follow(group, self._net(group, changes))
            except Exception:  # any error of user code; recomputing may succeed
                del self._partial[group]
        value = super()._after(group, changes)
        if group not in self._bags:
            self._partial.pop(group, None)
        return value

    def _net(self, group: int, changes: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The change in the multiplicity of each row; additions first."""
        sums: Counter[int] = Counter()
        for code, delta in changes:
            if code != ABSENT:
                sums[code] += delta
        if self._call.distinct:
            held = self._bags[group].counts
            for code, delta in sums.items():
                before = held.get(code, 0)
                sums[code] = (before + delta > 0) - (before > 0)
        return sorted(sums.items(), key=lambda change: -change[1])

    def _follow(self, group: int, net: list[tuple[int, int]]) -> None:
        partial, user = self._partial[group], self._user
        assert user.remove is not None
        for code, delta in net:
            combine = user.merge if delta > 0 else user.remove
            for _ in range(abs(delta)):
                partial = combine(partial, user.init(*self._row(code)))
        self._partial[group] = partial

    def _value(self, group: int, bag: Bag) -> object:
        if group not in self._partial:
            self._partial[group] = self._folded(self._rows(bag))
        partial = self._partial[group]
        return replace(self._user, init=lambda: partial).evaluate([()])

    def _folded(self, rows: list[Row]) -> object:
        user = self._user
        try:
            return reduce(user.merge, (user.init(*row) for row in rows))
        except Exception as error:  # becomes the group's error
            raise EvaluationError(f'aggregate "{user.name}" failed: {error}') from error

    def remap(self, old: Ints, capacity: int) -> None:
        super().remap(old, capacity)
        groups = enumerate(old.tolist())
        self._partial = {new: self._partial[g] for new, g in groups if g in self._partial}

    def forget(self, groups: Ints) -> None:
        super().forget(groups)
        for group in groups.tolist():
            self._partial.pop(group, None)

    def save(self) -> State:
        """Saves partial aggregates that are plain values or that `dump` converts; others are
        recomputed from the rows."""
        return {**super().save(), "partial": self._dumped()}

    def _dumped(self) -> dict[int, bytes]:
        dump = self._user.dump
        if dump is None:
            return self._plain()
        try:
            return {group: packed(dump(each)) for group, each in self._partial.items()}
        except Exception as error:  # any error or result of user code
            raise QueryError(
                f'aggregate "{self._user.name}": "dump" failed: {error}',
                help="dump must return plain values: numbers, strings, bytes, NumPy and Arrow "
                "arrays, and lists, tuples and dicts of these",
            ) from error

    def _plain(self) -> dict[int, bytes]:
        plain = {}
        for group, each in self._partial.items():
            with suppress(TypeError):
                plain[group] = packed(each, exact=True)
        return plain

    def restore(self, state: State) -> None:
        super().restore(state)
        load = self._user.load or (lambda plain: plain)
        try:
            told = state["partial"].items()
            self._partial = {group: load(unpacked(each)) for group, each in told}
        except Exception as error:  # any error of user code
            raise QueryError(
                f'aggregate "{self._user.name}": "load" failed: {error}',
                help="load must accept what dump returned",
            ) from error
