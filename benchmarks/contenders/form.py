"""One way in which a contender answers a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """`run` takes what the contender prepared and gives its own kind of answer.

    A form that is not `exact` answers a smaller question, as people usually do there; its answer is
    not compared.
    """

    name: str
    run: Callable[[Any], Any]
    exact: bool = True
