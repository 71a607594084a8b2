"""Warns about streams with many late rows, which are in no answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from millstream.model.errors import Diagnostic, MillstreamWarning, render
from millstream.runtime.inputs import Input

TOLERATED = 0.01  # of a stream's rows may be late without a warning
ENOUGH_ROWS = 100  # rows before a warning, unless the query ends first


class LateWarnings:
    """Warns once per stream of a query."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._told: set[str] = set()

    def check(self, inputs: Iterable[Input], least: int = ENOUGH_ROWS) -> None:
        """Warn about streams with at least `least` rows."""
        for input in inputs:
            if input.late <= TOLERATED * input.received or input.received < least:
                continue
            if input.stream.name not in self._told:
                self._told.add(input.stream.name)
                told = render(late_warning(self._query, input))
                warnings.warn(told, MillstreamWarning, stacklevel=2)


def late_warning(query: str, input: Input) -> Diagnostic:
    """The rows lost, the delay that would have sufficed, and likely reasons."""
    stream = input.stream
    behind = stream.domain.format(input.behind)
    idle = " or a longer IDLE AFTER" if stream.idle is not None else ""
    return Diagnostic(
        f'query "{query}": {input.late:,} of the first {input.received:,} rows of stream '
        f'"{stream.name}" were late and are in no answer',
        help=f"they came up to {behind} behind others: declare ORDERED BY {stream.time[0]} DELAY "
        f"{behind}{idle}, or let the source give them in order (files are read by their time of "
        "modification, then by name; a source that starts over gives old rows again)",
        severity="warning",
    )
