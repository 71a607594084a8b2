"""What a running query tells of itself: how far it has come, and what each operator does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from millstream.logical.instants import Instant, shown
from millstream.model.time import TimeDomain
from millstream.physical.batch import NEVER
from millstream.runtime.inputs import Input
from millstream.runtime.tally import Tally


@dataclass(frozen=True)
class OperatorMetrics:
    """`rate` is rows in for each second since the query began; `selectivity` is rows out for each
    row in; `seconds` is the time that the operator itself took."""

    name: str
    rows_in: int
    rows_out: int
    rate: float
    selectivity: float | None
    state_rows: int
    state_bytes: int
    seconds: float
    frontier: Instant | None


@dataclass(frozen=True)
class SourceMetrics:
    """`rows` are all that came, the late ones and those that could not be read among them; `queued`
    have come and are not taken yet; `held` wait for the frontier, to go on in order. `trouble` says
    why a table cannot be read at present, while what was read last still holds."""

    stream: str
    rows: int
    late: int
    errors: int
    queued: int
    held: int
    idle: bool
    frontier: Instant | None
    trouble: str | None = None


@dataclass(frozen=True)
class Metrics:
    """Operators from the root down, sources by name."""

    operators: list[OperatorMetrics]
    sources: dict[str, SourceMetrics]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """How far a query has come; `seconds` is the time it was at work, without that of the sink."""

    state: str
    batches: int
    rows_in: int
    rows_out: int
    late: int
    errors: int
    frontier: Instant | None
    seconds: float


def instant(frontier: int, domain: TimeDomain) -> Instant | None:
    """A frontier for people; None where nothing is known yet."""
    return None if frontier == NEVER else shown(frontier, domain)


def operator_metrics(tally: Tally, domain: TimeDomain, elapsed: float) -> OperatorMetrics:
    return OperatorMetrics(
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
