"""The tables of calls and what they give: `| call | gives |` and `| aggregate | gives |`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import millstream as ms
from millstream.logical.expressions import AggregateCall, Call
from millstream.model.display import text_of
from millstream.model.errors import MillstreamWarning

#: Over which rows a table is, by the name of its first column.
OVER = {"call": "One", "aggregate": "Reading WINDOW(RANGE UNBOUNDED)"}
_LATEST = 4  # an instant at which all rows are in view


@dataclass(frozen=True)
class Line:
    text: str  # the expression
    gives: str | None  # what it gives, if that is always the same
    over: str


def lines_of(document: Path) -> Iterator[Line]:
    over = None
    for line in document.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) > 1 and cells[1] == "gives":
            over = OVER[cells[0]]
        elif not cells:
            over = None
        elif over is not None and not set(line) <= set("| -"):
            yield Line(_code(cells[0]) or "", _code(cells[1]), over)


def _code(cell: str) -> str | None:
    found = re.fullmatch(r"`(.*)`", cell)
    return None if found is None else found[1].replace(r"\|", "|")


def answer(session: ms.Session, line: Line) -> tuple[str, set[str]]:
    """What a line gives, and the functions that it calls."""
    with warnings.catch_warnings():  # an aggregate over everything may keep everything
        warnings.simplefilter("ignore", MillstreamWarning)
        query = session.sql(f"SELECT {line.text} AS v FROM {line.over}")
    at = 0 if line.over == "One" else _LATEST
    (value,) = query.snapshot(at).column("v").to_pylist()
    assert not query.errors, (line.text, query.errors)
    called = set().union(*map(_called, query.plan.walk()))
    session.sql(f"DROP QUERY {query.name}")
    return text_of(value), called


def _called(node: object) -> set[str]:
    """The names of all functions in a node of a plan or an expression; not of other nodes."""
    found = {node.function} if isinstance(node, Call | AggregateCall) else set()
    for field in fields(node) if is_dataclass(node) else ():
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if is_dataclass(part) and not hasattr(part, "walk"):
                found |= _called(part)
    return found
