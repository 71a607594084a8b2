"""INSERT, UPDATE, DELETE and MERGE: each changes a table atomically.

Queries over the current rows of tables and views determine the rows to remove and add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from millstream.api.pulls import PullSession, at_one_moment, rows_of
from millstream.connectors.intake.checking import checked_records, records_of
from millstream.connectors.intake.rows import joined, nothing
from millstream.logical.catalog import Table
from millstream.logical.evaluate import evaluator
from millstream.logical.functions import EvaluationError
from millstream.logical.plan import ARRIVAL
from millstream.model.arrays import int64, single
from millstream.model.errors import (
    DataError,
    MillstreamError,
    QueryError,
    Span,
)
from millstream.model.names import Name
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.model.values import to_arrow
from millstream.physical.batch import Ints
from millstream.physical.operator import Context
from millstream.physical.state.counted_rows import counted_rows
from millstream.relations.tables import HeldTable
from millstream.sql.changed_table import changed_table
from millstream.sql.pulls import Read
from millstream.sql.statements import ChangeTable
from millstream.sql.table_changes import VALUES, ChangeBinder, ChangePlan, Values
from millstream.sql.windows import with_arrival


def change_table(
    session: PullSession, statement: ChangeTable, parameters: Mapping[str, object]
) -> int:
    """Execute a statement; returns how many rows it inserts, updates and deletes."""
    table, span = changed_table(statement, session.workspace.catalog)
    held = session.workspace.origins.table(Name(table.name, quoted=True))
    binder = ChangeBinder(table, session.workspace.catalog, parameters)
    parts = binder.parts(statement.body.tree)
    at = None if statement.at is None else statement.at.instant
    read = [*binder.reads.values(), Read(table)]
    held.await_room()
    with _placed(span), at_one_moment(session, read) as rows:
        inputs = {source: rows(read) for source, read in binder.reads.items()}
        if binder.values is not None:
            inputs[VALUES] = _evaluated(session, binder.values)
        answers = [_answer(session, table, part, inputs) for part in parts]
        gone = [_gone(table, part, rows) for part, rows in zip(parts, answers, strict=True)]
        _check_once(held, joined(gone))
        come = [
            _come(table, part, rows, held.numbers(old))
            for part, rows, old in zip(parts, answers, gone, strict=True)
        ]
        held.exchange(joined(gone), joined(come), at)
    return sum(rows.num_rows for rows in answers)


@contextmanager
def _placed(span: Span | None) -> Iterator[None]:
    """Errors without a location get this one."""
    try:
        yield
    except MillstreamError as error:
        if error.diagnostic.span is None:
            error.diagnostic = replace(error.diagnostic, span=span)
        raise


# --- which rows -----------------------------------------------------------------------------------


def _answer(
    session: PullSession, table: Table, part: ChangePlan, inputs: Mapping[str, Records]
) -> pa.Table:
    """The rows of a part, in the order of the rows they derive from, or by their columns if those
    have no order."""
    catalog = session.workspace.catalog
    context = Context(catalog.functions, catalog.aggregates)
    plan = with_arrival(part.plan) or part.plan
    rows = rows_of(session.workspace.plan_once(plan), context, inputs)
    for _, message in context.errors:
        raise QueryError(f'table "{table.name}" is not changed: {message}')
    if plan is not part.plan:
        place = [field.name for field in plan.schema].index(ARRIVAL)
        rows = rows.take(np.argsort(int64(single(rows.column(place))), kind="stable"))
        rows = rows.remove_column(place)
    return rows


def _gone(table: Table, part: ChangePlan, rows: pa.Table) -> Records:
    """The rows to remove: the first columns."""
    if not part.goes:
        return nothing(table)
    names = [field.name for field in table.columns]
    records, _ = checked_records(table, rows.select(range(len(names))).rename_columns(names))
    return records


def _come(table: Table, part: ChangePlan, rows: pa.Table, numbers: Ints) -> Records:
    """The rows to add: the last columns. Rows that replace others are in the order of their arrival
    numbers."""
    if not part.comes:
        return nothing(table)
    if part.goes:
        rows = rows.take(np.argsort(numbers, kind="stable"))
    names = [field.name for field in table.columns]
    rows = rows.select(range(rows.num_columns - len(names), rows.num_columns))
    return records_of(table, rows.rename_columns(names))


def _evaluated(session: PullSession, values: Values) -> Records:
    """The rows of VALUES."""
    functions = session.workspace.catalog.functions
    try:
        rows = [[evaluator(item, (), functions)(()) for item in row] for row in values.rows]
    except EvaluationError as error:
        raise QueryError(f"VALUES cannot be evaluated: {error}") from None
    columns = [
        to_arrow(column, field.type)
        for column, field in zip(zip(*rows, strict=True), values.columns, strict=True)
    ]
    return Records(columns, np.zeros(len(rows), np.int64), np.full(len(rows), INFINITY, np.int64))


def _check_once(held: HeldTable, gone: Records) -> None:
    """Reject removing a row more often than it occurs: several rows of a MERGE would have changed
    it."""
    counted = counted_rows(gone.columns, np.ones(len(gone), np.int64))
    rows = gone.take(counted.first)
    twice = np.flatnonzero(counted.weight > held.counts(rows))
    if len(twice):
        row = ", ".join(str(column[int(twice[0])].as_py()) for column in rows.columns)
        raise DataError(
            f'row ({row}) of table "{held.table.name}" matches several rows of the MERGE',
            help="make the ON condition or the source select one",
        )
