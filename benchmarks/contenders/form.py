"""One way in which a contender answers a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """`run` takes what the contender prepared and gives its own kind of answer.

    A form that is not `exact` answers a smaller question, as people usually do there; its answer is
    not compared. One that is `always` timed is not the fastest but tells something of its own: what
    the plain query costs, or the same query on rows as they arrive.
    """

    name: str
    run: Callable[[Any], Any]
    exact: bool = True
    always: bool = False
