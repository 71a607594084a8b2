"""`millstream check`: statements are parsed and bound, and nothing runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from millstream.cli.reading import bound


def check(file: str, parameters: Iterable[str]) -> None:
    session, results = bound(file, "local", parameters)
    queries = len(session.queries)
    print(
        f"{_counted(len(results), 'statement')}, {_counted(queries, 'query', 'queries')}: fine",
        file=sys.stderr,
    )


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
