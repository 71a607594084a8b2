"""One way in which a contender answers a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """`run` takes what the contender prepared and returns its own kind of answer.

    A form that is not `exact` answers a simpler question, as is usual for that contender; its
    answer is not compared. A form that is `always` timed is not the fastest but informative: the
    cost of the plain query, or of the same query on rows as they arrive.
    """

    name: str
    run: Callable[[Any], Any]
    exact: bool = True
    always: bool = False
