"""The interfaces through which binders of parts use the binder of the whole statement."""

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
    """A statement. `inherited` are the nodes that come from derived streams."""

    catalog: Catalog
    parameters: Mapping[str, object]
    inherited: set[int]

    def fresh(self, base: str) -> str:
        """`base`, or `base_2` and so on where the statement has used it."""

    def note_use(self, stream: str, domain: TimeDomain, span: Span | None) -> None:
        """Record that the statement reads a stream; all streams must share one time domain."""

    def kept(
        self, entry: Stream | DerivedStream, as_of: AsOf | None, span: Span | None
    ) -> Plan | None:
        """A plan over the stored rows of a view or a table; None: use its own plan."""

    def history(self, entry: Stream | DerivedStream, span: Span | None) -> Plan:
        """A plan over the retained rows of a view or a stream."""

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
