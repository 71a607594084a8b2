"""Statements and clauses of Spark, Flink, PostgreSQL and ksqlDB, and what to write here instead.

They are found in the tokens, before parsing, so that the message is about them and not about the
word at which parsing fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError
from millstream.sql.tokens import Cursor, Token

TUMBLING = (
    "write FROM stream WINDOW(RANGE 10 MINUTES SLIDE 10 MINUTES) for windows that do not overlap"
)
HOPPING = "write FROM stream WINDOW(RANGE 10 MINUTES SLIDE 5 MINUTES)"
_SESSIONS = (
    "there are no session windows: write FROM stream WINDOW(RANGE d) for the last d, or "
    "WINDOW(PARTITION BY c ROWS n) for the last n rows of each c"
)
_OWN_FUNCTION = "register a function of your own with session.function(…)"
_FORMATS = f"date formats are not supported: CAST to and from STRING, or {_OWN_FUNCTION}"
JSON = f"declare the fields as columns or a STRUCT, or {_OWN_FUNCTION}"
_ROWS_OF_ARRAYS = "arrays cannot become rows here: unnest them where the rows are produced"
_BUCKETS = "GROUP BY DATE_TRUNC('minute', ts), or WINDOW(RANGE d SLIDE d) in FROM"
_RANKS = "write ORDER BY … LIMIT n for the first n, WINDOW(PARTITION BY c ROWS n) for the last n"

# Functions that do not exist here, by name in lower case.
FUNCTIONS = {
    **dict.fromkeys(("tumble", "tumble_start", "tumble_end", "cumulate"), TUMBLING),
    **dict.fromkeys(("hop", "hop_start", "hop_end", "window_start", "window_end"), HOPPING),
    **dict.fromkeys(("session_window", "session_start", "session_end"), _SESSIONS),
    **dict.fromkeys(("time_bucket", "date_bin", "window_time"), _BUCKETS),
    **dict.fromkeys(
        ("date_format", "to_char", "to_timestamp", "from_unixtime", "strftime", "date_parse"),
        _FORMATS,
    ),
    "unix_timestamp": "write UNIX_SECONDS(ts)",
    "proctime": "leave ORDERED BY out of CREATE STREAM: rows then have their arrival time",
    **dict.fromkeys(
        ("json_value", "json_query", "get_json_object", "from_json", "json_extract",
         "extractjsonfield", "to_json", "json_extract_scalar"),
        JSON,
    ),
    **dict.fromkeys(("explode", "unnest", "generate_series", "sequence"), _ROWS_OF_ARRAYS),
    **dict.fromkeys(("listagg", "string_agg", "group_concat"), "write ARRAY_AGG(x)"),
    "collect_set": "write ARRAY_AGG(DISTINCT x)",
    **dict.fromkeys(
        ("approx_count_distinct", "approx_distinct", "count_distinct"), "write COUNT(DISTINCT x)"
    ),
    **dict.fromkeys(
        ("percentile_cont", "percentile_disc", "percentile_approx", "approx_percentile"),
        "write PERCENTILE(x, 0.5)",
    ),
    "latest_by_offset": "write LAST(x)",
    "earliest_by_offset": "write FIRST(x)",
    **dict.fromkeys(("row_number", "rank", "dense_rank", "lag", "lead", "ntile"), _RANKS),
    "split": f"write SPLIT_PART(x, ',', 1), or {_OWN_FUNCTION}",
    **dict.fromkeys(("regexp_matches", "regexp_match"), "write x RLIKE 'pattern'"),
}  # fmt: skip

# First words of statements that do not exist here.
STATEMENTS = {
    "EXPLAIN": "use query.explain(), or millstream explain FILE.sql",
    **dict.fromkeys(("DESCRIBE", "DESC", "LIST"), "write SHOW STREAMS, SHOW TABLES or SHOW VIEWS"),
    "PRINT": "write SELECT * FROM stream",
    "SET": "settings are arguments: Session(…), query.start(…)",
    **dict.fromkeys(("USE", "DATABASE"), "a session has one set of names and no databases"),
    "ALTER": "DROP it and CREATE it again; rows of a table are changed by UPDATE",
    "TRUNCATE": "write DELETE FROM table",
    "TERMINATE": "write STOP QUERY name",
    "KILL": "write STOP QUERY name",
    "PAUSE": "write STOP QUERY name; with a checkpoint it resumes when it is started again",
    **dict.fromkeys(
        ("BEGIN", "COMMIT", "ROLLBACK", "START"),
        "each statement takes effect as a whole; write MERGE for several changes at once",
    ),
    "COPY": "write CREATE STREAM … SOURCE csv('path'), or INSERT INTO csv('path') query",
    "LOAD": "write CREATE STREAM … SOURCE csv('path')",
    **dict.fromkeys(("CACHE", "REFRESH"), "write CREATE MATERIALIZED VIEW name AS query"),
    "VALUES": "write INSERT INTO table VALUES (…)",
}

# Words after CREATE that do not exist here.
CREATED = {
    "VIEW": "write CREATE STREAM name AS query, which is computed where it is used, or CREATE "
    "MATERIALIZED VIEW name AS query, which is kept",
    **dict.fromkeys(
        ("TEMPORARY", "TEMP", "GLOBAL", "LOCAL"), "leave it out: names last as long as the session"
    ),
    "OR": "there is no OR REPLACE: DROP it first",
    "EXTERNAL": "leave it out: SOURCE connector(…) says where the rows are",
    "SOURCE": "write CREATE STREAM name (column type, …) SOURCE connector(…)",
    "SINK": "write INSERT INTO connector(…) query",
    "INDEX": "there are no indexes: each query keeps what it needs",
    "FUNCTION": "call session.function(name, function, returns=…)",
    **dict.fromkeys(("DATABASE", "SCHEMA", "CATALOG"), "a session has one set of names"),
}

_SOURCE = "write SOURCE connector(value, option => value) after the columns"


def refuse(tokens: Sequence[Token]) -> None:
    """Refuse clauses of other systems, with what to write instead."""
    words = [token.word for token in tokens]
    for index, word in enumerate(words):
        following = (*words[index + 1 : index + 3], "", "")[:2]
        found = _clause(word, *following) if index and words[index - 1] != "." else None
        if found is not None:
            message, help = found
            span = tokens[index].span
            raise ParseError(message, span, help)


def _clause(word: str, second: str, third: str) -> tuple[str, str] | None:
    """The message and the help for a clause that begins with these words."""
    if word == "WINDOW" and second in ("TUMBLING", "HOPPING", "SESSION"):
        return f"WINDOW {second} is not supported", _WINDOWS_OF_KSQL[second]
    if word in ("TUMBLE", "HOP", "CUMULATE", "SESSION") and second == "(" and third == "TABLE":
        return f"{word} is not supported", _WINDOWS_OF_FLINK[word]
    if word == "SESSION" and second == "(":
        return "SESSION is not supported", _SESSIONS
    if word == "MATCH_RECOGNIZE" and second == "(":
        return (
            "MATCH_RECOGNIZE is not supported",
            "join the stream with itself: FROM s WINDOW(RANGE d) AS a JOIN s WINDOW(NOW) AS b ON …",
        )
    if word == "WITHIN" and second not in ("", "GROUP", ",", ")", "=", "."):
        return "WITHIN is not supported in a join", _WITHIN
    if (word, second) == ("WITHIN", ""):  # a number follows
        return None if third in ("", ",", ")") else ("WITHIN is not supported in a join", _WITHIN)
    if (word, second, third) == ("WITHIN", "GROUP", "("):
        return (
            "WITHIN GROUP is not supported",
            "write PERCENTILE(x, 0.5) for a percentile, or ARRAY_AGG(x) for a list",
        )
    if (word, second) == ("FOR", "SYSTEM_TIME"):
        return (
            "FOR SYSTEM_TIME is not supported",
            "join with a table declared NON RETROACTIVE: each row sees the version of its time",
        )
    if (word, second, third) == ("EMIT", "ON", "WINDOW"):
        return (
            "EMIT ON WINDOW CLOSE is not supported",
            "EMIT FINAL, the default, emits a row once it is final",
        )
    return None


_WITHIN = "write the window beside the streams: FROM a WINDOW(RANGE 1 HOUR) JOIN b WINDOW(NOW) ON …"
_WINDOWS_OF_KSQL = {"TUMBLING": TUMBLING, "HOPPING": HOPPING, "SESSION": _SESSIONS}
_WINDOWS_OF_FLINK = {
    "TUMBLE": TUMBLING, "HOP": HOPPING, "CUMULATE": TUMBLING, "SESSION": _SESSIONS,
}  # fmt: skip


def refuse_existence(cursor: Cursor) -> None:
    """IF EXISTS and IF NOT EXISTS, at the cursor."""
    for words in (("IF", "NOT", "EXISTS"), ("IF", "EXISTS")):
        if cursor.at(*words):
            last = cursor.peek(len(words) - 1)
            assert last is not None
            raise ParseError(
                f"{' '.join(words)} is not supported",
                cursor.span.to(last.span),
                "leave it out; SHOW STREAMS and session.catalog list what exists",
            )


def refuse_options(cursor: Cursor) -> None:
    """`WITH ('connector' = 'kafka')` and `WITH (kafka_topic = 'x')`, instead of SOURCE."""
    key, mark, value = (cursor.peek(ahead) for ahead in (2, 3, 4))
    if not cursor.at("WITH", "(") or key is None or mark is None or mark.word != "=":
        return
    texts = [token.kind for token in (key, value) if token is not None]
    if TokenType.STRING in texts:
        raise ParseError("options of a connector do not belong in WITH", cursor.span, _SOURCE)
