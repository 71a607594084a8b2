"""How a query runs and its state, as enumerations that equal their text."""

from __future__ import annotations

from enum import StrEnum


class Emit(StrEnum):
    """The form in which a query emits its answer."""

    FINAL = "FINAL"  # rows with valid_from and valid_to, once they are final
    CHANGES = "CHANGES"  # inserted and deleted rows, with the instant
    EVERY = "EVERY"  # the whole answer, periodically
    ELEMENTS = "ELEMENTS"  # as the last operator emits it; never written in a statement


class EngineName(StrEnum):
    SPARK = "spark"
    LOCAL = "local"  # in this process
    REFERENCE = "reference"  # the definition, for small inputs


class QueryState(StrEnum):
    REGISTERED = "registered"
    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
