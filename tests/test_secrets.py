"""Secrets work and are shown nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import millstream as ms
from millstream.runtime.outputs import ErrorRow
from millstream.sql.parser import parse

PASSWORD = "hunter2-and-more"


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session.stream("S", [{"t": 1, "key": PASSWORD}, {"t": 2, "key": "x"}], time="t")
    return session


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_a_secret_parameter_works_and_is_masked(engine: str) -> None:
    session = ms.Session(engine=engine)
    session.stream("S", [{"t": 1, "key": PASSWORD}, {"t": 2, "key": "x"}], time="t")
    query = session.sql(
        "SELECT t FROM S WHERE key = :password OR upper(key) = upper(:password || '')",
        password=ms.secret(PASSWORD),
    )
    assert query.run()["t"].to_pylist() == [1]
    shown = [
        query.explain(),
        query.explain(verbose=True),
        query.explain(format="json"),
        repr(query),
        repr(query.plan),
        str(session.sql("SHOW QUERIES").to_pylist()),
    ]
    for text in shown:
        assert PASSWORD not in text
        assert PASSWORD.upper() not in text


def test_rows_that_fail_on_a_secret(session: ms.Session) -> None:
    query = session.sql("SELECT CAST(CONCAT(:p, t) AS INT) AS n FROM S", p=ms.secret(PASSWORD))
    with pytest.warns(ms.RowErrorWarning):
        assert query.run().num_rows == 0
    assert [message for _, message in query.errors] == [
        'cannot cast "***1" to INT',
        'cannot cast "***2" to INT',
    ]


def test_secrets_of_a_sink_are_masked(session: ms.Session) -> None:
    url = f"postgresql://ada:{PASSWORD}@127.0.0.1:1/sales"
    query = session.sql("INSERT INTO postgres(url => :url, table => 'x') SELECT t FROM S", url=url)
    assert "postgresql://ada:***@127.0.0.1:1/sales" in query.text
    assert PASSWORD not in str(session.sql("SHOW QUERIES").to_pylist())
    with pytest.raises(ms.MillstreamError) as error:
        query.run()  # nothing listens there
    assert PASSWORD not in str(error.value)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ("password => 'abcdef'", "password => '***'"),
        ("api_key => 'abcdef', topic => 'bids'", "api_key => '***', topic => 'bids'"),
        ("'host=db password=abcdef user=ada'", "'host=db password=*** user=ada'"),
        ("'https://ada:abcdef@host/x'", "'https://ada:***@host/x'"),
        ("path => 'a/b'", "path => 'a/b'"),
    ],
)
def test_options_of_connectors(options: str, shown: str) -> None:
    (statement,) = parse(f"CREATE STREAM S (a INT) SOURCE own({options})")
    assert str(statement) == f"CREATE STREAM S (a INT) SOURCE own({shown})"


def test_the_connector_gets_the_value() -> None:
    session = ms.Session(engine="local")
    given = []
    session.source("own", lambda **options: given.append(options) or [{"a": 1, "t": 1}])
    session.sql(
        "CREATE STREAM S (a INT, t BIGINT) SOURCE own(token => :token) ORDERED BY t",
        token=ms.secret(PASSWORD),
    )
    assert session.sql("SELECT a FROM S").run().num_rows == 1
    assert given == [{"token": PASSWORD}]


def test_messages_that_others_wrote() -> None:
    ms.secret(PASSWORD)
    error = ms.QueryError(f"cannot connect with {PASSWORD}", help=f"is {PASSWORD} right?")
    assert PASSWORD not in str(error) + str(error.args)
    assert PASSWORD not in ErrorRow("q", f"no {PASSWORD}").message


def test_a_secret_survives_pickling_and_does_not_print() -> None:
    value = pickle.loads(pickle.dumps(ms.secret(PASSWORD)))
    assert value == PASSWORD
    assert repr(value) == "secret('***')"
    assert f"{[value]}" == "[secret('***')]"


def test_a_checkpoint_tells_nothing(session: ms.Session, tmp_path: Path) -> None:
    """The physical plan has the value, which it needs; what the query is called does not."""
    query = session.sql("SELECT t FROM S WHERE key = :p", p=ms.secret(PASSWORD))
    with query.start(checkpoint=str(tmp_path / "c")) as running:
        running.wait(timeout=60)
    assert PASSWORD.encode() not in (tmp_path / "c" / "query").read_bytes()


def test_a_secret_is_a_text() -> None:
    with pytest.raises(TypeError, match="a secret is a string, not int"):
        ms.secret(5)  # type: ignore[arg-type]
