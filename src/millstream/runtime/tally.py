"""The work and state of an operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from millstream.model.time import INFINITY


@dataclass(frozen=True)
class Tally:
    """For one operator, or all its shards together."""

    id: str  # its signature
    name: str
    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int
    state_bytes: int
    frontier: int

    def told(self) -> list[Any]:
        """As plain values."""
        return [
            self.id, self.name, self.rows_in, self.rows_out, self.seconds, self.state_rows,
            self.state_bytes, self.frontier,
        ]  # fmt: skip

    def since(self, before: Tally) -> Tally:
        """The work since then, with the current state."""
        return replace(
            self,
            rows_in=self.rows_in - before.rows_in,
            rows_out=self.rows_out - before.rows_out,
            seconds=self.seconds - before.seconds,
        )

    def after(self, before: Tally) -> Tally:
        """The work up to then and since then."""
        return replace(
            self,
            rows_in=self.rows_in + before.rows_in,
            rows_out=self.rows_out + before.rows_out,
            seconds=self.seconds + before.seconds,
        )


def together(tallies: Iterable[Tally]) -> Tally:
    """The sum over parallel shards; at least one."""
    found = list(tallies)
    return Tally(
        found[0].id,
        found[0].name,
        sum(tally.rows_in for tally in found),
        sum(tally.rows_out for tally in found),
        sum(tally.seconds for tally in found),
        sum(tally.state_rows for tally in found),
        sum(tally.state_bytes for tally in found),
        min((tally.frontier for tally in found), default=INFINITY),
    )
