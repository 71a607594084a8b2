"""The inputs of a multi-way join: rows with the codes of their keys, in flight and in areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Expression
from millstream.logical.plan import Field, Schema
from millstream.model.arrays import int64, of_int64
from millstream.physical.batch import NEVER, Batch, Columns, Ints, LazyColumn
from millstream.physical.expressions.evaluation import Condition, Evaluation
from millstream.physical.joins.areas.area import Area
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.joins.steps import EqualityClass
from millstream.physical.operator import Context, Operator, Pattern, PhysicalPlan
from millstream.physical.state.keys import KeySpace


@dataclass(slots=True)
class Partial:
    """Joined rows of the inputs bound so far: columns by input, codes by class."""

    columns: dict[int, Columns]
    codes: dict[int, Ints]
    start: Ints
    end: Ints
    weight: Ints

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Ints) -> Partial:
        return Partial(
            {port: columns.take(index) for port, columns in self.columns.items()},
            {number: codes[index] for number, codes in self.codes.items()},
            self.start[index],
            self.end[index],
            self.weight[index],
        )

    def row(self) -> Columns:
        """The columns of all bound inputs, in order of their number."""
        lazy = [column for port in sorted(self.columns) for column in self.columns[port].lazy]
        return Columns(lazy)


class Tests:
    """The conditions of a step, over the inputs bound at that point."""

    def __init__(
        self, conditions: Sequence[Expression], bound: Sequence[Schema], context: Context
    ) -> None:
        schema = tuple(field for schema in bound for field in schema)
        self._each = [Condition(condition, schema, context) for condition in conditions]

    def passed(self, partial: Partial) -> Partial:
        numbers = self.passing(partial)
        return partial if len(numbers) == len(partial) else partial.take(numbers)

    def passing(self, partial: Partial) -> Ints:
        """The numbers of the rows that pass."""
        numbers = np.arange(len(partial))
        for condition in self._each:
            holds, _ = condition.over(partial.row(), len(partial))
            if not holds.all():
                index = np.flatnonzero(holds)
                numbers, partial = numbers[index], partial.take(index)
        return numbers


@dataclass(frozen=True)
class Coded(PhysicalPlan):
    """An input whose rows carry the codes of their classes as last columns; only its facts are
    used."""

    input: PhysicalPlan
    classes: int

    @cached_property
    def schema(self) -> Schema:
        codes = (Field(f"$class{i}", pa.int64(), nullable=False) for i in range(self.classes))
        return (*self.input.schema, *codes)

    @cached_property
    def pattern(self) -> Pattern:
        return self.input.pattern

    def open(self, context: Context) -> Operator:
        raise AssertionError("rows are coded by the operator that needs it")


class Side:
    """One input: how its rows are coded, and its areas, one per set of classes by which it is
    reached."""

    def __init__(
        self,
        port: int,
        source: PhysicalPlan,
        choice: AreaChoice,
        classes: Sequence[EqualityClass],
        indexes: Sequence[tuple[int, ...]],
        context: Context,
    ) -> None:
        self.port = port
        self.own = [number for number, c in enumerate(classes) if c.of(port)]
        self.width = len(source.schema)
        self._expressions = [classes[number].of(port) for number in self.own]
        flat = [expression for each in self._expressions for expression in each]
        self._values = Evaluation(flat, source.schema, context)
        self._coded = Coded(source, len(self.own))
        self._choice = choice
        self.areas = {index: self.open_area() for index in indexes}
        self.expired = NEVER  # elements that end by then are not needed any more

    def open_area(self) -> Area:
        return self._choice.open(self._coded)

    def coded(self, batch: Batch, spaces: Sequence[KeySpace]) -> Partial:
        """The elements of a batch that can have partners, with their codes."""
        values, failed = self._values.over(batch.columns, len(batch))
        assert failed is None, "keys cannot fail"
        position = 0
        codes: dict[int, Ints] = {}
        able = np.ones(len(batch), np.bool_)
        for number, expressions in zip(self.own, self._expressions, strict=True):
            for _ in expressions:
                code = spaces[number].encode([values[position]], len(batch))
                able &= (code >= 0) & (code == codes.setdefault(number, code))
                position += 1
        rows = Partial({self.port: batch.columns}, codes, batch.start, batch.end, batch.weight)
        return rows if able.all() else rows.take(np.flatnonzero(able))

    def stored(self, rows: Partial) -> Batch:
        """Elements as areas hold them: with their codes."""
        codes = [LazyColumn(of_int64(rows.codes[number])) for number in self.own]
        columns = Columns([*rows.columns[self.port].lazy, *codes])
        return Batch(columns, rows.start, rows.end, rows.weight, NEVER)

    def bound(self, area: Area, slots: Ints, classes: Sequence[int]) -> Partial:
        """Elements of an area, with the codes of these classes."""
        rows = area.rows(slots)
        codes = {c: int64(rows[self.width + self.own.index(c)]) for c in classes}
        return Partial({self.port: rows[: self.width]}, codes, *area.times(slots))

    @property
    def kept(self) -> Area:
        return next(iter(self.areas.values()))
