"""Evaluates expressions over batches. Rows that fail are added to the query's errors, not to its
answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from millstream.logical.expressions import Column, Expression
from millstream.logical.plan import Schema
from millstream.model.arrays import no_values
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch, Columns, Ints, LazyColumn, Mask
from millstream.physical.expressions import Compiled, Selection, Together, compile_expression
from millstream.physical.kernels.positions import positions
from millstream.physical.operator import Context, plain_rows


class Evaluation:
    """Several expressions over one schema. A plain column reference is not gathered."""

    def __init__(self, expressions: Sequence[Expression], schema: Schema, context: Context) -> None:
        keys = [field.key for field in schema]
        self._failures = _Failures(schema, context)
        self._each: list[int | Compiled] = [
            keys.index(e.key)
            if isinstance(e, Column)
            else compile_expression(e, schema, context.functions, context.draws)
            for e in expressions
        ]
        self._together = Together(each for each in self._each if not isinstance(each, int))
        self._nothing = Columns.of(no_values(expression.type) for expression in expressions)

    def over(
        self, columns: Columns, length: int, end: Ints | None = None
    ) -> tuple[Columns, Mask | None]:
        """The values, and which rows failed; their values are undefined. Errors are recorded,
        except for rows that end before time begins."""
        if not length:
            return self._nothing, None
        results: list[LazyColumn] = []
        failed: Mask | None = None
        known = self._together.evaluate(columns, length)
        for each in self._each:
            if isinstance(each, int):
                results.append(columns.lazy[each])
                continue
            if each in known:
                results.append(LazyColumn(known[each]))
                continue
            values, bad = each.evaluate(columns, length)
            results.append(LazyColumn(values))
            if bad is not None:
                self._failures.note(each, columns, bad if failed is None else bad & ~failed, end)
                failed = bad if failed is None else failed | bad
        return Columns(results), failed

    def kept(self, batch: Batch) -> tuple[Columns, Batch]:
        """The values and their batch, both without the rows that failed."""
        values, failed = self.over(batch.columns, len(batch), batch.end)
        if failed is None:
            return values, batch
        index = np.flatnonzero(~failed)
        return values.take(index), batch.take(index)


class Condition:
    """A boolean expression over rows."""

    def __init__(self, expression: Expression, schema: Schema, context: Context) -> None:
        self._compiled = compile_expression(expression, schema, context.functions, context.draws)
        self._failures = _Failures(schema, context)

    def over(
        self, columns: Columns, length: int, end: Ints | None = None
    ) -> tuple[Mask, Mask | None]:
        """Where it holds (neither FALSE nor NULL nor failed), and which rows failed. Errors are
        recorded as in `Evaluation`."""
        if not length:
            return np.empty(0, np.bool_), None
        holds, failed = self._compiled.mask(columns, length)
        if failed is None or not failed.any():
            return holds, None
        self._failures.note(self._compiled, columns, failed, end)
        return holds & ~failed, failed

    def rows(self, columns: Columns, length: int, end: Ints) -> Ints:
        """The numbers of the rows for which it holds."""
        found = None if self._selection is None else self._selection.rows(columns, length)
        return positions(self.over(columns, length, end)[0]) if found is None else found

    @cached_property
    def _selection(self) -> Selection | None:
        formula = self._compiled.formula
        return None if formula is None else Selection(formula)


class _Failures:
    """Records rows whose evaluation failed in a context."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self._types = [field.type for field in schema]
        self._context = context

    def note(self, compiled: Compiled, columns: Columns, failed: Mask, end: Ints | None) -> None:
        index = np.flatnonzero(failed)
        ends = [INFINITY] * len(index) if end is None else end[index].tolist()
        for row, until in zip(plain_rows(columns, self._types, index), ends, strict=True):
            self._context.fail(row, compiled.message(row), until)
