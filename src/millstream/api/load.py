"""What a query takes of processors, and what is dropped where that is too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.logical.plan import sources_of
from millstream.model.errors import OverloadWarning, QueryError, listed, warn_caller
from millstream.optimizer.cost import Estimates, estimate, known_constants
from millstream.optimizer.shedding.queries import Demand, demand, selectivities, with_drops

if TYPE_CHECKING:
    from millstream.api.query import Query
    from millstream.optimizer.statistics import Statistics
    from millstream.physical.operator import PhysicalPlan


def estimates_of(query: Query) -> Estimates:
    """What `query.estimates()` gives."""
    known = query._session._origins.statistics(query.plan)
    wanted = _demand(query) if query.shed else None
    if wanted is None or not wanted.shares:
        return _estimating(query)(query.physical_plan, known)
    plan = with_drops(query.optimized_plan, wanted.shares)
    known = replace(known, selectivities=dict(selectivities(plan)))
    return _estimating(query)(query._chosen(plan), known)


def _estimating(query: Query) -> Callable[[PhysicalPlan, Statistics], Estimates]:
    """What estimates a plan on the engine of the query's session."""
    constants = known_constants()
    if query._session.engine != "spark":
        return lambda plan, known: estimate(plan, known, constants)
    from millstream.fragments.cutting import placing
    from millstream.optimizer.cost.spark import in_jobs, on_spark

    places = int(query._session.processors) or 1

    def estimating(plan: PhysicalPlan, known: Statistics) -> Estimates:
        return on_spark(estimate(plan, in_jobs(known), constants), placing(plan, places), constants)

    return estimating


def what_is_too_much(query: Query) -> Iterator[str]:
    """What the explanation of a query says that cannot keep up with its streams."""
    wanted = _demand(query)
    if wanted is None or wanted.fits:
        return
    there = query._session.processors
    needs = f"it needs {wanted.processors:.2g} processors, and there are {there:g}"
    if not _may_shed(query, wanted):
        yield f"{needs}: it cannot be started{_unnumbered(query)}"
    else:
        kept = (f'{share:.1%} of "{name}"' for name, share in wanted.shares.items())
        yield f"{needs}: when started it keeps {', '.join(kept)}"


def shares_kept(query: Query) -> Mapping[str, float]:
    """What is kept of each stream when the query is started, if not all; a query that is too much
    is refused unless it or the session lets rows be dropped."""
    wanted = _demand(query)
    if wanted is None:
        _warn_of_unknown(query)
        return {}
    if wanted.fits:
        return {}
    if not _may_shed(query, wanted):
        there = f"; there are {query._session.processors:g}"
        if 0 < query.shed < 1 and wanted.shares:
            lost = 1 - min(wanted.shares.values())
            there += f", and SHED lets {query.shed:.0%} of a stream go, not {lost:.0%}"
        elif query.shed:
            there = f", and {wanted.least:.2g} whatever is dropped{there}"
        raise QueryError(
            f'query "{query.name}" needs {wanted.processors:.2g} processors at the rates that '
            f"its streams declare{there}{_unnumbered(query)}",
            help="let rows be dropped with SHED or Session(shed=True), or give it more with "
            "Session(processors=…)",
        )
    return wanted.shares


def _demand(query: Query) -> Demand | None:
    """What it needs of processors when its rows come as fast as declared; None where nobody can
    tell, because some stream has no rate or time has no seconds."""
    origins = query._session._origins
    names = sorted(sources_of(query.plan))
    unknown = any(origins.stream(name).rate is None for name in names)
    if unknown or query.plan.domain.microseconds is None:
        return None
    known, processors = origins.statistics(query.plan), query._session.processors
    numbered = [name for name in names if origins.stream(name).numbered]
    return demand(query.physical_plan, known, numbered, processors, _estimating(query))


def _unnumbered(query: Query) -> str:
    """Which streams cannot be shed, if rows may be dropped."""
    stream = query._session._origins.stream
    names = [name for name in sorted(sources_of(query.plan)) if not stream(name).numbered]
    if not names or not query.shed:
        return ""
    return f"; rows of {listed(names)} have no numbers, so none of them can be dropped"


def _warn_of_unknown(query: Query) -> None:
    """Rows may be dropped, and nobody can tell how many."""
    if not query.shed:
        return
    stream = query._session._origins.stream
    names = [name for name in sorted(sources_of(query.plan)) if stream(name).rate is None]
    why, help = "its time has no unit", "declare the UNIT of the time of its streams"
    if names:
        why = f"no rate of {listed(names)} is declared"
        help = "declare how many rows come per second: WITH (rate = …)"
    message = f'query "{query.name}" may drop rows and drops none, because {why}'
    warn_caller(message, OverloadWarning, help)


def _may_shed(query: Query, wanted: Demand) -> bool:
    """Whether what must be dropped is no more than what may be, and enough."""
    is_enough = wanted.least <= 1.01 * query._session.processors
    return is_enough and min(wanted.shares.values(), default=1.0) >= 1 - query.shed
