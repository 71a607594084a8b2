"""Binding of statements that change a table, to plans of the rows to delete and insert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from millstream.logical.catalog import Catalog, DerivedStream, Stream, Table
from millstream.logical.expressions import Expression, Literal
from millstream.logical.plan import Field, Lifetime, Map, Named, Plan, Source
from millstream.model import types
from millstream.model.errors import BindError, Span
from millstream.model.names import Name
from millstream.model.time import RAW_TIME
from millstream.sql.clause_binders import outermost_aggregates
from millstream.sql.clauses import AsOf
from millstream.sql.pulls import PullBinder, Read, is_kept
from millstream.sql.scalar import NO_FROM, ScalarBinder
from millstream.sql.scope import Scope, name_of, refuse_others, span_of
from millstream.sql.table_steps import ChangeStep, check_width, deleted, merged, targets_of, updated

VALUES = "$values"  # the source of the rows of VALUES

_NULL = Literal(None, pa.null())
_ITEMS = {"expressions"}  # the only parts of a query of constants


@dataclass(frozen=True)
class Values:
    """Rows of expressions; each column has one type."""

    columns: tuple[Field, ...]
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class ChangePlan:
    """A plan of the rows to delete from the table, if `goes`, each followed by the columns of the
    row to insert, if `comes`."""

    plan: Plan
    goes: bool
    comes: bool


class ChangeBinder(PullBinder):
    """Binds a statement on a table; its plans read `reads` and `values`."""

    def __init__(self, table: Table, catalog: Catalog, parameters: Mapping[str, object]) -> None:
        super().__init__(catalog, parameters)
        self.table = table
        self.values: Values | None = None

    def parts(self, tree: exp.Expression) -> list[ChangePlan]:
        match tree:
            case exp.Insert():
                return [self._inserted(tree)]
            case exp.Update():
                return [self._part(updated(tree, self.table))]
            case exp.Delete():
                return [self._part(deleted(tree))]
            case exp.Merge():
                source = self._merged_source(tree.args["using"])
                return [self._part(step) for step in merged(tree, source, self.table)]
        raise AssertionError(f"not a statement on tables: {tree}")

    def kept(
        self, entry: Stream | DerivedStream, as_of: AsOf | None, span: Span | None
    ) -> Plan | None:
        if (
            isinstance(entry, Table) and as_of is None
        ):  # also a table whose rows have their own validity
            return self._source(Read(entry), entry.columns, span)
        if not is_kept(entry):
            raise BindError(
                f'{entry.kind} "{entry.name}" is not stored: a statement that changes a table can '
                "only read tables and views",
                span,
                "create a materialized view of it and read that",
            )
        return super().kept(entry, as_of, span)

    def _inserted(self, tree: exp.Insert) -> ChangePlan:
        refuse_others(tree, ("this", "expression"), "INSERT")
        named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
        targets = targets_of(self.table, [name_of(column) for column in named])
        if tree.expression is None:
            raise BindError("INSERT INTO a table takes VALUES or a query", span_of(tree))
        rows, span = _as_values(tree.expression), span_of(tree.expression)
        is_values = isinstance(rows, exp.Values)
        plan = self._values(rows) if is_values else self.query(rows, None, {})
        check_width(len(plan.schema), targets, self.table, span)
        given = {
            target.name: self._assigned(column.column, target, span)
            for target, column in zip(targets, plan.schema, strict=True)
        }
        return ChangePlan(Map(plan, self._row(given, span_of(tree.this))), goes=False, comes=True)

    def _part(self, step: ChangeStep) -> ChangePlan:
        given = step.given or {}
        for item in given.values():
            for aggregate in outermost_aggregates(item, self):
                raise BindError(
                    "an aggregate is not allowed here", span_of(aggregate), "write a subquery"
                )
        columns = self.table.columns
        own = [] if step.goes is None else [_column_of(step.goes, c.name) for c in columns]
        items = [exp.alias_(item.copy(), f"c{n}") for n, item in enumerate([*own, *given.values()])]
        tables = {} if self.values is None else {VALUES: self._values_source(self.values)}
        plan = self.query(step.rows.select(*items, copy=False), None, tables)
        old, new = plan.schema[: len(own)], plan.schema[len(own) :]
        row: dict[str, Expression]
        row = {c.name: f.column for c, f in zip(columns, old, strict=False)}
        outputs = [Named(column, name) for name, column in row.items()]
        if step.given is None:
            return ChangePlan(Map(plan, tuple(outputs)), goes=True, comes=False)
        targets = targets_of(self.table, [Name(name, quoted=True) for name in given])
        for target, item, made in zip(targets, given.values(), new, strict=True):
            row[target.name] = self._assigned(made.column, target, span_of(item))
        outputs += self._row(row, step.span, "new")
        return ChangePlan(Map(plan, tuple(outputs)), step.goes is not None, comes=True)

    def _row(
        self, given: Mapping[str, Expression], span: Span | None, qualifier: str = ""
    ) -> tuple[Named, ...]:
        """All columns of the table; those without a value are NULL."""
        for column in self.table.columns:
            if column.name not in given and not column.nullable:
                raise BindError(
                    f'column "{column.name}" of table "{self.table.name}" is NOT NULL, and no '
                    "value is given for it",
                    span,
                )
        return tuple(
            Named(given.get(c.name) or ScalarBinder.cast(_NULL, c.type), c.name, qualifier)
            for c in self.table.columns
        )

    def _assigned(self, value: Expression, target: Field, span: Span | None) -> Expression:
        if not types.implicitly_castable(value.type, target.type):
            raise BindError(
                f'column "{target.name}" of table "{self.table.name}" is '
                f"{types.sql_name(target.type)} and takes no {types.sql_name(value.type)}",
                span,
                "cast it with CAST(… AS …)",
            )
        return ScalarBinder.cast(value, target.type)

    # --- VALUES ----------------------------------------------------------------------------------

    def _merged_source(self, using: exp.Expression) -> exp.Expression:
        """The source of MERGE; VALUES is registered under its own name."""
        using = _as_values(using)
        if not isinstance(using, exp.Values):
            return using
        if using.args.get("alias") is None:
            raise BindError("VALUES needs a name: (VALUES …) AS s (a, b)", span_of(using))
        self._values(using)
        name = exp.Identifier(this=VALUES, quoted=True)
        return exp.Table(this=name, alias=using.args["alias"].copy())

    def _values(self, node: exp.Values) -> Plan:
        place = node.meta.get("place", "VALUES")
        binder = ScalarBinder(self.catalog, Scope(), self.parameters, place)
        rows = [self._items(row) for row in node.expressions]
        columns: list[Field] = []
        bound = [[binder.bind(item) for item in row] for row in rows]
        for number, first in enumerate(bound[0], 1):
            kind = first.type
            for row, items in zip(bound, rows, strict=True):
                if len(row) != len(bound[0]):
                    raise BindError(
                        f"rows of VALUES have {len(bound[0])} and {len(row)} values",
                        span_of(items[0]),
                    )
                common = types.common_type(kind, row[number - 1].type)
                if common is None:
                    raise BindError(
                        f"column {number} of VALUES is {types.sql_name(kind)} in one row and "
                        f"{types.sql_name(row[number - 1].type)} in another",
                        span_of(items[number - 1]),
                        "cast one of them with CAST(… AS …)",
                    )
                kind = common
            columns.append(Field(f"col{number}", kind))
        cast = (
            tuple(ScalarBinder.cast(e, c.type) for e, c in zip(row, columns, strict=True))
            for row in bound
        )
        self.values = Values(tuple(columns), tuple(cast))
        return self._values_source(self.values)

    @staticmethod
    def _items(row: exp.Expression) -> list[exp.Expression]:
        return list(row.expressions) if isinstance(row, exp.Tuple) else [row]

    def _values_source(self, values: Values) -> Plan:
        alias = self.fresh(VALUES)
        return Source(VALUES, alias, values.columns, RAW_TIME, Lifetime.ALWAYS, relation=True)


def _as_values(rows: exp.Expression) -> exp.Expression:
    """A query of constants alone, without FROM, is a row of VALUES."""
    query = rows.this if isinstance(rows, exp.Subquery) else rows
    if not isinstance(query, exp.Select) or any(query.args[k] for k in query.args.keys() - _ITEMS):
        return rows
    items = query.expressions
    alias = rows.args.get("alias")
    if alias is not None and not alias.args.get("columns"):
        names = (
            item.args.get("alias") or exp.Identifier(this=f"col{number}", quoted=True)
            for number, item in enumerate(items, 1)
        )
        alias.set("columns", list(names))
    row = exp.Tuple(expressions=[item.unalias() for item in items])
    values = exp.Values(expressions=[row], alias=alias)
    values.meta["place"] = NO_FROM
    return values


def _column_of(table: str, name: str) -> exp.Expression:
    return exp.column(name, table=table, quoted=True)
