"""Signatures: parts of queries have the same one if and only if they compute the same, whatever
their names; explain and metrics name operators by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.gain import QUERIES, streams
from hypothesis import given, settings

import millstream as ms
from conftest import Comparison
from effort import examples
from millstream.fragments.cutting import fragments_of
from millstream.physical import plan_data
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.signature import Signatures, nodes_of, short
from oracle.judged_streams import JudgedStream, session_of
from oracle.query_generator import cases

COLUMNS = {"t": "TIMESTAMP", "k": "INT", "v": "DOUBLE", "name": "STRING"}


def session_with(**options: Any) -> ms.Session:
    session = ms.Session(**{"engine": "local", **options})
    for name in "rs":
        session.feed(name, COLUMNS, time="t")
    return session


def signature(text: str, session: ms.Session | None = None) -> str:
    session = session or session_with()
    query = session.sql(text)
    told: str = json.loads(query.explain(format="json", physical=True))["physical"]["id"]
    return told


WINDOW = "WINDOW(RANGE 10 MINUTES)"
ONE = f"SELECT a.k, SUM(a.v) AS total FROM s AS a {WINDOW} WHERE a.v > 1.5 GROUP BY a.k"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ONE, f"SELECT s.k AS key, SUM(s.v) FROM s {WINDOW} WHERE s.v > 1.5 GROUP BY s.k"),
        (ONE, f"SELECT k, SUM(v) AS sum FROM s {WINDOW} WHERE v > 1.5 GROUP BY k"),
        (
            f"SELECT a.v FROM s AS a {WINDOW} JOIN r AS b {WINDOW} ON a.k = b.k",
            f"SELECT x.v FROM s AS x {WINDOW} JOIN r AS y {WINDOW} ON x.k = y.k",
        ),
        ("SELECT DISTINCT k FROM s WINDOW(RANGE 60 SECONDS)",
         "SELECT DISTINCT q.k AS other FROM s q WINDOW(RANGE 1 MINUTE)"),
    ],
)  # fmt: skip
def test_names_do_not_matter(one: str, other: str) -> None:
    assert signature(one) == signature(other)


@pytest.mark.parametrize(
    "other",
    [
        ONE.replace("FROM s", "FROM r"),
        ONE.replace("10 MINUTES", "11 MINUTES"),
        ONE.replace("10 MINUTES", "10 MINUTES SLIDE 10 MINUTES"),
        ONE.replace("1.5", "1.25"),
        ONE.replace("a.v > 1.5", "a.v >= 1.5"),
        ONE.replace("a.v > 1.5", "a.v > 1.5 AND a.k > 0"),
        ONE.replace("SUM", "AVG"),
        ONE.replace("SUM(a.v)", "SUM(a.k)"),
        ONE.replace("SUM(a.v)", "SUM(DISTINCT a.v)"),
        ONE.replace("GROUP BY a.k", "GROUP BY a.k HAVING SUM(a.v) > 0"),
        f"SELECT a.name, SUM(a.v) FROM s AS a {WINDOW} WHERE a.v > 1.5 GROUP BY a.name",
        f"SELECT SUM(a.v), a.k FROM s AS a {WINDOW} WHERE a.v > 1.5 GROUP BY a.k",
        ONE + " EMIT CHANGES",
    ],
)
def test_what_is_computed_does(other: str) -> None:
    assert signature(ONE) != signature(other)


def test_which_side_a_column_is_of() -> None:
    text = f"SELECT a.k FROM s AS a {WINDOW} JOIN s AS b {WINDOW} ON a.k = b.k WHERE %s.v > 1"
    assert signature(text % "a") != signature(text % "b")


def test_types_of_literals_matter() -> None:
    texts = [f"SELECT {value} AS x FROM s" for value in ("1", "1.0", "'1'", "TRUE", "1D", "NULL")]
    assert len({signature(text) for text in texts}) == len(texts)


def test_functions_are_known_by_their_code() -> None:
    def with_function(change: int) -> ms.Session:
        session = session_with()

        def moved(column: pa.Array) -> pa.Array:
            return pa.array([None if v is None else v + change for v in column.to_pylist()])

        session.function("moved", moved, returns="INT")
        return session

    text = "SELECT moved(k) AS m FROM s"
    assert signature(text, with_function(1)) == signature(text, with_function(1))
    assert signature(text, with_function(1)) != signature(text, with_function(2))


def test_calls_that_draw_differ_within_a_plan() -> None:
    session = session_with()
    plan = session.sql(
        "SELECT rand() AS x FROM s UNION ALL SELECT rand() AS x FROM s"
    ).physical_plan
    signatures = Signatures()
    left, right = plan.inputs
    assert signatures[left] != signatures[right]
    assert signature("SELECT rand() AS x FROM s") == signatures[left]


def test_a_stream_made_anew_with_other_columns_is_another() -> None:
    session, other = session_with(), ms.Session(engine="local")
    other.feed("s", COLUMNS | {"more": "INT"}, time="t")
    text = "SELECT COUNT(*) AS n FROM s WINDOW(RANGE 1 SECOND)"
    assert signature(text, session) != signature(text, other)


def test_a_new_field_with_a_default_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Later(TimeWindow):
        jitter: int = 0

    plan = session_with().sql("SELECT k FROM s WINDOW(RANGE 9 SECONDS)").physical_plan
    (window,) = (node for node in nodes_of(plan) if isinstance(node, TimeWindow))
    later = Later(window.input, window.size, window.slide, window.granule)
    monkeypatch.setitem(plan_data._KINDS, Later, plan_data.kind_of(window))
    assert Signatures()[later] == Signatures()[window]
    assert Signatures()[replace(later, jitter=1)] != Signatures()[window]


# --- the same everywhere and for ever -------------------------------------------------------------


def listed() -> str:
    """The signatures of the operators of many queries, from the root down."""
    session = ms.Session(engine="local")
    for name, table in streams().items():
        session.stream(name, table, time="t", unit="MICROSECONDS")
    lines = []
    for title, text in QUERIES.items():
        plan = session.sql(text).physical_plan
        signatures = Signatures()
        lines.append(title)
        lines += [f"  {signatures[n]} {type(n).__name__}" for n in reversed([*nodes_of(plan)])]
    return "\n".join(lines)


def test_releases_agree(matches_file: Comparison) -> None:
    """A signature that changes makes old checkpoints unreadable: see docs/decisions."""
    matches_file(Path(__file__).with_name("signatures.txt"), listed())


@pytest.mark.slow
def test_processes_agree() -> None:
    code = "from physical.test_signature import listed; print(listed())"
    tests = Path(__file__).parents[1]
    paths = [str(tests), str(tests.parent), *sys.path]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == listed()


@settings(max_examples=examples(100))
@given(case=cases())
def test_plans_carried_as_data_keep_them(case: tuple[list[JudgedStream], str]) -> None:
    judged, text = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = session_of(judged, []).sql(text).physical_plan
    signatures = Signatures()
    back = plan_data.plan_of(json.loads(json.dumps(plan_data.plan_data(plan))))
    again = Signatures()
    pairs = zip(nodes_of(plan), nodes_of(back), strict=True)
    assert all(signatures[one] == again[other] for one, other in pairs)
    known = {signatures[node] for node in nodes_of(plan)}
    for fragment in fragments_of(plan, signatures):
        assert {*fragment.signatures[:-1]} <= known


# --- explain and metrics --------------------------------------------------------------------------


def ids_of(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if node["operator"] != "Shared":
        yield node["id"], node["operator"]
    for child in node.get("inputs", ()):
        yield from ids_of(child)


def explained_ids(query: Any) -> set[tuple[str, str]]:
    told = json.loads(query.explain(format="json", physical=True, costs=True))
    assert {*ids_of(told["physical"])} == {*ids_of(told["costs"]["plan"])}
    return {*ids_of(told["physical"])}


SHARED = (
    f"WITH w AS (SELECT k, SUM(v) AS total FROM s {WINDOW} GROUP BY k) "
    "SELECT a.k, b.total FROM w AS a JOIN w AS b ON a.k = b.k WHERE a.total > 0"
)
STARTED = [
    "SELECT k FROM s WHERE v > 1",
    ONE,
    f"SELECT a.v FROM s AS a {WINDOW} JOIN s AS b {WINDOW} ON a.k = b.k",
    f"SELECT a.v FROM s AS a {WINDOW} JOIN s AS b {WINDOW} ON a.k = b.v",
    f"SELECT k FROM s {WINDOW} UNION ALL SELECT k FROM s {WINDOW}",
    f"SELECT k FROM s {WINDOW} WHERE k NOT IN (SELECT k FROM r {WINDOW})",
    SHARED,
]


def check_metrics(session: ms.Session, text: str, **options: Any) -> list[str]:
    """The operators that metrics tell of."""
    times = [datetime(2026, 1, 1, 0, 0, i) for i in range(9)]
    rows = [{"t": t, "k": t.second % 3, "v": float(t.second), "name": "x"} for t in times]
    for name in "rs":
        table = pa.Table.from_pylist(rows)
        session.stream(name, table, time="t")
    query = session.sql(text)
    with query.start(lambda table, batch: None, **options) as running:
        assert running.wait(300)
        told = running.metrics.operators
    assert {(each.id, each.name) for each in told} == explained_ids(query)
    return [each.name for each in told]


@pytest.mark.parametrize("text", STARTED)
@pytest.mark.parametrize("kept", [False, True])
def test_metrics_name_operators_of_explain(text: str, kept: bool, tmp_path: Path) -> None:
    session = ms.Session(engine="local")
    check_metrics(session, text, **({"checkpoint": str(tmp_path / "c")} if kept else {}))


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("text", [ONE, STARTED[3], SHARED])
def test_metrics_name_operators_of_explain_on_spark(text: str) -> None:
    check_metrics(ms.Session(engine="spark"), text)


def test_equal_parts_run_once() -> None:
    text = f"SELECT a.v FROM s AS a {WINDOW} JOIN s AS b {WINDOW} ON a.k = b.k"
    names = check_metrics(ms.Session(engine="local"), text)
    assert names.count("Source") == names.count("TimeWindow") == 1


def test_the_text_shows_the_first_digits() -> None:
    query = session_with().sql("SELECT k FROM s WHERE v > 1")
    ids = {short(id) for id, _ in explained_ids(query)}
    text = query.explain(physical=True).split("\n\n")[1]
    assert {line.rpartition("id=")[2] for line in text.splitlines()} == ids
