"""Cases of what relations mean: streams, statements that make and change tables, a query, and the
answer that every engine must give; or why the query is refused.

    # title
    Quote (t BIGINT, symbol STRING) = [(1, 'ibm'), (4, 'sun')]     -- a stream, ordered by t
    CREATE TABLE Company …; INSERT INTO Company VALUES … EFFECTIVE AT 2;
    SELECT …
    ----
    the answer, or the error
    ====
"""

from __future__ import annotations

import ast
import datetime
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import millstream as ms

FOLDER = Path(__file__).parent / "cases"

ENGINES: dict[str, dict[str, Any]] = {
    "reference": {"engine": "reference"},
    "local": {"engine": "local"},
    "intervals": {"engine": "local", "approach": "intervals"},
    "signed": {"engine": "local", "approach": "signed"},
    "as bound": {"engine": "local", "optimize": False},
}

_STREAM = re.compile(r"^(\w+) \((.*)\) = (\[.*\])$", re.M)


@dataclass(frozen=True)
class Case:
    file: Path
    title: str
    text: str
    answer: str

    def __str__(self) -> str:
        return f"{self.file.stem}: {self.title}"

    def session(self, **options: Any) -> tuple[ms.Session, ms.Query]:
        """A session with the streams and tables of the case, and its query."""
        session = ms.Session(**options)
        for name, columns, rows in _STREAM.findall(self.text):
            declared = dict(map(str.split, columns.split(", ")))
            data = [tuple(map(_read, row, declared.values())) for row in ast.literal_eval(rows)]
            session.stream(name, data, next(iter(declared)), schema=declared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ms.MillstreamWarning)
            return session, session.sql(_STREAM.sub("", self.text).strip())

    def given(self, **options: Any) -> str:
        try:
            _, query = self.session(**options)
            return shown(query.run())
        except ms.MillstreamError as error:
            told = error.diagnostic
            return f"error: {told.message}" + (f"\nhelp: {told.help}" if told.help else "")


def _read(value: Any, kind: str) -> Any:
    return datetime.datetime.fromisoformat(value) if kind == "TIMESTAMP" else value


def shown(table: pa.Table) -> str:
    rows = [[_value(value) for value in row.values()] for row in table.to_pylist()]
    widths = [max(map(len, column)) for column in zip(table.column_names, *rows, strict=True)]
    return "\n".join(
        " | ".join(map(str.ljust, row, widths)).rstrip() for row in [table.column_names, *rows]
    )


def _value(value: object) -> str:
    return "∞" if value == 2**63 - 1 else "NULL" if value is None else str(value)


def cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.case")):
        for part in file.read_text(encoding="utf-8").split("====\n"):
            head, _, answer = part.strip().partition("\n----")
            title, _, text = head.partition("\n")
            yield Case(file, title.removeprefix("# "), text, answer.strip())


def accept(case: Case, answer: str) -> None:
    written = case.file.read_text(encoding="utf-8")
    before, mark, rest = written.partition(f"# {case.title}\n")
    text, _, after = rest.partition("\n----\n")
    _, end, others = after.partition("====\n")
    case.file.write_text(f"{before}{mark}{text}\n----\n{answer}\n{end}{others}", encoding="utf-8")
