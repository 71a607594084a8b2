"""The NEXMark queries: their statements, plans and sample rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import millstream as ms
from millstream.logical.plan import Plan

HERE = Path(__file__).parent
Row = tuple[object, ...]


def _statements(text: str) -> dict[str, str]:
    """The statements of the script by the names that their markers give them."""
    _, *parts = re.split(r"^-- @(\w+).*\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


STATEMENTS = _statements((HERE / "nexmark.sql").read_text(encoding="utf-8"))
DEFINITIONS = {name: text for name, text in STATEMENTS.items() if text.startswith("CREATE")}
DERIVED = [name for name, text in DEFINITIONS.items() if " AS\n" in text]
PORTS = {
    name: match[1]
    for name, text in DEFINITIONS.items()
    if (match := re.search(r"establishConnection\('(\w+)'", text))
}


def session_over(data: Mapping[str, Sequence[Row]] | None = None) -> ms.Session:
    """A session that has run the definitions; its streams are read from `data`, by port."""
    session = ms.Session()
    session.function("DolToEuro", lambda dollars: pc.multiply(dollars, 0.5), returns="REAL")
    by_port = {PORTS[name]: rows for name, rows in (data or {}).items()}
    session.source("establishConnection", lambda port, converter: by_port.get(port, []))
    session.sql("".join(DEFINITIONS.values()))
    return session


def plan_of(name: str) -> Plan:
    session = session_over()
    statement = f"SELECT * FROM {name}" if name in DERIVED else STATEMENTS[name]
    plan = session.sql(statement).plan
    assert isinstance(plan, Plan)
    return plan


def rows(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]
