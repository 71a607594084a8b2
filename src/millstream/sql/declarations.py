"""What CREATE STREAM, CREATE TABLE and the session's methods declare: columns, time and its unit,
delay, keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

import pyarrow as pa

from millstream.logical.catalog import ChangeMode, Stream, Table, column_named
from millstream.logical.plan import Field, Schema
from millstream.model import types
from millstream.model.durations import UNITS, chronons_or_zero
from millstream.model.errors import BindError, DataError, ParseError
from millstream.model.names import Name, check_name
from millstream.model.time import ANY_TIME, MICROSECONDS, TIMESTAMP_TIME, TimeDomain, unit_named
from millstream.sql import statements as syntax
from millstream.sql.column_types import type_of


def declared_stream(statement: syntax.CreateStream) -> Stream:
    """The stream that a CREATE STREAM declares."""
    stream = _declared(statement)
    unique = (
        tuple(column_named(stream.columns, column, stream.name).name for column in group)
        for group in statement.unique
    )
    return replace(stream, unique=tuple(unique))


def declared_table(statement: syntax.CreateTable) -> Table:
    """The table that a CREATE TABLE declares."""
    return _table(_declared(statement), statement.key, statement.changes)


def as_table(stream: Stream, key: str | Sequence[str], changes: str) -> Table:
    """What `session.table` declares."""
    known = {each.value: each for each in ChangeMode if each is not ChangeMode.OWN}
    found = known.get(str(changes).replace("_", " ").upper())
    if found is None:
        raise DataError(
            f'changes of table "{stream.name}" are "retroactive", "non retroactive" or "constant", '
            f"not {changes!r}"
        )
    names = [key] if isinstance(key, str) else key
    own = ChangeMode.OWN if len(stream.time) == 2 else found
    return _table(stream, [Name(name) for name in names], own)


def _table(stream: Stream, key: Sequence[Name], changes: ChangeMode) -> Table:
    """The declaration of a stream, as a table; the columns of its key are never NULL."""
    names = tuple(column_named(stream.columns, name, stream.name, "table").name for name in key)
    given = {f.name: getattr(stream, f.name) for f in fields(stream)}
    given["columns"] = tuple(
        replace(column, nullable=column.nullable and column.name not in names)
        for column in stream.columns
    )
    if not stream.time:
        given["domain"] = ANY_TIME
    return Table(**given, key=names, changes=changes)


def _declared(statement: syntax.CreateStream | syntax.CreateTable) -> Stream:
    name = statement.name.text
    columns: list[Field] = []
    for column in statement.columns:
        if any(column.name.text.lower() == other.name.lower() for other in columns):
            raise BindError(f'column "{column.name.text}" is declared twice', column.name.span)
        check_name(column.name)
        columns.append(Field(column.name.text, column.type, nullable=column.nullable))
    ordering, validity = statement.ordering, statement.validity
    times: list[Name] = []
    unit = None
    if ordering is not None:
        times, unit = [ordering.column], ordering.unit
    elif validity is not None:
        times, unit = [validity.start, validity.end], validity.unit
    domain = time_domain(tuple(columns), times, unit, name)
    delay, idle = 0, None
    if ordering is not None and ordering.delay is not None:
        delay = chronons_or_zero(ordering.delay, domain, "the delay")
    if ordering is not None and ordering.idle is not None:
        idle = chronons_or_zero(ordering.idle, domain, "the idle time")
    own = {s.kind: s.value for s in statement.statistics if s.column is None}
    distinct = {
        column_named(tuple(columns), s.column, name).name: s.value
        for s in statement.statistics
        if s.column is not None and s.kind == "distinct"
    }
    return Stream(
        name,
        tuple(columns),
        domain,
        tuple(column_named(tuple(columns), column, name).name for column in times),
        delay,
        idle,
        statement.source,
        own.get("rate"),
        tuple(distinct.items()),
        tuple(_ranges(statement.statistics, tuple(columns), name)),
        own.get("size"),
        unit=number_unit(domain, unit),
        comments=tuple((c.name.text, c.comment) for c in statement.columns if c.comment),
        unscaled=tuple(c.name.text for c in statement.columns if c.unscaled),
    )


def _ranges(
    statistics: Iterable[syntax.Statistic], columns: Schema, stream: str
) -> Iterator[tuple[str, float | None, float | None]]:
    """The minimum and maximum of each column for which one is declared."""
    bounds: dict[str, dict[str, float]] = {}
    for each in statistics:
        if each.column is None or each.kind not in ("min", "max"):
            continue
        column = column_named(columns, each.column, stream)
        if not types.is_numeric(column.type):
            raise BindError(
                f'column "{column.name}" is {types.sql_name(column.type)} and has no {each.kind} '
                "that is a number",
                each.column.span,
                f"leave {each.kind}({column.name}) out",
            )
        own = bounds.setdefault(column.name, {})
        own[each.kind] = each.value
        if own.get("min", each.value) > own.get("max", each.value):
            raise BindError(f'the min of column "{column.name}" is above its max', each.column.span)
    return ((name, own.get("min"), own.get("max")) for name, own in bounds.items())


def time_domain(columns: Schema, times: list[Name], unit: str | None, stream: str) -> TimeDomain:
    """The time domain of the time columns."""
    if unit is not None and not times:
        raise BindError(f'stream "{stream}" has a unit but no time', help='pass time="column"')
    found = []
    for name in times:
        column = column_named(columns, name, stream)
        if pa.types.is_timestamp(column.type):
            found.append(TIMESTAMP_TIME)
        elif column.type == types.BIGINT:
            found.append(TimeDomain(types.BIGINT, _unit_size(unit)))
        else:
            raise BindError(
                f'column "{column.name}" is {types.sql_name(column.type)} and cannot order the '
                "stream",
                name.span,
                "time is a TIMESTAMP, or a BIGINT of raw units",
            )
    if len(set(found)) > 1:
        raise BindError(f'the times of stream "{stream}" have different types', times[0].span)
    return found[0] if found else TIMESTAMP_TIME


def number_unit(domain: TimeDomain, unit: str | None) -> int | None:
    """The microseconds per unit of a number in a TIMESTAMP time column."""
    return _unit_size(unit) if domain == TIMESTAMP_TIME else None


def _unit_size(unit: str | None) -> int | None:
    if unit is None:
        return None
    word = unit_named(str(unit))
    if word is None:
        raise BindError(f'"{unit}" is not a unit of time', help=f"write {UNITS}")
    return MICROSECONDS[word]


def declared_schema(schema: Mapping[str, str | pa.DataType] | pa.Schema) -> Schema:
    if not isinstance(schema, Mapping | pa.Schema):
        raise DataError('schema is a mapping such as {"column": "TYPE"}, or an Arrow schema')
    if isinstance(schema, pa.Schema):
        return tuple(Field(f.name, type_named(f.type), nullable=f.nullable) for f in schema)
    return tuple(Field(name, type_named(given)) for name, given in schema.items())


def type_named(given: str | pa.DataType) -> pa.DataType:
    try:
        return types.from_arrow(given) if isinstance(given, pa.DataType) else type_of(given)
    except (ValueError, ParseError):
        raise ParseError(f'"{given}" is not a type') from None
