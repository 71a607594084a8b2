"""The input of a command: files of statements, parameters, and the session in which they run."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.model.errors import MillstreamError
from millstream.model.modes import EngineName

if TYPE_CHECKING:
    from millstream.api.session import Session


class UsageError(MillstreamError):
    """A usage error: the command line itself is wrong."""


def statements_in(file: str) -> tuple[str, str]:
    """The text of a file, or of standard input for `-`, and its name in messages."""
    try:
        read = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return read.decode("utf-8"), "<stdin>" if file == "-" else file
    except UnicodeDecodeError:
        raise UsageError(f'"{file}" is not a text file in UTF-8') from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f'"{file}" cannot be read: {reason.lower()}') from None


def parameters_of(given: Iterable[str]) -> dict[str, object]:
    """Parse `name=value`: numbers, true, false and null have their types, anything else and quoted
    values are strings.

    >>> parameters_of(["least=10", "rate=0.5", "city=Oslo", "zip='0150'", "all=true", "none=null"])
    {'least': 10, 'rate': 0.5, 'city': 'Oslo', 'zip': '0150', 'all': True, 'none': None}
    """
    parameters: dict[str, object] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name.isidentifier():
            raise UsageError(f'"{text}" is not a parameter', help="write --param name=value")
        parameters[name] = _value(value)
    return parameters


def _value(text: str) -> object:
    words: dict[str, object] = {"true": True, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    for number in (int, float):
        try:
            return number(text) if text.isascii() and "_" not in text else text
        except ValueError:
            continue
    return text


@contextmanager
def warnings_told() -> Iterator[None]:
    """Print warnings about statements to stderr, even if an error follows."""
    from millstream.model.errors import MillstreamWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                if issubclass(warning.category, MillstreamWarning):
                    print(warning.message, file=sys.stderr)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print warnings of running queries to stderr as they occur, without the position in our code
    and without the help, which is for programs."""
    from millstream.model.errors import MillstreamWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", MillstreamWarning)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, MillstreamWarning):
                print(str(message).partition("\nhelp: ")[0], file=sys.stderr)
            else:
                others(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def bound(file: str, engine: EngineName, parameters: Iterable[str]) -> tuple[Session, list[Any]]:
    """A session with the bound statements of a file, and their results."""
    text, name = statements_in(file)
    values = parameters_of(parameters)
    _refuse_unused(text, values)
    return standing(text, name, engine, values)


def standing(
    text: str, name: str, engine: EngineName, values: dict[str, object]
) -> tuple[Session, list[Any]]:
    from millstream.api.session import Session

    session = Session(engine)
    session._state.kept.starts = False  # the command starts them
    with warnings_told():
        return session, session.run_statements(text, name, values)


def _refuse_unused(text: str, values: dict[str, object]) -> None:
    """Refuse parameters that no statement has: a misspelt name would be ignored."""
    from millstream.model.errors import did_you_mean
    from millstream.sql.tokens import tokenize

    try:
        used = [after.text for mark, after in pairwise(tokenize(text)) if mark.word == ":"]
    except MillstreamError:  # reported with its position when the text is parsed
        return
    for name in values:
        if name not in used:
            hint = did_you_mean(name, used) or "leave it out"
            raise UsageError(f'no statement has a parameter ":{name}"', help=hint)
