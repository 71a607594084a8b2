"""Secrets: values that queries and connectors use and that are never shown.

`ms.secret("…")` marks a parameter. Connector options with names of secrets (`password`, `token`, …)
and passwords in URLs and connection strings are always secrets. Plans, SHOW, `explain`, `repr` and
all messages print `***` instead.

>>> secret("hunter2")
secret('***')
>>> shown("postgresql://ada:lovelace@db/sales"), shown("host=db password=lovelace")
('postgresql://ada:***@db/sales', 'host=db password=***')
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

_NAMES = re.compile(
    r"pass(word|wd|phrase)?$|pwd|secret|token|credential|(api|access|private|account)_?key",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(
    r"(?P<url>(?<=://)[^\s:/@]*:)(?P<one>[^\s/@]+)(?=@)"
    r"|(?P<key>\b(?:password|passwd|pwd|sslpassword)\s*=\s*)(?P<two>'[^']*'|[^\s;&]+)",
    re.IGNORECASE,
)

# What messages must not show. Very short values are not searched for: they occur in other words.
_known: set[str] = set()
_SHORTEST = 4


class Secret(str):
    """A string that works like any other but is not printed."""

    __slots__ = ()

    def __new__(cls, value: str) -> Secret:
        note(value)
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"secret('{MASK}')"

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (str(self),)


def secret(value: str) -> Secret:
    """Mark the value of a parameter: `session.sql(text, password=ms.secret("…"))`."""
    if not isinstance(value, str):
        raise TypeError(f"a secret is a string, not {type(value).__name__}")
    return Secret(value)


def note(value: str) -> None:
    """Register a string that messages must not show."""
    if len(value) >= _SHORTEST:
        _known.add(value)


def note_options(options: Iterable[tuple[str, object]]) -> None:
    """Register the secrets among the options of a connector, by name and value."""
    for name, value in options:
        if not isinstance(value, str):
            continue
        if is_secret_name(name):
            note(value)
        for match in _IN_TEXT.finditer(value):
            note((match["one"] or match["two"]).strip("'"))


def is_secret_name(name: str) -> bool:
    return _NAMES.search(name) is not None


def shown(text: str) -> str:
    """The text with its passwords masked."""
    return _IN_TEXT.sub(lambda match: (match["url"] or match["key"]) + MASK, text)


def masked(text: str) -> str:
    """The text with all registered secrets masked."""
    for value in sorted(_known, key=len, reverse=True) if _known else ():
        text = text.replace(value, MASK)
    return text
