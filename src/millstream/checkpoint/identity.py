"""The identity of a checkpoint: its query, the columns of its streams and its functions.

One query cannot use the state of another, so any difference is reported before anything is read.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.files import CheckpointError, Files
from millstream.checkpoint.records import sealed, unsealed
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.logical.expressions import AggregateCall, Call
from millstream.logical.plan import Plan, Source, expressions
from millstream.logical.plan_data import plan_data
from millstream.model.masking import MASK
from millstream.model.modes import Emit
from millstream.model.release import RELEASE
from millstream.model.types import sql_name

FORMAT = 5  # of all files of a checkpoint
_NAME, _PLAN, _TOKEN = "query", "plan", "token"
_REMEDY = "use the version that wrote it, or start the query with a new checkpoint"


@dataclass(frozen=True)
class Identity:
    """Each part as text, so that messages can name the one that has changed."""

    query: str
    streams: Mapping[str, str]
    functions: Mapping[str, str]


def identity(
    plan: Plan,
    emit: Emit,
    functions: Mapping[str, UserFunction],
    aggregates: Mapping[str, UserAggregate],
) -> Identity:
    sources = {node.stream: node for node in plan.walk() if isinstance(node, Source)}
    streams = {name: _columns(source) for name, source in sorted(sources.items())}
    used = sorted(_called(plan) & {*functions, *aggregates})
    return Identity(
        json.dumps([_essence(plan_data(plan)), emit]),
        streams,
        {name: (functions.get(name) or aggregates[name]).digest for name in used},
    )


def _essence(data: Any) -> Any:
    """The identifying parts of a plan as data: no secrets, and only the names of sources, since
    their columns are kept separately."""
    match data:
        case {"is": "source"}:
            return {name: data[name] for name in ("is", "stream", "alias", "arrival")}
        case {"secret": _}:
            return {"secret": MASK}
        case dict():
            return {name: _essence(part) for name, part in data.items() if name != "nullable"}
        case list():
            return [_essence(part) for part in data]
    return data


def _columns(source: Source) -> str:
    columns = ", ".join(f"{field.name} {sql_name(field.type)}" for field in source.columns)
    return f"({columns}) {source.time.describe()}"


def _called(plan: Plan) -> set[str]:
    return {
        part.function
        for node in plan.walk()
        for part in expressions(node)
        if isinstance(part, Call | AggregateCall)
    }


def claim(files: Files, own: Identity, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Assign a new checkpoint to this query, or check that it belongs to it. Returns the physical
    plan that the checkpoint was started with, as data; the query keeps that plan even if another
    would be chosen today."""
    files.tidy()
    if files.names("manifests") or _exists(files, _NAME):
        _check(_json(files, _NAME), own)
        return _json(files, _PLAN)
    files.replace(_PLAN, sealed(json.dumps(plan).encode()))
    told = {"format": FORMAT, "version": RELEASE, **vars(own)}
    files.publish(_NAME, sealed(json.dumps(told).encode()))
    return plan


@contextmanager
def restoring(files: Files, what: str) -> Iterator[None]:
    """Translate errors raised while restoring part of a checkpoint."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        why = f"{what} of the checkpoint does not fit the query"
        raise unreadable(files, f"{why} ({type(error).__name__}: {error})") from error


def unreadable(files: Files, why: str) -> CheckpointError:
    """The error for a checkpoint of this format with content that is not known here."""
    version = _json(files, _NAME)["version"]
    return CheckpointError(
        f"{why}; it was written by version {version}, this is version {RELEASE}",
        help=_REMEDY,
    )


def token(files: Files) -> str:
    """A unique token of a checkpoint, drawn on first use."""
    if not _exists(files, _TOKEN):
        files.publish(_TOKEN, sealed(secrets.token_hex(8).encode()))
    return unsealed(_TOKEN, files.read(_TOKEN)).decode()


def _exists(files: Files, name: str) -> bool:
    try:
        files.read(name, 0, 1)
    except FileNotFoundError:
        return False
    return True


def _json(files: Files, name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(unsealed(name, _read(files, name)))
    return told


def _read(files: Files, name: str) -> bytes:
    try:
        return files.read(name)
    except FileNotFoundError:
        raise CheckpointError(
            f'the file "{name}" of the checkpoint is missing',
            help="restore the checkpoint's folder, or start the query with a new one",
        ) from None


def _check(told: Mapping[str, Any], own: Identity) -> None:
    if told.get("format") != FORMAT:
        version = f"version {told['version']}" if "version" in told else "an earlier version"
        raise CheckpointError(
            f"the checkpoint has format {told.get('format')} of {version}, but version {RELEASE} "
            f"reads format {FORMAT}",
            help=_REMEDY,
        )
    changed = list(_changes(told, own))
    if changed:
        raise CheckpointError(
            f"the checkpoint belongs to another query: {'; '.join(changed)}",
            help="start that query, or give this one its own checkpoint",
        )


def _changes(told: Mapping[str, Any], own: Identity) -> Iterable[str]:
    for name in sorted({*told["streams"]} | {*own.streams}):
        before, now = told["streams"].get(name), own.streams.get(name)
        if before != now:
            yield f'stream "{name}" was {before or "not read"} and is {now or "not read"}'
    for name in sorted({*told["functions"]} | {*own.functions}):
        if told["functions"].get(name) != own.functions.get(name):
            yield f'the function "{name}" or something it uses has changed'
    if told["query"] != own.query:
        yield "its plan has changed"
