"""Parts of parsed queries, and what the names in them stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from oracle.duckdb_dialect import is_aggregate
from oracle.judged_streams import JudgedStream


class Catalog(Protocol):
    """The streams by their names in lower case, and the queries of derived streams."""

    streams: dict[str, JudgedStream]
    derived: dict[str, exp.Expression]


@dataclass(frozen=True)
class Common:
    """A query that WITH named."""

    tree: exp.Expression
    tables: Tables
    columns: list[exp.Expression]


Tables = Mapping[str, Common]


# --- names ----------------------------------------------------------------------------------------


def take_with(tree: exp.Expression, tables: Tables) -> Tables:
    """The names that a query sees, those of its own WITH included, which is taken off it."""
    key = key_of(tree, "with")
    clause = tree.args.get(key)
    if clause is None:
        return tables
    named = dict(tables)
    for entry in clause.expressions:
        alias = entry.args["alias"]
        columns = list(alias.args.get("columns") or [])
        named[alias.this.name.lower()] = Common(entry.this, dict(named), columns)
    tree.set(key, None)
    return named


def peek_with(tree: exp.Expression, tables: Tables) -> Tables:
    """As `take_with`, and the query stays as it is."""
    return take_with(tree.copy(), tables) if tree.args.get(key_of(tree, "with")) else tables


def resolve(
    catalog: Catalog, node: exp.Expression, tables: Tables
) -> tuple[str, exp.Expression | JudgedStream, Tables, list[exp.Expression]]:
    """What a reference stands for: its name, the query or stream, the names that query sees,
    and its column names where WITH gave them."""
    if isinstance(node, exp.Subquery):
        return "", node.this, tables, []
    call = node.this
    if isinstance(call, exp.Anonymous):
        (argument,) = call.expressions
        if isinstance(argument, exp.Column):
            name = argument.name
            stream = exp.select("*").from_("x")
            reference = exp.Table(this=exp.to_identifier(name))
            reference.meta.update(argument.meta)
            stream.args[key_of(stream, "from")].set("this", reference)
            argument = stream
        else:
            name = ""
        listed = exp.select(exp.Anonymous(this=call.name, expressions=[exp.Star()]))
        return name, listed.from_(exp.Subquery(this=unwrapped(argument))), tables, []
    name = str(node.name)
    if name.lower() in tables:
        common = tables[name.lower()]
        return name, common.tree, common.tables, common.columns
    if name.lower() in catalog.streams:
        stream_data = catalog.streams[name.lower()]
        return name, stream_data, {}, []
    return name, catalog.derived[name.lower()], {}, []


# --- parts ----------------------------------------------------------------------------------------


def key_of(node: exp.Expression, name: str) -> str:
    """The key of an argument, which has a trailing underscore in newer versions of sqlglot."""
    return f"{name}_" if f"{name}_" in node.arg_types else name


def unwrapped(tree: exp.Expression) -> exp.Expression:
    while isinstance(tree, exp.Subquery) and {k for k, v in tree.args.items() if v} == {"this"}:
        tree = tree.this
    return tree


def stream_function(tree: exp.Expression) -> str | None:
    items = tree.expressions if isinstance(tree, exp.Select) else []
    if len(items) == 1 and isinstance(items[0], exp.Anonymous):
        name = items[0].name.upper()
        return name if name in ("ISTREAM", "DSTREAM", "RSTREAM") else None
    return None


def only_filters(join: exp.Expression) -> bool:
    return str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")


def is_comma(join: exp.Expression) -> bool:
    """Whether a comma stood before the reference: it binds less than JOIN, unlike CROSS JOIN,
    which sqlglot takes it for."""
    return bool(join.meta.get("comma"))


def items_of(node: exp.Expression, joins: Sequence[exp.Expression]) -> Iterable[exp.Expression]:
    """The references of FROM, left to right."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
        if node.args.get("alias") is None:
            yield from items_of(node.this, node.this.args.get("joins") or [])
        else:
            yield node
    else:
        yield node
        for join in node.args.get("joins") or []:
            yield from items_of(join.this, [])
    for join in joins:
        if not only_filters(join):
            yield from items_of(join.this, [])


def own_nodes(tree: exp.Expression) -> Iterable[exp.Expression]:
    """The nodes of a SELECT's clauses, outermost first; not those of FROM, nor of the queries
    inside, nor what stands inside an aggregate."""
    for key, value in tree.args.items():
        if key.rstrip("_") in ("from", "joins", "with", "laterals"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expression):
                yield from _own_nodes_below(child)


def _own_nodes_below(node: exp.Expression) -> Iterable[exp.Expression]:
    if isinstance(node, exp.Query | exp.Subquery):
        return
    yield node
    if is_aggregate(node):
        return
    for child in node.iter_expressions():
        yield from _own_nodes_below(child)


def outermost_queries(node: exp.Expression) -> Iterable[exp.Expression]:
    if isinstance(node, exp.Query):  # also Subquery
        yield node
        return
    for child in node.iter_expressions():
        yield from outermost_queries(child)


def queries_of_clauses(tree: exp.Expression) -> Iterable[exp.Expression]:
    for key, value in tree.args.items():
        if key.rstrip("_") in ("from", "joins", "with"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expression):
                yield from outermost_queries(child)
