"""`millstream check`: parse and bind statements, run nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from millstream.api.pulls import PullQuery
from millstream.cli.reading import bound
from millstream.model.modes import EngineName


def check(file: str, parameters: Iterable[str]) -> None:
    session, results = bound(file, EngineName.LOCAL, parameters)
    asked = sum(isinstance(result, PullQuery) for result in results)
    told = [
        _counted(len(results), "statement"),
        _counted(len(session.queries) + asked, "query", "queries"),
    ]
    told += [_counted(len(session.views), "view")] if session.views else []
    print(f"{', '.join(told)}: fine", file=sys.stderr)


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
