"""Expressions over batches: rows that cannot be evaluated go to the errors, not into answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.logical.expressions import Column, Expression
from millstream.logical.plan import Schema
from millstream.physical.batch import Batch, Columns, Ints, LazyColumn, Mask
from millstream.physical.expressions import compile_expression
from millstream.physical.operator import Context, plain_rows


class Evaluation:
    """Several expressions over one schema. A column that is asked for as it is stays ungathered."""

    def __init__(self, expressions: Sequence[Expression], schema: Schema, context: Context) -> None:
        keys = [field.key for field in schema]
        self._types = [field.type for field in schema]
        self._context = context
        self._compiled = [
            compile_expression(e, schema, context.functions, context.draws) for e in expressions
        ]
        self._columns = [keys.index(e.key) if isinstance(e, Column) else None for e in expressions]

    def over(
        self, columns: Columns, length: int, end: Ints | None = None
    ) -> tuple[Columns, Mask | None]:
        """The values, and which rows failed: their values mean nothing. Errors are noted, but not
        of rows that end before time begins."""
        results: list[LazyColumn] = []
        failed: Mask | None = None
        for position, compiled in zip(self._columns, self._compiled, strict=True):
            if position is not None:
                results.append(columns.lazy[position])
                continue
            vector = compiled.evaluate(columns, length)
            results.append(LazyColumn(vector.values))
            if vector.failed is not None and vector.failed.any():
                fresh = vector.failed if failed is None else vector.failed & ~failed
                index = np.flatnonzero(fresh)
                if end is not None:
                    index = index[end[index] > self._context.beginning]
                for row in plain_rows(columns, self._types, index):
                    self._context.fail(row, compiled.message(row))
                failed = vector.failed if failed is None else failed | vector.failed
        return Columns(results), failed

    def kept(self, batch: Batch) -> tuple[Columns, Batch]:
        """The values, and the batch they belong to: without the rows that failed."""
        values, failed = self.over(batch.columns, len(batch), batch.end)
        if failed is None:
            return values, batch
        index = np.flatnonzero(~failed)
        return values.take(index), batch.take(index)


def is_true(array: pa.Array) -> Mask:
    """Where a condition holds: neither FALSE nor NULL."""
    if array.null_count:
        array = array.fill_null(False)
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask
