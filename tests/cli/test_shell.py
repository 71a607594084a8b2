"""`millstream shell`: in a pseudo-terminal as people have it, through a pipe, and its parts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import millstream as ms
from cli.statements import LIVE, QUERY, STREAM, command, write
from cli.terminal import Terminal, terminal
from millstream.cli.completion import Completions
from millstream.cli.shell import Shell, is_complete, prompt_session

PROMPT = "millstream>"


def enter(screen: Terminal, text: str, answer: str) -> str:
    """Type a line at the prompt; what is shown up to the answer, and then a new prompt."""
    screen.type(text + "\r")
    shown = screen.expect(answer)
    screen.expect(PROMPT)
    return shown


# --- through a pipe -------------------------------------------------------------------------------


def piped(folder: Path, text: str) -> tuple[str, str]:
    write(folder, "")
    done = command("shell", folder=folder, input=text.encode())
    assert done.returncode == 0
    return done.stdout.decode(), done.stderr.decode()


def test_statements_and_commands(tmp_path: Path) -> None:
    out, err = piped(
        tmp_path,
        STREAM + QUERY + "\\d\n\\d reading\nSELECT nothing FROM Reading;\nSHOW QUERIES;\n"
        "DROP STREAM Reading;\n\\d\n\\frob\n\\q\nSELECT never",
    )
    assert out == (
        "sensor  best  valid_from  valid_to\n"
        "------  ----  ----------  --------\n"
        "a          5           1         4\n"
        "b          9           3         6\n"
        "a          7           4         7\n"
        "(3 rows)\n"
        "name     kind    columns                                time\n"
        "-------  ------  -------------------------------------  ----\n"
        "Reading  source  t BIGINT, sensor STRING, value BIGINT  t\n"
        "(1 row)\n"
        "column  type\n"
        "------  ------\n"
        "t       BIGINT\n"
        "sensor  STRING\n"
        "value   BIGINT\n"
        "(3 rows)\n"
        "name  state  query\n"
        "----  -----  -----\n"
        "(0 rows)\n"
        "name  kind  columns  time\n"
        "----  ----  -------  ----\n"
        "(0 rows)\n"
    )
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert errors == [
        'error: column "nothing" does not exist in stream "Reading"',
        'error: there is no command "\\frob"',
    ]


@pytest.mark.parametrize("end", ["exit", "QUIT;", "\\q", "\\q\n\\q"])
def test_words_that_people_try(end: str, tmp_path: Path) -> None:
    out, err = piped(tmp_path, f"help\n{end}\nSELECT never;\n")
    assert (out.splitlines()[-1].split(), err) == (["\\q", "end"], "")


def test_explain(tmp_path: Path) -> None:
    out, err = piped(
        tmp_path, STREAM + "\\explain\n\\explain SELECT t FROM Reading\n\\explain SHOW STREAMS\n"
    )
    assert out.startswith("query query_1\nSELECT t FROM Reading\ncolumns (t BIGINT)\nemit FINAL\n")
    assert [line for line in err.splitlines() if line.startswith("error: ")] == [
        "error: there is no query yet",
        "error: that is not a query",
    ]


def test_long_answers_are_cut(tmp_path: Path) -> None:
    (tmp_path / "many.csv").write_text("t\n" + "".join(f"{t}\n" for t in range(150)))
    out, _ = piped(
        tmp_path,
        "CREATE STREAM S (t BIGINT) SOURCE csv('many.csv') ORDERED BY t;\nSELECT t FROM S;\n",
    )
    assert out.splitlines()[-2:] == [
        "99          99       100",
        "(150 rows, the first 100 of them)",
    ]


def test_rows_that_cannot_be_evaluated_are_told(tmp_path: Path) -> None:
    out, err = piped(tmp_path, STREAM + "SELECT sensor + 1 AS x FROM Reading;\n")
    assert "(0 rows)" in out
    (line,) = err.splitlines()
    assert line.startswith('warning: query "query_1" could not use ')


def test_background_queries(tmp_path: Path) -> None:
    """INSERT INTO runs beside what one types, and ends with the shell."""
    out, err = piped(
        tmp_path,
        LIVE + "INSERT INTO json(path => 'out') SELECT itemID FROM Bid;\nSHOW QUERIES;\n"
        "STOP QUERY query_1;\nSHOW QUERIES;\n",
    )
    assert err == "query_1 runs; STOP QUERY query_1 stops it\n"
    states = [line.split()[1] for line in out.splitlines() if line.startswith("query_1")]
    assert states == ["running", "stopped"]


# --- in a terminal --------------------------------------------------------------------------------


def test_a_session_of_a_person(tmp_path: Path) -> None:
    """Lines until a semicolon; Ctrl-C empties the line; history is kept; Ctrl-D ends."""
    write(tmp_path, STREAM + QUERY)
    with terminal("shell", "file.sql", home=tmp_path, folder=tmp_path) as screen:
        screen.expect(PROMPT)
        screen.type("SELECT sensor\r")
        screen.expect(r"\.\.\.")
        shown = enter(screen, "FROM Reading WHERE value > 8;", r"\(1 row\)")
        assert "b                3         4" in shown
        screen.type("SELECT rubbish")
        screen.expect("rubbish")
        screen.interrupt()
        screen.expect(PROMPT)
        enter(screen, "\\?", "this help")
        enter(screen, "SELECT nothing FROM Reading;", 'error: column "nothing" does not exist')
        screen.type("\x04")
        assert screen.end() == 0
    history = (tmp_path / ".local/state/millstream/history").read_text()
    assert "+SELECT sensor\n+FROM Reading WHERE value > 8;" in history


def test_live_answers_and_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C stops the query and not the shell."""
    write(tmp_path, LIVE)
    with terminal("shell", "file.sql", home=tmp_path, folder=tmp_path) as screen:
        screen.expect(PROMPT)
        screen.type("SELECT itemID, bid_price FROM Bid;\r")
        screen.expect(r"itemID  bid_price  valid_from +valid_to\r\n-+ .*\r\n +\d+ ")
        screen.interrupt()
        screen.expect(PROMPT)
        hot = "SELECT itemID, COUNT(*) AS n FROM Bid WINDOW(RANGE 1 MINUTE) GROUP BY itemID"
        for text in (f"\\watch {hot} ORDER BY n DESC LIMIT 3", f"{hot} EMIT CHANGES;", "\\watch"):
            screen.type(text + "\r")
            screen.expect(r"\(Ctrl-C stops it\)")
            screen.expect(r"itemID +n")
            screen.expect(r"1\d{3,} +\d+")
            screen.interrupt()
            screen.expect(PROMPT)
        shown = enter(screen, "SHOW QUERIES;", r"\(\d rows?\)")
        assert shown.endswith("(0 rows)"), "questions are not kept"
        screen.type("\\q\r")
        assert screen.end() == 0
        assert "Traceback" not in screen.text


def test_a_closed_terminal(tmp_path: Path) -> None:
    write(tmp_path, LIVE)
    with terminal("shell", "file.sql", home=tmp_path, folder=tmp_path) as screen:
        screen.expect(PROMPT)
        screen.hang_up()
        assert screen.process.wait(300) in (0, 143)


# --- watching views -------------------------------------------------------------------------------


def watched(shell: Shell, text: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What `\\watch` shows in the end."""
    assert shell.run(f"\\watch {text}")
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_watching_a_view_shows_what_the_view_has(capsys: pytest.CaptureFixture[str]) -> None:
    """A query of its own over the view's streams would begin when it is asked."""
    session = ms.Session(engine="local")
    feed = session.feed("S", {"t": "BIGINT", "x": "INT"}, time="t")
    session.sql(
        "CREATE MATERIALIZED VIEW v AS "
        "SELECT x, COUNT(*) AS n FROM S WINDOW(RANGE UNBOUNDED) GROUP BY x"
    )
    feed.send([(1, 7), (2, 7), (3, 8)])
    view = session.views["v"]
    view.as_of(2, timeout=60)

    def more() -> None:
        feed.send([(4, 7), (5, 9)])
        feed.close()

    later = threading.Timer(0.5, more)
    later.start()
    shown = watched(Shell(session, {}), "SELECT * FROM v WHERE n > 1 ORDER BY x", capsys)
    later.join()
    assert shown[0].startswith("v at ")
    assert shown[0].endswith("(Ctrl-C stops it)")
    assert "7 3" in shown
    assert session.queries == {}


def test_watching_a_table_of_the_session_ends(capsys: pytest.CaptureFixture[str]) -> None:
    session = ms.Session(engine="local")
    session.sql("CREATE TABLE R (id INT)")
    session.sql("INSERT INTO R VALUES (3), (1)")
    assert watched(Shell(session, {}), "SELECT id FROM R", capsys)[-3:-1] == ["1", "3"]


# --- its parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("\\d", True),
        ("exit", True),
        ("Quit;", True),
        ("help", True),
        ("exit now", False),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT ';'", False),
        ("SELECT 1; -- done", True),
        ("SELECT 1 /* ; ", False),
        ("-- a comment\n", True),
        ("SHOW STREAMS;", True),
    ],
)
def test_when_enter_runs(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def offered(text: str) -> set[str]:
    session = ms.Session()
    session.stream("Reading", [{"t": 1, "sensor": "a"}], time="t")
    session.stream("Other", [{"t": 1, "seconds_": 2}], time="t")
    found = Completions(session).get_completions(Document(text), CompleteEvent())
    return {completion.text for completion in found}


def test_completion() -> None:
    assert offered("SELECT sen") == {"sensor"}
    assert offered("SELECT t FROM rea") == {"Reading"}
    assert offered("SELECT sub") == {"SUBSTRING"}
    assert offered("SELECT t FROM Reading WINDOW(RA") >= {"RANGE"}
    assert offered("SELECT Reading.se") == {"sensor"}
    assert offered("SELECT r.se") == {"sensor", "seconds_"}
    assert offered("\\e") == {"\\explain"}
    assert offered("") == set()


def test_several_lines_through_a_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as keys:
        prompt = prompt_session(ms.Session(), input=keys, output=DummyOutput())
        keys.send_text("SELECT 1\rFROM S;\r\\d\r")
        assert prompt.prompt() == "SELECT 1\nFROM S;"
        assert prompt.prompt() == "\\d"
    assert (tmp_path / "millstream" / "history").exists()
