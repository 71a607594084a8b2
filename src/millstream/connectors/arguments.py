"""Reads and checks the arguments of `SOURCE name(value, option => value, …)`.

Errors name the stream and the connector and are raised before anything is opened.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.catalog import Option, Stream
from millstream.model.durations import length
from millstream.model.errors import DataError, MillstreamError, one_of
from millstream.model.time import TIMESTAMP_TIME


class Arguments:
    """The arguments of a stream's connector by name; the first may be given by position. NULL
    counts as not given."""

    def __init__(self, stream: Stream, names: Sequence[str]) -> None:
        assert stream.connector is not None
        self._stream = f'{stream.kind} "{stream.name}"'
        self._connector = stream.connector.name.text.lower()
        options = [(name.lower(), value) for name, value in stream.connector.options]
        for name, _ in options:
            if name not in names:
                raise self.error(f'has no option "{name}"', one_of(name, names, "option"))
        positional = list(zip(names[:1], stream.connector.values, strict=False))
        if len(positional) < len(stream.connector.values):
            raise self.error("takes one value without a name", "write the others as name => value")
        if positional and any(name == names[0] for name, _ in options):
            raise self.error(f'is given "{names[0]}" twice')
        given = [*positional, *options]
        self._given = {name: value for name, value in given if value is not None}

    def error(self, message: str, help: str | None = None) -> DataError:
        return DataError(f'{self._stream}: connector "{self._connector}" {message}', None, help)

    def _wrong(self, name: str, help: str) -> DataError:
        return self.error(f'cannot use {self._given[name]!r} for "{name}"', help)

    def has(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str, default: str | None = None) -> str:
        value = self._given.get(name, default)
        if value is None:
            raise self.error(f'needs "{name}"', f"write {self._connector}({name} => '…')")
        if not isinstance(value, str):
            raise self._wrong(name, "write a quoted string")
        return value

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        """One of `choices`; the first is the default."""
        value = self.text(name, choices[0])
        if value.lower() not in choices:
            raise self._wrong(name, one_of(value, choices, "choice") or "")
        return value.lower()

    def flag(self, name: str, default: bool) -> bool:
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "write TRUE or FALSE")
        return value

    def whole(self, name: str, least: int, most: int, default: int | None = None) -> int:
        value = self._given.get(name, default)
        if value is None:
            raise self.error(f'needs "{name}"', f"write {self._connector}({name} => …)")
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(name, f"write a whole number from {least} to {most}")
        return value

    def positive(self, name: str, default: float) -> float:
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise self._wrong(name, "write a number above 0")
        return value

    def seconds(self, name: str, default: str) -> float:
        """A duration such as '5 seconds'."""
        value: Option = self._given.get(name, default)
        try:
            found = length(value, TIMESTAMP_TIME, name) if isinstance(value, str) else None
        except MillstreamError:
            found = None
        if not found:
            raise self._wrong(name, "write a duration such as '5 seconds'")
        return found / 1e6
