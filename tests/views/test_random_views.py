"""Views of random queries are the snapshots of their answers, and whole answers are those.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

import warnings

import pyarrow as pa
from hypothesis import given, settings

import millstream as ms
from effort import examples
from oracle.judged_streams import JudgedStream, session_of
from oracle.query_generator import cases

drawn = settings(max_examples=examples(60))


def quiet(session: ms.Session, text: str) -> ms.Query:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query: ms.Query = session.sql(text)
        return query


@drawn
@given(cases())
def test_a_view_is_the_snapshot(case: tuple[list[JudgedStream], str]) -> None:
    streams, text = case
    session = session_of(streams)
    asked = quiet(session, text)
    timed = pa.types.is_timestamp(asked.plan.domain.type)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        retain = "RETAIN 3000 WEEKS" if timed else "RETAIN 1000000000000"
        view = session.sql(f"CREATE MATERIALIZED VIEW answer AS {text} {retain}")
    assert view.wait(60)
    changes = quiet(session, f"{text} EMIT CHANGES").run()["at"].cast(pa.int64()).to_pylist()
    history = view.history()
    starts, ends = (
        history[name].cast(pa.int64()).to_numpy() for name in ("valid_from", "valid_to")
    )
    for at in {instant for change in changes for instant in (change - 1, change)}:
        wanted = asked.snapshot(at)
        assert repr(view.as_of(at).to_pylist()) == repr(wanted.to_pylist()), (text, at)
        assert ((starts <= at) & (at < ends)).sum() == wanted.num_rows


@drawn
@given(cases())
def test_whole_answers_are_those_of_the_reference(case: tuple[list[JudgedStream], str]) -> None:
    streams, text = case
    local, reference = session_of(streams), session_of(streams, engine="reference")
    every = "1 SECOND" if _is_timed(local, text) else "3"
    whole = f"{text} EMIT EVERY {every}"
    ours, defined = (quiet(session, whole).run() for session in (local, reference))
    assert repr(ours.to_pylist()) == repr(defined.to_pylist()), text


def _is_timed(session: ms.Session, text: str) -> bool:
    return bool(pa.types.is_timestamp(quiet(session, text).plan.domain.type))
