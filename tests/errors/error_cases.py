"""Tables of statements and the whole messages that they give, as text files.

A case is a title after `# `, its parameters if it has any (`parameters: {…}`), the statement,
`----` and the message; `====` stands between cases. Every case begins in a new session that has
the streams of `streams.sql`.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import millstream as ms

HERE = Path(__file__).parent
STREAMS = (HERE / "streams.sql").read_text(encoding="utf-8")

_PARAMETERS = "parameters: "


@dataclass(frozen=True)
class Case:
    title: str
    statement: str
    message: str
    parameters: str = "{}"

    def __str__(self) -> str:
        given = "" if self.parameters == "{}" else f"{_PARAMETERS}{self.parameters}\n"
        return f"# {self.title}\n{given}{self.statement}\n----\n{self.message}\n"


def read_cases(file: str) -> list[Case]:
    text = (HERE / file).read_text(encoding="utf-8")
    return [_read_case(part) for part in text.split("====\n")]


def _read_case(text: str) -> Case:
    given, _, message = text.partition("\n----\n")
    title, _, statement = given.partition("\n")
    parameters = "{}"
    if statement.startswith(_PARAMETERS):
        first, _, statement = statement.partition("\n")
        parameters = first.removeprefix(_PARAMETERS)
    return Case(title.removeprefix("# "), statement, message.rstrip("\n"), parameters)


def write_cases(file: str, cases: list[Case]) -> None:
    text = "====\n".join(map(str, cases))
    (HERE / file).write_text(text, encoding="utf-8")


def accept(file: str, case: Case, message: str) -> None:
    """Write the message of one case into its file."""
    cases = read_cases(file)
    changed = [replace(c, message=message) if c.title == case.title else c for c in cases]
    write_cases(file, changed)


def new_session(strict: bool = False) -> ms.Session:
    session = ms.Session(strict=strict)
    session._state.kept.starts = False  # there is nothing to read
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.sql(STREAMS)
    return session


def message_of(case: Case, strict: bool = False) -> str:
    """What the user sees: the warnings in order and then the error, if there is one."""
    session = new_session(strict)
    shown = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            session.sql(case.statement, **ast.literal_eval(case.parameters))
        except ms.MillstreamError as error:
            shown = [str(error)]
    return "\n\n".join([*(str(warning.message) for warning in caught), *shown])
