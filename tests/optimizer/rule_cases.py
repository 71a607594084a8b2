"""Cases of rules: in `rules/<rule>.plan`, each a name, a plan, `----`, and what the rule makes of
it; `same` if it must leave it alone. In `alternatives/<rule>.plan` there may be several, or `none`.

Both plans must have the same answer and the same errors over the rows below, which have NULLs,
zeros of both signs, rows that occur twice, ties, and texts that are no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pyarrow as pa

import millstream as ms
from millstream.logical.plan import Plan, Source
from millstream.logical.reference import Reference
from millstream.logical.text import plan_text
from millstream.model.elements import Element, Row
from millstream.sql.plan_text import parse_plan

FOLDER = Path(__file__).parent / "rules"
ALTERNATIVE_CASES = Path(__file__).parent / "alternatives"

R = {"k": "INT", "v": "DOUBLE", "s": "STRING", "t": "BIGINT"}
Q = {"k": "INT", "w": "DOUBLE", "t": "BIGINT"}
V = {"k": "INT", "x": "BIGINT", "y": "BIGINT"}
U = {"id": "INT", "k": "INT", "t": "BIGINT"}
C = {"k": "INT", "c": "STRING"}
ROWS = {
    "R": [
        (1, 0.0, "1", 3), (1, -0.0, "1", 3), (2, 1.5, "a", 4), (None, math.nan, "2", 5),
        (2, 1.5, "a", 6), (3, None, None, 6), (1, 0.0, "1", 9), (3, 4.0, "7", 12),
        (2, 1.5, "a", 14), (1, 9.0, "0", 17),
    ],
    "Q": [
        (1, 2.0, 2), (2, 0.0, 4), (2, -0.0, 5), (None, 1.0, 6), (4, 4.0, 8), (1, 2.0, 8),
        (3, None, 11), (2, 1.5, 15),
    ],
    "U": [(None, 1, 1), (1, 1, 3), (2, None, 3), (3, 1, 4), (4, 2, 9), (5, 2, 11)],
    "V": [(1, 1, 7), (2, 3, 5), (1, 4, 9), (None, 6, 12), (2, 8, 20)],
    "C": [(1, "one"), (2, "two"), (2, "two"), (2, "x"), (None, "none"), (3, "0")],
}  # fmt: skip


def _session() -> ms.Session:
    session = ms.Session(engine="reference")
    session.function("twice", lambda column: pa.compute.multiply(column, 2), returns="INT")
    for name, schema, time in (("R", R, "t"), ("Q", Q, "t"), ("V", V, ("x", "y"))):
        session.stream(name, ROWS[name], time=time, schema=schema)
    session.stream("U", ROWS["U"], time="t", schema=U, unique=["id"])
    session.table("C", ROWS["C"], schema=C, changes="constant")
    changing = session.table("D", ROWS["C"], schema=C)
    changing.insert([(1, "later")], at=8)
    return session


SESSION = _session()


def plan_of(text: str) -> Plan:
    return parse_plan(text, SESSION.catalog)


@dataclass(frozen=True)
class Case:
    rule: str
    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.name}"


def read_cases(file: Path) -> Iterator[Case]:
    for block in file.read_text(encoding="utf-8").split("\n== ")[1:]:
        name, _, plans = block.partition("\n")
        before, _, after = plans.partition("\n----\n")
        before, after = before.strip("\n"), after.strip("\n")
        yield Case(file.stem, name, before, before if after == "same" else after)


def check_same(before: Plan, after: Plan) -> None:
    """Require the same answer and the same errors."""
    told = f"\n{indent(plan_text(before), '  ')}\nbecame\n{indent(plan_text(after), '  ')}"
    assert outcome(after) == outcome(before), told


def outcome(plan: Plan) -> tuple[list[Element], set[tuple[Row, str]]]:
    names = {node.stream for node in plan.walk() if isinstance(node, Source)}
    inputs = SESSION._origins.records(sorted(names))
    reference = Reference(
        plan,
        {name: records.elements() for name, records in inputs.items()},
        SESSION.catalog.functions,
    )
    return reference.result(), {*reference.errors}
