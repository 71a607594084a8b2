"""The metrics of a running query, from its operators and inputs."""

from __future__ import annotations

from millstream.model.instants import Instant, shown
from millstream.model.metrics import OperatorMetrics, SourceMetrics
from millstream.model.time import TimeDomain
from millstream.physical.batch import NEVER
from millstream.runtime.inputs import Input
from millstream.runtime.tally import Tally


def instant(frontier: int, domain: TimeDomain) -> Instant | None:
    """A frontier for display; None if nothing is known yet."""
    return None if frontier == NEVER else shown(frontier, domain)


def operator_metrics(tally: Tally, domain: TimeDomain, elapsed: float) -> OperatorMetrics:
    return OperatorMetrics(
        tally.id,
        tally.name,
        tally.rows_in,
        tally.rows_out,
        tally.rows_in / elapsed if elapsed > 0 else 0.0,
        tally.rows_out / tally.rows_in if tally.rows_in else None,
        tally.state_rows,
        tally.state_bytes,
        tally.seconds,
        instant(tally.frontier, domain),
    )


def source_metrics(input: Input, domain: TimeDomain) -> SourceMetrics:
    return SourceMetrics(
        input.stream.name,
        input.received,
        input.late,
        input.bad,
        input.queued or 0,
        input.held,
        input.idle,
        instant(input.frontier, domain),
        input.trouble,
    )
