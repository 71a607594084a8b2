"""UPDATE, DELETE and MERGE as queries: rows of FROM … WHERE …, and the action for each.

UPDATE t SET c = e WHERE p      FROM t WHERE p
DELETE FROM t WHERE p           FROM t WHERE p
MERGE INTO t USING s ON j       FROM t JOIN s ON j for MATCHED, FROM s ANTI JOIN t ON j for NOT
                                MATCHED, FROM t ANTI JOIN s ON j for NOT MATCHED BY SOURCE; a
                                clause applies to the rows that no earlier clause has taken
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millstream.logical.catalog import Table, column_named
from millstream.logical.plan import Field
from millstream.model.errors import BindError, Span
from millstream.model.names import Name
from millstream.sql.scope import name_of, refuse_others, span_of


@dataclass(frozen=True)
class ChangeStep:
    """For each row of a query without a select list: delete the row of the table that `goes` names
    in FROM, and insert one with the values `given` by column and otherwise those of the deleted
    row."""

    rows: exp.Select
    goes: str | None
    given: Mapping[str, exp.Expression] | None
    span: Span | None = None


def updated(tree: exp.Update, table: Table) -> ChangeStep:
    refuse_others(tree, ("this", "expressions", "where"), "UPDATE")
    rows = _where(_from(tree.this), tree)
    name = _name(tree.this)
    return ChangeStep(rows, name, _settings(tree, name, table))


def deleted(tree: exp.Delete) -> ChangeStep:
    refuse_others(tree, ("this", "where"), "DELETE")
    return ChangeStep(_where(_from(tree.this), tree), _name(tree.this), None)


def merged(tree: exp.Merge, source: exp.Expression, table: Table) -> list[ChangeStep]:
    """The steps of the clauses of a MERGE whose USING is `source`."""
    refuse_others(tree, ("this", "using", "on", "whens"), "MERGE")
    taken: dict[tuple[bool, bool], list[exp.Expression]] = {}
    steps = []
    for when in tree.args["whens"].expressions:
        refuse_others(when, ("matched", "source", "condition", "then"), "MERGE")
        matched, by_source = bool(when.args.get("matched")), bool(when.args.get("source"))
        condition = when.args.get("condition")
        before = taken.setdefault((matched, by_source), [])
        rows = _met(tree, source, matched, by_source)
        for earlier in before:
            passed = exp.Coalesce(this=earlier.copy(), expressions=[exp.false()])
            rows = rows.where(exp.Not(this=passed), copy=False)
        if condition is not None:
            rows = rows.where(condition.copy(), copy=False)
        before.append(condition if condition is not None else exp.true())
        then = when.args["then"]
        if matched or by_source:
            steps.append(_of_own(rows, then, _name(tree.this), source, table))
        else:
            steps.append(_of_others(rows, then, source, table))
    return steps


def _met(tree: exp.Merge, source: exp.Expression, matched: bool, by_source: bool) -> exp.Select:
    target, on = tree.this, tree.args["on"].copy()
    if matched:
        return _from(target).join(source.copy(), on=on, copy=False)
    first, other = (target, source) if by_source else (source, target)
    return _from(first).join(other.copy(), on=on, join_type="left anti", copy=False)


def _of_own(
    rows: exp.Select, then: exp.Expression, name: str, source: exp.Expression, table: Table
) -> ChangeStep:
    """The action for rows of the table."""
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
        return ChangeStep(rows, name, None)
    if isinstance(then, exp.Update):
        if then.expressions and isinstance(then.expressions[0], exp.Star):
            return ChangeStep(rows, name, _same_names(source, table))
        return ChangeStep(rows, name, _settings(then, name, table))
    raise BindError("MATCHED and NOT MATCHED BY SOURCE take UPDATE SET or DELETE", span_of(then))


def _of_others(
    rows: exp.Select, then: exp.Expression, source: exp.Expression, table: Table
) -> ChangeStep:
    """The action for rows that the table does not have."""
    if not isinstance(then, exp.Insert):
        raise BindError("NOT MATCHED takes INSERT", span_of(then))
    if isinstance(then.this, exp.Star):
        return ChangeStep(rows, None, _same_names(source, table))
    named = then.this.expressions if then.this is not None else []
    targets = targets_of(table, [name_of(column.this) for column in named])
    items = then.expression.expressions
    for item in items:
        if isinstance(item, exp.Alias):
            raise BindError("an alias is not allowed here", span_of(item))
    check_width(len(items), targets, table, span_of(then))
    names = [target.name for target in targets]
    return ChangeStep(rows, None, dict(zip(names, items, strict=True)), span_of(then))


def _settings(tree: exp.Update, own: str, table: Table) -> dict[str, exp.Expression]:
    """`SET column = value, …`, where columns may be qualified with the table."""
    if not tree.expressions:
        raise BindError("UPDATE needs SET column = value", span_of(tree))
    given: dict[str, exp.Expression] = {}
    for setting in tree.expressions:
        if not isinstance(setting, exp.EQ) or not isinstance(setting.this, exp.Column):
            raise BindError("SET takes column = value", span_of(setting))
        name, qualifier = name_of(setting.this.this), setting.this.args.get("table")
        if qualifier is not None and not name_of(qualifier).matches(own):
            raise BindError(f'SET can only change columns of "{own}"', span_of(setting.this))
        column = column_named(table.columns, name, table.name, table.kind)
        if column.name in given:
            raise BindError(f'SET names column "{column.name}" twice', name.span)
        given[column.name] = setting.expression
    return given


def _same_names(source: exp.Expression, table: Table) -> dict[str, exp.Expression]:
    """`*`: each column takes the source column of the same name."""
    of = _name(source)
    names = [column.name for column in table.columns]
    return {name: exp.column(name, table=of, quoted=True) for name in names}


def targets_of(table: Table, names: Sequence[Name]) -> list[Field]:
    """The columns that are named, or all."""
    if not names:
        return list(table.columns)
    found = [column_named(table.columns, name, table.name, table.kind) for name in names]
    for number, column in enumerate(found):
        if column in found[:number]:
            raise BindError(f'column "{column.name}" is named twice', names[number].span)
    return found


def check_width(width: int, targets: Sequence[Field], table: Table, span: Span | None) -> None:
    if width != len(targets):
        raise BindError(
            f'INSERT has {width} values for {len(targets)} columns of table "{table.name}"',
            span,
            f"the columns are {', '.join(target.name for target in targets)}",
        )


def _from(reference: exp.Expression) -> exp.Select:
    return exp.Select().from_(reference.copy(), copy=False)


def _where(rows: exp.Select, tree: exp.Expression) -> exp.Select:
    where = tree.args.get("where")
    return rows if where is None else rows.where(where.this.copy(), copy=False)


def _name(reference: exp.Expression) -> str:
    """The name or alias of a reference."""
    return str(reference.alias_or_name)
