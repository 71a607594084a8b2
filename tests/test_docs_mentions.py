"""What the prose of the documents names is there: calls, options, commands, files, statements."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from benchmarks.__main__ import REPORTS, WORKLOADS
from benchmarks.__main__ import _parser as benchmark_options

import millstream as ms
from docs.document import ROOT, blocks_of, name_of
from docs.mentions import READ, calls, commands, files, inline_code, mapped, resolved, statements
from millstream.cli.main import app
from millstream.optimizer.optimize import RULES
from millstream.sql.parser import parse

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
OPTIONS = {
    name: {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    for name, command in COMMANDS.items()
}

document_by_name = pytest.mark.parametrize("document", READ, ids=name_of)


# --- calls ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def roots() -> Iterator[dict[str, Any]]:
    """The names by which documents speak of objects, with one of each."""
    session = ms.Session(engine="local")
    feed = session.feed("S", {"t": "BIGINT", "v": "BIGINT"}, time="t")
    table = session.table("T", [{"k": 1}], key="k")
    view = session.sql("CREATE MATERIALIZED VIEW kept AS SELECT v FROM S WINDOW(RANGE 5)")
    query = session.sql("SELECT v FROM S")
    batches: list[Any] = []
    running = query.start(lambda table, batch: batches.append(batch))
    feed.send([{"t": 1, "v": 2}])
    feed.close()
    running.wait(30)
    yield {
        "ms": ms, "Session": ms.Session, "session": session, "feed": feed, "table": table,
        "view": view, "query": query, "running": running, "batch": batches[0],
        "progress": running.progress, "metrics": running.metrics,
    }  # fmt: skip
    view.stop()


@document_by_name
def test_calls_and_their_options_exist(document: Path, roots: dict[str, Any]) -> None:
    for code, expression in calls(document, roots):
        try:
            resolved(expression, roots)
        except (AttributeError, AssertionError) as error:
            raise AssertionError(f"`{code}`: {error}") from error


# --- commands -------------------------------------------------------------------------------------


@document_by_name
def test_commands_and_their_options_exist(document: Path) -> None:
    for line in commands(document):
        words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
        words = words[: words.index("|")] if "|" in words else words
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        match words:
            case ["millstream", command, *_]:
                assert command in COMMANDS or command.startswith("-"), line
                assert options <= OPTIONS.get(command, options), line
            case ["make", target, *_]:
                makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), line
            case ["python", "-m", "benchmarks", *rest]:
                chosen = benchmark_options().parse_args(rest).workload
                assert set(chosen) <= {*WORKLOADS, *REPORTS}, line
            case ["python", "-m", module, *_] if module.startswith(("benchmarks", "millstream")):
                base = ROOT if module.startswith("benchmarks") else ROOT / "src"
                assert (base / module.replace(".", "/") / "__main__.py").exists(), line
            case ["python", "-m", "venv", *_]:
                pass
            case _:
                raise AssertionError(f"{line}: not a command of ours")


@document_by_name
def test_options_and_settings_named_alone_exist(document: Path) -> None:
    """`--until INSTANT` without its command, and variables of the environment."""
    known = set().union(*OPTIONS.values()) | {*benchmark_options()._option_string_actions}
    outside = {"--py-files"}  # of spark-submit
    for code in inline_code(document):
        if code.startswith("--") and code[2:3].isalpha():
            assert code.split()[0].partition("=")[0] in known | outside, code
    settings = set(re.findall(r"\bMILLSTREAM_[A-Z_]+", document.read_text(encoding="utf-8")))
    if settings:
        places = [ROOT / "src", ROOT / "tests", ROOT / "tools"]
        texts = [p.read_text("utf-8") for place in places for p in place.rglob("*.py")]
        texts += [(ROOT / "Makefile").read_text("utf-8")]
        assert [name for name in settings if not any(name in text for text in texts)] == []


# --- files ----------------------------------------------------------------------------------------


@document_by_name
def test_files_exist(document: Path) -> None:
    if document.name == "ARCHITECTURE.md":
        return  # its map is read below
    shown = document.read_text(encoding="utf-8")
    for name in files(document):
        there = any((base / name).exists() for base in (ROOT, document.parent))
        written = len(re.findall(re.escape(Path(name).name), shown)) > 1  # by a program on the page
        assert there or written, name


def test_the_map_of_the_code_names_what_is_there() -> None:
    assert [name for name, place in mapped() if place is None] == []


def test_the_map_of_the_code_is_whole() -> None:
    """Each module is named, or a folder that it is in."""
    places = {place for _, place in mapped() if place is not None}
    source = ROOT / "src" / "millstream"
    modules = [p for p in source.rglob("*.py") if p.name not in ("__init__.py", "__main__.py")]
    missing = [p for p in modules if not places & {p, *p.parents[: -len(source.parents)]}]
    assert sorted(str(p.relative_to(source)) for p in missing) == []


# --- statements -----------------------------------------------------------------------------------

#: A statement for each form of the grammar in docs/language.md, by the form's first words.
FORMS = {
    "CREATE STREAM name (": [
        "CREATE STREAM s (t BIGINT NOT NULL, k INT, UNIQUE (k)) SOURCE csv('f', header => TRUE)",
        "CREATE STREAM s (t BIGINT, k INT) SOURCE csv('f') ORDERED BY t UNIT SECONDS "
        "DELAY 5 SECONDS IDLE AFTER 10 SECONDS WITH (rate = 5, distinct(k) = 3) "
        "RETAIN 4 SECONDS IN 'folder'",
        "CREATE STREAM s (a BIGINT, b BIGINT) SOURCE csv('f') VALID FROM a TO b",
    ],
    "CREATE STREAM name AS": ["CREATE STREAM s AS SELECT v FROM S RETAIN 5 IN 'folder'"],
    "CREATE MATERIALIZED VIEW": [
        "CREATE MATERIALIZED VIEW w AS SELECT v FROM S INTO console() EMIT EVERY 5",
        "CREATE MATERIALIZED VIEW w AS SELECT v FROM S RETAIN 5 IN 'folder'",
    ],
    "CREATE TABLE name (": [
        "CREATE TABLE t (k INT NOT NULL, at BIGINT, PRIMARY KEY (k)) NON RETROACTIVE "
        "ORDERED BY at UNIT SECONDS",
        "CREATE TABLE t (k INT) RETROACTIVE SOURCE csv('f', refresh => '5 seconds')",
        "CREATE TABLE t (k INT) CONSTANT",
        "CREATE TABLE t (k INT, a BIGINT, b BIGINT) VALID FROM a TO b",
    ],
    "CREATE TABLE name AS": ["CREATE TABLE t AS LATEST BY k, l FROM S DELETE WHERE v IS NULL"],
    "INSERT INTO table": [
        "INSERT INTO T (k) VALUES (1), (2) EFFECTIVE AT 5",
        "INSERT INTO T SELECT k FROM U",
    ],
    "UPDATE table": ["UPDATE T SET k = 2 WHERE k = 1 EFFECTIVE AT 5"],
    "DELETE FROM table": ["DELETE FROM T WHERE k = 1 EFFECTIVE AT 5"],
    "MERGE INTO table": [
        "MERGE INTO T USING U ON T.k = U.k WHEN MATCHED AND U.v > 1 THEN UPDATE SET v = U.v "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (U.k) EFFECTIVE AT 5",
    ],
    "INSERT INTO sink": ["INSERT INTO csv(path => 'f') SELECT v FROM S"],
    "DROP": [
        "DROP STREAM s", "DROP TABLE s", "DROP VIEW s", "DROP MATERIALIZED VIEW s", "DROP QUERY s",
        "STOP QUERY s",
    ],
    "SHOW": ["SHOW STREAMS", "SHOW TABLES", "SHOW VIEWS", "SHOW QUERIES"],
    "query:": [
        "WITH a AS (SELECT v FROM S) SELECT DISTINCT v AS w FROM a, S JOIN T ON S.k = T.k "
        "WHERE v > 1 GROUP BY v HAVING COUNT(*) > 1 ORDER BY v LIMIT 3 "
        "SHED AT MOST 5 PERCENT EMIT CHANGES",
        "SELECT v FROM S UNION ALL SELECT v FROM S SHED EMIT FINAL",
        "SELECT v FROM S EXCEPT SELECT v FROM S INTERSECT SELECT v FROM S EMIT EVERY 5",
    ],
    "source:": [
        "SELECT v FROM S WINDOW(RANGE 5) GRANULARITY(5) s, (SELECT v FROM S) t, ISTREAM(S) u, "
        "DSTREAM(S WINDOW(RANGE 5)) v, RSTREAM(SELECT v FROM S) w",
        "SELECT v FROM kept AS OF 5 k, HISTORY(kept) h",
    ],
    "window:": [
        f"SELECT v FROM S WINDOW({window})"
        for window in (
            "RANGE 5", "RANGE 5 SLIDE 5", "RANGE UNBOUNDED", "NOW", "ROWS 5",
            "PARTITION BY k, l ROWS 5 SLIDE 2", "ROWS UNBOUNDED", "RANGE MIN 5, MAX 6",
            "ROWS MIN 5, MAX 6",
        )
    ],
}  # fmt: skip


def _grammar() -> list[str]:
    """The first lines of the forms."""
    blocks = blocks_of(ROOT / "docs" / "language.md")
    grammar = next(block.text for block in blocks if block.language == "text")
    return [line for line in grammar.splitlines() if line and not line.startswith(" ")]


def test_every_form_of_the_grammar_is_read() -> None:
    unread = [line for line in _grammar() if not line.startswith(tuple(FORMS))]
    assert unread == []
    for form, examples in FORMS.items():
        assert any(line.startswith(form) for line in _grammar()), form
        for example in examples:
            assert len(parse(example)) == 1, example


@document_by_name
def test_statements_named_in_prose_are_of_the_grammar(document: Path) -> None:
    known = {" ".join(line.split()[:2]) for line in _grammar()}
    known |= {
        pair for line in _grammar() for pair in re.findall(r"\b(?:DROP|STOP|SHOW) [A-Z]+", line)
    }
    known |= {"DROP [MATERIALIZED]"}
    for code in statements(document):
        start = " ".join(code.split()[:2])
        place = re.sub(r"^(INSERT INTO|UPDATE|DELETE FROM) .*", r"\1", start)
        assert any(form.startswith(place) for form in known), code
        if not re.search(r"[…\[|]", code):
            parse(re.sub(r"\bquery\b", "SELECT v FROM S", code))


def test_windows_named_in_prose_are_read() -> None:
    values = {"d": "2", "e": "2", "n": "2", "m": "2", "c": "k", "g": "2"}
    for document in READ:
        for code in inline_code(document):
            if re.match(r"(WINDOW|GRANULARITY)\(", code) and "…" not in code:
                text = re.sub(r"\b[a-z]\b", lambda name: values[name[0]], code)
                parse(f"SELECT v FROM S {text}")


def test_the_rules_of_the_optimizer_are_told_in_their_order() -> None:
    names = [rule.__name__ for rule in RULES]
    assert [code for code in inline_code(ROOT / "docs" / "plans.md") if code in names] == names
