"""Admission control: the processors that a query needs, and what it sheds if there are too few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from millstream.api.workspace import Workspace
from millstream.logical.plan import sources_of
from millstream.model.errors import OverloadWarning, QueryError, listed, warn_caller

if TYPE_CHECKING:
    from millstream.optimizer.planned import PlannedQuery
    from millstream.optimizer.shedding.queries import Demand


@dataclass(frozen=True)
class Admission:
    """For a query that may drop the share `shed` of the rows of a stream."""

    name: str
    query: PlannedQuery
    shed: float
    workspace: Workspace

    @cached_property
    def _demand(self) -> Demand | None:
        """The processors needed at the declared rates; None if not known, because a stream has no
        rate or time has no unit."""
        streams = [self.workspace.origins.stream(name) for name in self._streams]
        unknown = any(stream.rate is None for stream in streams)
        if unknown or self.query.bound.domain.microseconds is None:
            return None
        numbered = [stream.name for stream in streams if stream.numbered]
        return self.query.demand(numbered, self.workspace.processors)

    @property
    def _streams(self) -> list[str]:
        return sources_of(self.query.bound)

    def foreseen(self) -> PlannedQuery:
        """The query as it would be started, including what it would drop."""
        wanted = self._demand
        if wanted is None or wanted.fits or not self._may_shed(wanted):
            return self.query
        return self.query.dropping(wanted.shares)

    def lines(self) -> Iterator[str]:
        """The lines of `explain` for a query that cannot keep up with its streams."""
        wanted = self._demand
        if wanted is None or wanted.fits:
            return
        there = self.workspace.processors
        needs = f"it needs {wanted.processors:.2g} processors, but there are {there:g}"
        if not self._may_shed(wanted):
            yield f"{needs}: it cannot be started{self._unnumbered()}"
        else:
            kept = (f'{share:.1%} of "{name}"' for name, share in wanted.shares.items())
            yield f"{needs}: when started it keeps {', '.join(kept)}"

    def shares(self) -> Mapping[str, float]:
        """The share kept of each stream when the query is started, if not all. A query that needs
        too much is rejected unless it or the session allows dropping rows."""
        wanted = self._demand
        if wanted is None:
            self._warn_of_unknown()
            return {}
        if wanted.fits:
            return {}
        if not self._may_shed(wanted):
            raise self._too_much(wanted)
        return wanted.shares

    def _too_much(self, wanted: Demand) -> QueryError:
        there = f"; there are {self.workspace.processors:g}"
        remedy = "" if self.shed else "allow dropping rows with SHED or Session(shed=True), or "
        if 0 < self.shed < 1 and wanted.shares:
            lost = 1 - min(wanted.shares.values())
            there += f", and SHED allows dropping {self.shed:.0%} of a stream, not {lost:.0%}"
            remedy = "allow dropping more, or "
        elif self.shed:
            there = f", and {wanted.least:.2g} whatever is dropped{there}"
        return QueryError(
            f'query "{self.name}" needs {wanted.processors:.2g} processors at the rates that '
            f"its streams declare{there}{self._unnumbered()}",
            help=f"{remedy}provide more with Session(processors=…)",
        )

    def _unnumbered(self) -> str:
        """The streams that cannot be shed, if rows may be dropped."""
        stream = self.workspace.origins.stream
        names = [name for name in self._streams if not stream(name).numbered]
        if not names or not self.shed:
            return ""
        return f"; rows of {listed(names)} have no numbers, so none of them can be dropped"

    def _warn_of_unknown(self) -> None:
        """Warn that rows may be dropped but it is not known how many."""
        if not self.shed:
            return
        stream = self.workspace.origins.stream
        names = [name for name in self._streams if stream(name).rate is None]
        why, help = "its time has no unit", "declare the UNIT of the time of its streams"
        if names:
            why = f"no rate of {listed(names)} is declared"
            help = "declare how many rows come per second: WITH (rate = …)"
        message = f'query "{self.name}" may drop rows but drops none, because {why}'
        warn_caller(message, OverloadWarning, help)

    def _may_shed(self, wanted: Demand) -> bool:
        """Whether dropping the allowed share is enough."""
        is_enough = wanted.least <= 1.01 * self.workspace.processors
        return is_enough and min(wanted.shares.values(), default=1.0) >= 1 - self.shed
