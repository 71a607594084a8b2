"""Sends errors between processes as plain values, and raises them again."""

from __future__ import annotations

from typing import Any

from millstream.checkpoint.files import CheckpointError
from millstream.model.errors import (
    BindError,
    CatalogError,
    DataError,
    MillstreamError,
    ParseError,
    QueryError,
    Span,
)

_KINDS: dict[str, type[MillstreamError]] = {
    "error": MillstreamError,
    "parse": ParseError,
    "bind": BindError,
    "catalog": CatalogError,
    "data": DataError,
    "query": QueryError,
    "checkpoint": CheckpointError,
}
_NAMES = {made: kind for kind, made in _KINDS.items()}


class ProcessFailure(RuntimeError):
    """An error of another process that is not a MillstreamError."""


def failure_data(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, MillstreamError):
        return {"kind": "failure", "message": f"{type(error).__name__}: {error}"}
    told = error.diagnostic
    return {
        "kind": next(_NAMES[made] for made in type(error).__mro__ if made in _NAMES),
        "message": told.message,
        "span": None if told.span is None else [told.span.start, told.span.end],
        "help": told.help,
        "text": error.text,
        "file": error.file,
    }


def failure_of(data: dict[str, Any]) -> Exception:
    if data["kind"] not in _KINDS:
        return ProcessFailure(data["message"])
    span = None if data["span"] is None else Span(*data["span"])
    error = _KINDS[data["kind"]](data["message"], span, data["help"])
    error.text, error.file = data["text"], data["file"]
    return error
