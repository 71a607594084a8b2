"""A query that writes to a sink, as a program of its own that can be killed at any moment.

python killed_insert.py <folder> <sink> <option=value>…
"""

from __future__ import annotations

import sys
from pathlib import Path

import millstream as ms
from checkpoint import killed_query


def main(folder: Path, sink: str, *options: str) -> None:
    names = (path.name for path in folder.glob("checkpoint/manifests/*"))
    done = max((int(name) for name in names if name.isdigit()), default=0)  # there may be drafts
    query = killed_query.session_of("local", 0.02, quick=20 * done).sql(killed_query.SQL)
    named = ms.sink(sink, **dict(option.split("=", 1) for option in options))
    query.start(named, checkpoint=str(folder / "checkpoint")).wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
