"""What binders of parts of a statement need of the binder of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlglot import exp

from millstream.logical.catalog import Catalog, DerivedStream, Stream
from millstream.logical.plan import Plan
from millstream.model.errors import Span
from millstream.model.time import TimeDomain
from millstream.sql.clauses import AsOf
from millstream.sql.scope import Scope


class StatementContext(Protocol):
    """A statement. `inherited` are the nodes that derived streams brought along."""

    catalog: Catalog
    parameters: Mapping[str, object]
    inherited: set[int]

    def fresh(self, base: str) -> str:
        """`base`, or `base_2` and so on where the statement has used it."""

    def note_use(self, stream: str, domain: TimeDomain, span: Span | None) -> None:
        """The statement reads a stream, whose time must be that of the others."""

    def kept(
        self, entry: Stream | DerivedStream, as_of: AsOf | None, span: Span | None
    ) -> Plan | None:
        """What is kept of a view or a table, for those who read that; None: it is its plan."""

    def history(self, entry: Stream | DerivedStream, span: Span | None) -> Plan:
        """What a view or a stream retains."""

    def query(self, tree: exp.Expression, outer: Scope | None, tables: Mapping[str, Plan]) -> Plan:
        """The plan of a query; its output columns have no qualifier."""


class SelectContext(Protocol):
    """A SELECT of a statement, whose plan grows with its clauses."""

    statement: StatementContext
    node: exp.Select
    plan: Plan
    scope: Scope

    def fresh(self, base: str) -> str: ...

    def subplan(self, tree: exp.Expression) -> Plan: ...
