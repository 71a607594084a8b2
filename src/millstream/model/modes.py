"""The few words that say how a query runs and how far it is, as enumerations that equal their
text."""

from __future__ import annotations

from enum import StrEnum


class Emit(StrEnum):
    """In which form a query gives its answer."""

    FINAL = "FINAL"  # rows with valid_from and valid_to, once they are final
    CHANGES = "CHANGES"  # rows that come and go, with the instant
    EVERY = "EVERY"  # the whole answer, so often
    ELEMENTS = "ELEMENTS"  # as the last operator gives it; never written in a statement


class EngineName(StrEnum):
    SPARK = "spark"
    LOCAL = "local"  # in this process
    REFERENCE = "reference"  # the definition, for small inputs


class QueryState(StrEnum):
    REGISTERED = "registered"
    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
