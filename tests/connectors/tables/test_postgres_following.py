"""Tables of PostgreSQL followed by logical decoding: each transaction once, whatever happens."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from connectors.tables.followers import Bag, bag, contents, declared, following
from millstream.connectors.registry import table_source
from millstream.connectors.tables import followed_table, replication
from millstream.connectors.tables.table_source import TableChanges
from millstream.logical.catalog import ChangeMode, Table
from millstream.model import types
from millstream.model.errors import MillstreamError
from postgres_server import Server

psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")

pytestmark = pytest.mark.xdist_group("postgres")  # they share one server

COLUMNS = {"id": types.BIGINT, "name": types.STRING}


@pytest.fixture
def database(url: str) -> Iterator[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
        assert left_behind(connection) == (0, 0)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_table, "_LOOK_EVERY", 0.2)


def left_behind(connection: Any) -> tuple[int, int]:
    """Slots of the server end a moment after their connections."""
    query = "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database())"
    limit = time.monotonic() + 5
    while True:
        found: tuple[int, int] = connection.execute(
            f"{query}, (SELECT count(*) FROM pg_publication)"
        ).fetchone()
        if not found[0] or time.monotonic() > limit:
            return found
        time.sleep(0.02)


def table(url: str, columns: dict[str, pa.DataType] = COLUMNS, **more: Any) -> Table:
    return declared("postgres", columns, **{"url": url, "table": "t", "follow": "decoding", **more})


def message(declaration: Table) -> str:
    with pytest.raises(MillstreamError) as error:
        contents(declaration)
    return str(error.value).removeprefix("error: ")


def rows(database: Any, columns: str = "id, name") -> Bag:
    return Counter(database.execute(f"SELECT {columns} FROM t").fetchall())


def cut(database: Any) -> None:
    others = "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}")


# --- rows that change -----------------------------------------------------------------------------


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_each_transaction_is_one_change(url: str, database: Any, identity: str) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, other text, name text)")
    database.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    database.execute("INSERT INTO t SELECT i, 'o', 'n' FROM generate_series(1, 5) i")
    with following(table(url, key=("id",))) as follower:
        states = [rows(database)]
        assert follower.rows == states[0]
        for statements in (
            ["INSERT INTO t VALUES (6, 'o', NULL)"],
            ["UPDATE t SET name = 'm' WHERE id < 3"],
            ["UPDATE t SET id = id + 10", "UPDATE t SET name = name || 'x' WHERE id > 12"],
            ["DELETE FROM t WHERE id = 11", "INSERT INTO t VALUES (11, 'o', 'again')"],
            ["INSERT INTO t VALUES (1, '', '')", "UPDATE t SET id = 2 WHERE id = 1"],
            ["DELETE FROM t WHERE id IN (2, 12)", "UPDATE t SET id = 12 WHERE id = 13"],
            ["SAVEPOINT s", "DELETE FROM t", "ROLLBACK TO s", "DELETE FROM t WHERE id = 14"],
            ["DELETE FROM t"],
        ):
            with database.transaction():
                for statement in statements:
                    database.execute(statement)
            states.append(rows(database))
        follower.until_rows(states[-1])
        assert follower.history == states
        assert not follower.troubles


def test_what_changes_nothing_is_no_change(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, other text, name text)")
    database.execute("CREATE TABLE another (x integer)")
    database.execute("INSERT INTO t VALUES (1, 'a', 'b')")
    with following(table(url)) as follower:
        database.execute("UPDATE t SET other = 'c', name = 'b'")
        database.execute("INSERT INTO another VALUES (1)")
        with database.transaction():
            database.execute("INSERT INTO t VALUES (2)")
            database.execute("DELETE FROM t WHERE id = 2")
        database.execute("INSERT INTO t VALUES (3)")
        follower.until_rows(rows(database))
        assert len(follower.history) == 2


def test_rows_that_are_there_several_times(url: str, database: Any) -> None:
    """They need no key where changes tell all of a row."""
    database.execute("CREATE TABLE t (id integer, name text, more text)")
    database.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    database.execute("INSERT INTO t VALUES (1, 'a', 'x'), (1, 'a', 'x'), (1, 'a', 'y')")
    database.execute("INSERT INTO t VALUES (2)")
    one = "ctid = (SELECT min(ctid) FROM t WHERE id = 1)"
    with following(table(url)) as follower:
        states = [rows(database)]
        for statement in (
            f"DELETE FROM t WHERE {one}",
            f"UPDATE t SET name = NULL WHERE {one}",
            "INSERT INTO t SELECT * FROM t",
            "UPDATE t SET id = 3 WHERE name IS NULL",
        ):
            database.execute(statement)
            states.append(rows(database))
        follower.until_rows(states[-1])
        assert follower.history == states


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_long_values_that_do_not_change(url: str, database: Any, identity: str) -> None:
    """PostgreSQL does not send them again, also where rows get another key."""
    database.execute("CREATE TABLE t (id text PRIMARY KEY, n integer, name text)")
    database.execute("ALTER TABLE t ALTER name SET STORAGE EXTERNAL, ALTER id SET STORAGE EXTERNAL")
    database.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    long = "repeat(i::text, 10000)"
    database.execute(f"INSERT INTO t SELECT i, i, {long} FROM generate_series(1, 4) i")
    columns = {"n": types.INT, "name": types.STRING, "id": types.STRING}
    with following(table(url, columns, required=("name",))) as follower:
        states = [rows(database, "n, name, id")]
        for statements in (
            ["UPDATE t SET n = n + 1"],
            ["UPDATE t SET id = '9' WHERE id = '1'"],
            [
                "UPDATE t SET n = 0 WHERE id = '2'",
                "UPDATE t SET name = repeat('x', 9999) WHERE id = '3'",
                "UPDATE t SET n = 5, id = '7' WHERE id IN ('2')",
                "UPDATE t SET n = 6 WHERE id IN ('7', '3')",
                "UPDATE t SET id = '2' WHERE id = '4'",
            ],
            ["UPDATE t SET id = repeat('abcde', 500)  WHERE id = '3'"],
            ["UPDATE t SET n = 8"],
        ):
            with database.transaction():
                for statement in statements:
                    database.execute(statement)
            states.append(rows(database, "n, name, id"))
        follower.until_rows(states[-1])
        assert follower.history == states


def test_what_tells_rows_apart_need_not_be_declared(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (a integer, b text, name text, UNIQUE (b, a))")
    database.execute("ALTER TABLE t ALTER a SET NOT NULL, ALTER b SET NOT NULL")
    database.execute("ALTER TABLE t REPLICA IDENTITY USING INDEX t_b_a_key")
    with following(table(url, {"NAME": types.STRING})) as follower:
        for statement in (
            "INSERT INTO t VALUES (1, 'x', 'n'), (1, 'y', 'n'), (2, 'x', 'm')",
            "UPDATE t SET name = 'o' WHERE b = 'x'",
            "DELETE FROM t WHERE a = 1 AND b = 'y'",
        ):
            database.execute(statement)
            follower.until_rows(rows(database, "name"))


def test_many_rows(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    with following(table(url)) as follower:
        database.execute("INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 20000) i")
        database.execute("UPDATE t SET name = name || 'x' WHERE id % 2 = 0")
        database.execute("DELETE FROM t WHERE id % 3 = 0")
        follower.until_rows(rows(database))
        assert [state.total() for state in follower.history] == [0, 20000, 20000, 13334]


# --- random transactions --------------------------------------------------------------------------


class Accounts:
    """Transactions at random, in each of which the balances stay 0 in sum."""

    def __init__(self, database: Any, seed: int, truncates: bool = True) -> None:
        self.database = database
        self.truncates = truncates
        self.choose = random.Random(seed)
        self.states: list[Bag] = []

    def transaction(self) -> None:
        with self.database.transaction():
            for _ in range(self.choose.randrange(1, 5)):
                self._statement()
        self.note()

    def note(self) -> None:
        state = rows(self.database, "id, balance")
        if self.states[-1:] != [state]:
            self.states.append(state)

    def _statement(self) -> None:
        one, other = self.choose.sample(range(30), 2)
        amount = self.choose.randrange(100)
        kind = self.choose.random()
        execute = self.database.execute
        if kind < 0.3:
            execute("INSERT INTO t VALUES (%s, 0) ON CONFLICT DO NOTHING", [one])
        elif kind < 0.6:
            if rows(self.database, "id").keys() >= {(one,), (other,)}:
                execute("UPDATE t SET balance = balance - %s WHERE id = %s", [amount, one])
                execute("UPDATE t SET balance = balance + %s WHERE id = %s", [amount, other])
        elif kind < 0.75:
            execute("DELETE FROM t WHERE id = %s AND balance = 0", [one])
        elif kind < 0.97:
            execute(
                "UPDATE t SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM t WHERE id = %s)",
                [one, other, one],
            )
        elif self.truncates and self.choose.random() < 0.3:
            execute("TRUNCATE t")


BALANCES = {"id": types.INT, "balance": types.BIGINT}


@pytest.mark.parametrize("seed", range(3))
def test_random_transactions(url: str, database: Any, seed: int) -> None:
    """Every state comes, in order."""
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, balance bigint)")
    accounts = Accounts(database, seed, truncates=False)
    with following(table(url, BALANCES, key=("id",))) as follower:
        accounts.note()
        for _ in range(200):
            accounts.transaction()
        follower.until_rows(accounts.states[-1])
        assert follower.history == accounts.states


@pytest.mark.parametrize("seed", range(3))
def test_random_transactions_and_cuts(url: str, database: Any, seed: int) -> None:
    """Some states come, in order."""
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, balance bigint)")
    accounts = Accounts(database, seed)
    with following(table(url, BALANCES, key=("id",))) as follower:
        accounts.note()
        for number in range(300):
            accounts.transaction()
            if number % 100 == 50:
                cut(database)
        follower.until_rows(accounts.states[-1])
        check_history(follower.history, accounts.states)


def check_history(history: list[Bag], states: list[Bag]) -> None:
    """All that the table has been for us, it has been, in that order."""
    place = 0
    for state in history:
        assert sum(balance for _, balance in state.elements()) == 0
        place = states.index(state, place)


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_server_that_is_restarted(url: str, postgres_server: Server, mode: str) -> None:
    database = psycopg.connect(url, autocommit=True)
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, balance bigint)")
    accounts = Accounts(database, 7)
    accounts.note()
    with following(table(url, BALANCES)) as follower:
        for _ in range(2):
            for _ in range(30):
                accounts.transaction()
            database.close()
            postgres_server.stop(mode)
            try:
                follower.until_trouble("PostgreSQL cannot be reached")
                assert follower.rows in accounts.states
            finally:
                postgres_server.start()
            accounts.database = database = psycopg.connect(url, autocommit=True)
            accounts.transaction()
        follower.until_rows(accounts.states[-1])
        check_history(follower.history, accounts.states)
    assert left_behind(database) == (0, 0)
    database.close()


def test_whoever_reads_slowly(url: str, database: Any) -> None:
    """The server cuts off who does not answer for long: what was missed comes at once."""
    database.execute(f"ALTER DATABASE {database.info.dbname} SET wal_sender_timeout = '500ms'")
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    source = table_source(table(url))
    found = bag(source.contents())
    changes = source.changes()
    troubles = 0
    for number in range(3):
        database.execute(f"INSERT INTO t VALUES ({number}, 'a')")
        database.execute("UPDATE t SET name = name || 'b'")
        while found != rows(database):
            event = next(changes)
            if isinstance(event, TableChanges):
                for row, weight in zip(event.rows.to_pylist(), event.weight.tolist(), strict=True):
                    found[tuple(row.values())] += weight
                found = +found
            else:
                troubles += 1
        time.sleep(1.5)
    source.close()
    assert troubles


# --- tables that change ---------------------------------------------------------------------------


def test_truncate(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    database.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with following(table(url)) as follower:
        database.execute("TRUNCATE t")
        follower.until_rows(Counter())
        with database.transaction():
            database.execute("INSERT INTO t VALUES (3, 'c')")
            database.execute("TRUNCATE t")
            database.execute("INSERT INTO t VALUES (4, 'd')")
        follower.until_rows(Counter([(4, "d")]))
        database.execute("INSERT INTO t VALUES (5, 'e')")
        follower.until_rows(rows(database))
        assert not follower.troubles


def test_columns_that_come_and_go(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (old text, id integer PRIMARY KEY, name text)")
    database.execute("INSERT INTO t VALUES ('x', 1, 'a')")
    with following(table(url)) as follower:
        for statement in (
            "ALTER TABLE t ADD more text DEFAULT 'm'",
            "INSERT INTO t VALUES ('x', 2, 'b', 'more')",
            "ALTER TABLE t DROP old",
            "UPDATE t SET name = 'c' WHERE id = 2",
            "ALTER TABLE t ALTER id TYPE bigint USING id + 100",  # the rows are not reported
            "ALTER TABLE t REPLICA IDENTITY FULL",
            "DELETE FROM t WHERE id = 101",
            "ALTER TABLE t ALTER name TYPE varchar(5)",
            "INSERT INTO t VALUES (3, 'd', '')",
        ):
            database.execute(statement)
            follower.until_rows(rows(database))
        assert not follower.troubles


def test_tables_that_do_not_fit_for_a_while(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    database.execute("INSERT INTO t VALUES (1, 'a')")
    with following(table(url)) as follower:
        for wrong, trouble, right in (
            (
                "ALTER TABLE t ALTER name TYPE bytea USING 'x'",
                'column "name" of table "t" of PostgreSQL is bytea, and not all its '
                "values are STRING",
                "ALTER TABLE t ALTER name TYPE text USING 'b'",
            ),
            (
                "ALTER TABLE t RENAME name TO called",
                'table "t" of PostgreSQL has no column "name"',
                "ALTER TABLE t RENAME called TO name",
            ),
            ("ALTER TABLE t RENAME TO u", "there is no table", "ALTER TABLE u RENAME TO t"),
            (
                "ALTER TABLE t DROP CONSTRAINT t_pkey",
                "cannot be followed: it has no replica identity",
                "ALTER TABLE t ADD PRIMARY KEY (id)",
            ),
        ):
            known = follower.rows
            database.execute(wrong)
            follower.until_trouble(trouble)
            assert follower.rows == known
            database.execute(right)
            follower.until_rows(rows(database))
        database.execute("DROP TABLE t")
        follower.until_trouble('there is no table "t" of PostgreSQL')
        assert follower.rows == Counter([(1, "b")])
        database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
        database.execute("INSERT INTO t VALUES (1, 'b'), (2, 'c')")
        follower.until_rows(rows(database))
        database.execute("UPDATE t SET name = 'd'")
        follower.until_rows(rows(database))


def test_a_table_in_the_place_of_another(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    with following(table(url)) as follower:
        with database.transaction():
            database.execute("ALTER TABLE t RENAME TO before")
            database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
            database.execute("INSERT INTO t VALUES (1, 'new')")
        follower.until_rows(rows(database))
        database.execute("INSERT INTO before VALUES (2, 'old')")
        database.execute("INSERT INTO t VALUES (3, 'new')")
        follower.until_rows(rows(database))


def test_values_and_keys_that_are_wrong_for_a_while(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text, v numeric)")
    database.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    columns = {"name": types.STRING, "v": types.decimal_type(5, 2)}
    with following(table(url, columns, key=("name",))) as follower:
        for wrong, trouble, right in (
            (
                "UPDATE t SET v = 'NaN' WHERE id = 1",
                '\'NaN\' in column "v" of table "t" of PostgreSQL is not DECIMAL(5, 2)',
                "UPDATE t SET v = 3 WHERE id = 1",
            ),
            (
                "INSERT INTO t VALUES (3, 'b', 0)",
                "2 rows have the key (b)",
                "DELETE FROM t WHERE id = 2",
            ),
            (
                "INSERT INTO t VALUES (4, NULL, 0)",
                'column "name" of its key is NULL',
                "UPDATE t SET name = 'd' WHERE id = 4",
            ),
        ):
            known = follower.rows
            database.execute(wrong)
            follower.until_trouble(trouble)
            assert follower.rows == known
            database.execute(right)
            follower.until_rows(rows(database, "name, v"))


def test_times_that_are_wrong_for_a_while(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, a timestamptz, b timestamptz)")
    database.execute("INSERT INTO t VALUES (1, '2024-01-01', 'infinity')")
    columns = {"a": types.TIMESTAMP, "b": types.TIMESTAMP}
    temporal = replace(table(url, columns), time=("a", "b"), changes=ChangeMode.OWN)
    with following(temporal) as follower:
        known = follower.rows
        database.execute("UPDATE t SET b = '2023-01-01'")
        follower.until_trouble('table "t" of PostgreSQL has a row that does not fit: the row is')
        database.execute("UPDATE t SET a = NULL")
        follower.until_trouble('does not fit: the time column "a" is NULL')
        database.execute("UPDATE t SET a = '2024-01-01', b = 'infinity'")
        follower.until_rows(known)


def test_a_publication_that_somebody_drops(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    with following(table(url)) as follower:
        (name,) = database.execute("SELECT pubname FROM pg_publication").fetchone()
        database.execute(f"DROP PUBLICATION {name}")
        database.execute("INSERT INTO t VALUES (1, 'a')")
        follower.until_rows(rows(database))
        database.execute("INSERT INTO t VALUES (2, 'b')")
        follower.until_rows(rows(database))


def test_publications_that_were_left_behind(url: str, database: Any) -> None:
    """They are dropped by the next one, but not those that are in use."""
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    database.execute("CREATE PUBLICATION millstream_0123456789abcdef FOR TABLE t")
    database.execute("CREATE PUBLICATION millstream FOR TABLE t")
    with following(table(url)) as one, following(table(url)) as other:
        database.execute("INSERT INTO t VALUES (1, 'a')")
        one.until_rows(rows(database))
        other.until_rows(rows(database))
        (count,) = database.execute("SELECT count(*) FROM pg_publication").fetchone()
        assert count == 3
    assert database.execute("SELECT pubname FROM pg_publication").fetchall() == [("millstream",)]
    database.execute("DROP PUBLICATION millstream")


# --- what cannot be followed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["CREATE TABLE t (id integer, name text)"], "it has no replica identity"),
        (
            [
                "CREATE TABLE t (id integer PRIMARY KEY, name text)",
                "ALTER TABLE t REPLICA IDENTITY NOTHING",
            ],
            "it has no replica identity",
        ),
        (["CREATE VIEW t AS SELECT 1 AS id, 'a' AS name"], "it is a view"),
        (
            [
                "CREATE TABLE t (id integer PRIMARY KEY, name text) PARTITION BY RANGE (id)",
            ],
            "it is a partitioned table",
        ),
        (
            [
                "CREATE TABLE t (id integer PRIMARY KEY, name text)",
                "CREATE TABLE child () INHERITS (t)",
            ],
            "it is a table with child tables",
        ),
        (
            ["CREATE TABLE t (id integer PRIMARY KEY, name text GENERATED ALWAYS AS ('n') STORED)"],
            'column "name" is generated',
        ),
    ],
)
def test_tables_that_cannot_be_followed(
    url: str, database: Any, statements: list[str], why: str
) -> None:
    for statement in statements:
        database.execute(statement)
    text = message(table(url))
    assert text.startswith(f'table "T": table "t" of PostgreSQL cannot be followed: {why}\nhelp: ')
    assert text.endswith("write refresh => '5 seconds' instead of follow")


def test_roles_that_may_not(url: str, database: Any) -> None:
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    role = f"reader_{database.info.dbname}"
    database.execute(f"CREATE ROLE {role} LOGIN")
    as_reader = table(psycopg.conninfo.make_conninfo(url, user=role))
    remedy = (
        "\nhelp: to follow it, the role of the url must own the table and have CREATE on the "
        "database and the attribute REPLICATION; or write refresh => '5 seconds' instead of follow"
    )
    prefix = 'table "T": table "t" of PostgreSQL cannot be read: '
    base = database.info.dbname
    assert message(as_reader) == f"{prefix}permission denied for database {base}{remedy}"
    database.execute(f"GRANT CREATE ON DATABASE {database.info.dbname} TO {role}")
    assert message(as_reader) == f"{prefix}must be owner of table t{remedy}"
    database.execute(f"ALTER TABLE t OWNER TO {role}")
    assert message(as_reader) == (
        f'table "T": table "t" of PostgreSQL cannot be followed: role "{role}" lacks the attribute '
        "REPLICATION"
        f"{remedy}"
    )
    database.execute(f"ALTER ROLE {role} REPLICATION")
    database.execute(f"REVOKE ALL ON t FROM {role}")
    database.execute(f"GRANT SELECT ON t TO {role}")
    with following(as_reader) as follower:
        database.execute("INSERT INTO t VALUES (1, 'a')")
        follower.until_rows(rows(database))
        database.execute(f"REVOKE SELECT ON t FROM {role}")
        follower.until_trouble("permission denied for table t")
        assert follower.rows == Counter([(1, "a")])
        database.execute("UPDATE t SET name = 'b'")
        database.execute(f"GRANT SELECT ON t TO {role}")
        follower.until_rows(rows(database))


def test_rows_that_only_some_may_see(url: str, database: Any) -> None:
    role = f"some_{database.info.dbname}"
    database.execute(f"CREATE ROLE {role} LOGIN REPLICATION")
    database.execute(f"GRANT CREATE ON DATABASE {database.info.dbname} TO {role}")
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    database.execute(f"ALTER TABLE t OWNER TO {role}")
    database.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    assert "query would be affected by row-level security policy" in message(
        table(psycopg.conninfo.make_conninfo(url, user=role))
    )


def test_a_server_that_does_not_decode(url: str, postgres_server: Server) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
        database.execute("ALTER SYSTEM SET wal_level = replica")
    postgres_server.stop()
    postgres_server.start()
    try:
        assert message(table(url)) == (
            'table "T": table "t" of PostgreSQL cannot be followed: the server has '
            "wal_level = replica\nhelp: ALTER SYSTEM SET wal_level = 'logical' and restart the "
            "server, or write refresh => '5 seconds' instead of follow"
        )
    finally:
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("ALTER SYSTEM SET wal_level = logical")
        postgres_server.stop()
        postgres_server.start()


def test_closing_at_any_time(url: str, database: Any) -> None:
    """Also before the changes are asked for, while one waits for them, and twice."""
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    unread = table_source(table(url))
    unread.contents()
    unread.close()
    unread.close()
    assert list(unread.changes()) == []
    with following(table(url)):
        pass
    waiting = table_source(table(url))
    waiting.contents()
    changes = waiting.changes()
    database.execute("INSERT INTO t VALUES (1, 'a')")
    next(changes)
    waiting.close()
    assert list(changes) == []


def test_a_transaction_that_stays_open(url: str, database: Any) -> None:
    """A slot waits for open transactions; closing does not."""
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    with psycopg.connect(url) as other:
        other.execute("INSERT INTO t VALUES (1, 'a')")
        source = table_source(table(url))
        begun = time.monotonic()
        threading.Timer(0.5, source.close).start()
        with pytest.raises(MillstreamError, match="canceling statement due to user request"):
            source.contents()
        assert time.monotonic() - begun < 5
        other.rollback()


def test_a_transaction_that_stays_open_for_too_long(
    url: str, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "_SETTINGS", "SET row_security = off; SET lock_timeout = 200")
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, name text)")
    with psycopg.connect(url) as other:
        other.execute("INSERT INTO t VALUES (1, 'a')")
        assert message(table(url)) == (
            'table "T": table "t" of PostgreSQL cannot be read: canceling statement due to lock '
            "timeout\nhelp: another session locks the table or has a long transaction open: see "
            "pg_stat_activity"
        )
        other.rollback()
