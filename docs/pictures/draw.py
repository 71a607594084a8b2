"""Draws the pictures of the documents, from what the system itself answers.

    python docs/pictures/draw.py

writes them anew beside this file; a test compares them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drawing import Bar, Lane, Node, TimeLine, graph

import millstream as ms

Row = dict[str, Any]


def bars(session: ms.Session, sql: str, kind: str = "row") -> list[Bar]:
    """The answer of a query; the values of a row, one beside the other."""
    found = []
    for row in session.sql(sql).run().to_pylist():
        start, end = row.pop("valid_from"), row.pop("valid_to")
        words = ", ".join("NULL" if value is None else str(value) for value in row.values())
        padded = kind == "answer" and None in row.values()
        found.append(Bar(words, start, end, "padded" if padded else kind))
    return found


def session_of(**streams: list[Row]) -> ms.Session:
    session = ms.Session(engine="local")
    for name, rows in streams.items():
        session.stream(name, rows, time="t")
    return session


# --- the pictures ---------------------------------------------------------------------------------


def readme() -> str:
    rows = [(1, "clock", 40), (4, "chair", 65), (7, "clock", 55)]
    session = session_of(Bid=[{"t": t, "item": item, "price": price} for t, item, price in rows])
    bids = "SELECT item, price FROM Bid WINDOW(RANGE 5)"
    highest = f"{bids} WHERE price = (SELECT MAX(price) FROM Bid WINDOW(RANGE 5))"
    return TimeLine(
        1,
        12,
        [
            Lane("Bid WINDOW(RANGE 5)", bars(session, bids)),
            Lane("the highest bids", bars(session, highest, "answer")),
        ],
        at=8,
        told="snapshot(8)",
    ).svg()


def tutorial() -> str:
    rows = [(1, 40), (4, 50), (6, 45)]
    session = session_of(Bid=[{"t": t, "price": price} for t, price in rows])
    best = "SELECT MAX(price) AS best FROM Bid WINDOW(RANGE 5) GROUP BY TRUE"
    return TimeLine(
        1,
        11,
        [
            Lane("bids for the clock", bars(session, "SELECT price FROM Bid WINDOW(RANGE 5)")),
            Lane("MAX(price)", bars(session, best, "answer")),
        ],
        at=9,
        told="at 9 the 50 is gone, and 45 is the best",
    ).svg()


def snapshots() -> str:
    session = session_of(Bid=[{"t": t, "v": v} for t, v in ((1, "a"), (3, "b"), (5, "c"))])
    count = "SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 3)"
    snapshot = session.sql("SELECT v FROM Bid WINDOW(RANGE 3)").snapshot(5)
    return TimeLine(
        1,
        9,
        [
            Lane("Bid", bars(session, "SELECT v FROM Bid"), "rows as they arrive"),
            Lane("Bid WINDOW(RANGE 3)", bars(session, "SELECT v FROM Bid WINDOW(RANGE 3)")),
            Lane("SELECT COUNT(*)", bars(session, count, "answer")),
        ],
        at=5,
        told=f"snapshot(5) = {{{', '.join(snapshot.column('v').to_pylist())}}}",
    ).svg()


def slide() -> str:
    session = session_of(S=[{"t": t} for t in range(20)])
    clauses = {
        "WINDOW(RANGE 4)": "changes with every row",
        "WINDOW(RANGE 4 SLIDE 4)": "[0, 4) is complete at 3",
        "WINDOW(RANGE 4) GRANULARITY(4)": "as it was at 0, 4, 8, …",
    }
    lanes = [_views(session, clause, note) for clause, note in clauses.items()]
    return TimeLine(0, 13, lanes, column=52, margin=300).svg()


def _views(session: ms.Session, clause: str, note: str) -> Lane:
    """The times of the rows in view, from the smallest to the largest."""
    sql = f"SELECT MIN(t) AS least, MAX(t) AS most FROM S {clause} GROUP BY TRUE"
    found = []
    for row in session.sql(sql).run().to_pylist():
        least, most = row["least"], row["most"]
        words = f"{least}" if least == most else f"{least}–{most}"
        found.append(Bar(words, row["valid_from"], row["valid_to"], "answer"))
    return Lane(clause, found, note)


def outer_join() -> str:
    session = session_of(
        Orders=[{"t": 1, "o": "o", "k": 1}],
        Payments=[{"t": 3, "p": "p", "k": 1}],
    )
    joined = (
        "SELECT o, p FROM Orders WINDOW(RANGE 6) a LEFT JOIN Payments WINDOW(RANGE 2) b "
        "ON a.k = b.k"
    )
    return TimeLine(
        1,
        7,
        [
            Lane("Orders", bars(session, "SELECT o FROM Orders WINDOW(RANGE 6)"), "RANGE 6"),
            Lane("Payments", bars(session, "SELECT p FROM Payments WINDOW(RANGE 2)"), "RANGE 2"),
            Lane("LEFT JOIN", bars(session, joined, "answer")),
        ],
        column=60,
    ).svg()


def count_window() -> str:
    session = session_of(S=[{"t": t, "v": v} for t, v in ((1, "a"), (2, "b"), (5, "c"), (7, "d"))])
    return TimeLine(
        1,
        10,
        [
            Lane("S", bars(session, "SELECT v FROM S"), "rows as they arrive"),
            Lane("S WINDOW(ROWS 2)", bars(session, "SELECT v FROM S WINDOW(ROWS 2)")),
            Lane(
                "… ROWS 2 SLIDE 2",
                bars(session, "SELECT v FROM S WINDOW(ROWS 2 SLIDE 2)"),
            ),
        ],
    ).svg()


def plan() -> str:
    session = ms.Session(engine="local")
    session.feed("clicks", {"ts": "TIMESTAMP", "user": "BIGINT", "page": "STRING"}, time="ts")
    session.feed("users", {"ts": "TIMESTAMP", "id": "BIGINT", "name": "STRING"}, time="ts")
    query = session.sql("""
        SELECT page, COUNT(*) AS n
        FROM clicks WINDOW(RANGE 10 MINUTES) JOIN users WINDOW(RANGE 1 HOUR)
             ON clicks.user = users.id
        GROUP BY page
    """)
    told = json.loads(query.explain("json", physical=True))
    return graph(_node(told["physical"]))


def _node(plan: Row) -> Node:
    """An operator: its name, what it does, and what it keeps."""
    lines = [plan["operator"]]
    lines += [f"{name}: {value}" for name, value in plan["properties"].items()]
    if plan["state"]:
        lines.append(f"state: {', '.join(plan['state'])}")
    below = [(_node(input), _told(input)) for input in plan["inputs"]]
    return Node(lines, below, "answer" if plan["state"] else "row")


def _told(plan: Row) -> str:
    return f"{plan['pattern']}   [{','.join(plan['emits'])}]"


PICTURES = {
    "readme": readme,
    "tutorial": tutorial,
    "snapshots": snapshots,
    "slide": slide,
    "outer_join": outer_join,
    "count_window": count_window,
    "plan": plan,
}


def main() -> None:
    for name, draw in PICTURES.items():
        (Path(__file__).parent / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
