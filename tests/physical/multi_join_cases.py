"""Multi-way joins to test with: columns, links, and the same join as a logical plan."""

from __future__ import annotations

from functools import reduce

from millstream.logical import plan as logical
from millstream.logical.expressions import Call, Column, Expression, Literal
from millstream.logical.plan import Field, JoinKind, Lifetime, Schema
from millstream.model import types
from millstream.model.time import RAW_TIME
from millstream.physical.joins.steps import Link
from millstream.physical.operators.join import JoinKey

NAMES = "ABCD"
VALUES = [(1, 2, 3, None), (1, 2), ("x", "yy", None)]


def schema_of(name: str) -> Schema:
    return (
        Field("k", types.BIGINT, name),
        Field("m", types.BIGINT, name),
        Field("s", types.STRING, name),
    )


def column(input: int, name: str) -> Column:
    (found,) = (field for field in schema_of(NAMES[input]) if field.name == name)
    return found.column


def link(left: str, right: str, null_matches: bool = False) -> Link:
    """`link("A.k", "B.m")`"""
    (a, x), (b, y) = left.split("."), right.split(".")
    i, j = NAMES.index(a), NAMES.index(b)
    return Link(i, j, JoinKey(column(i, x), column(j, y), null_matches))


def compared(left: str, operator: str, right: str) -> Expression:
    (a, x), (b, y) = left.split("."), right.split(".")
    arguments = (column(NAMES.index(a), x), column(NAMES.index(b), y))
    return Call(operator, arguments, types.BOOLEAN)


JOINS: dict[str, tuple[int, tuple[Link, ...], tuple[Expression, ...]]] = {
    "one attribute": (3, (link("A.k", "B.k"), link("B.k", "C.k")), ()),
    "one attribute of four": (4, tuple(link("A.k", f"{x}.k") for x in "BCD"), ()),
    "a chain of different columns": (
        4,
        (link("A.k", "B.m"), link("B.k", "C.m"), link("C.s", "D.s")),
        (),
    ),
    "two columns of each pair": (
        3,
        (link("A.k", "B.k"), link("A.s", "B.s"), link("B.k", "C.k"), link("C.s", "B.s")),
        (),
    ),
    "NULL equals NULL": (3, (link("A.s", "B.s", True), link("B.s", "C.s", True)), ()),
    "NULL does where all allow it": (3, (link("A.s", "B.s", True), link("B.s", "C.s")), ()),
    "an equality within an input": (
        3,
        (link("A.k", "B.k"), link("A.m", "B.k"), link("B.m", "C.m")),
        (),
    ),
    "a star": (4, (link("A.k", "B.k"), link("A.m", "C.m"), link("A.s", "D.s")), ()),
    "theta": (3, (), (compared("A.k", "<", "B.k"), compared("B.m", ">=", "C.k"))),
    "hybrid": (3, (link("A.k", "B.k"),), (compared("B.m", "<>", "C.m"),)),
    "no condition": (3, (), ()),
    "two inputs": (2, (link("A.k", "B.k"),), (compared("A.m", "<=", "B.m"),)),
}


def logical_join(
    count: int, links: tuple[Link, ...], conditions: tuple[Expression, ...]
) -> logical.Plan:
    """The tree of binary joins, all conditions in the last one."""
    equalities = [
        Call("<=>" if key.null_matches else "=", (key.left, key.right), types.BOOLEAN)
        for key in (link.key for link in links)
    ]
    parts = [*equalities, *conditions]
    whole = reduce(lambda a, b: Call("and", (a, b), types.BOOLEAN), parts) if parts else None
    sources: list[logical.Plan] = [
        logical.Source(name, name, schema_of(name), RAW_TIME, Lifetime.INTERVAL)
        for name in NAMES[:count]
    ]
    *first, last = sources
    left = reduce(lambda a, b: logical.Join(a, b, JoinKind.INNER, None), first)
    return logical.Join(left, last, JoinKind.INNER, whole)


def failing(left: str, right: str) -> Expression:
    """10 DIV left = right"""
    divided = Call("div", (Literal(10, types.BIGINT), named_column(left)), types.BIGINT)
    return Call("=", (divided, named_column(right)), types.BOOLEAN)


def named_column(name: str) -> Column:
    return column(NAMES.index(name[0]), name[2:])
