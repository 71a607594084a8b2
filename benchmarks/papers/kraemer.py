"""The queries of K's experiments (Krämer 2007, §14.3) over the data of NEXMark.

Q1 to Q6 are those of figures 9.1 and 9.2, with the texts of chapter 7. The data is the preset of
the connector `nexmark`: 1,000,987 bids, 99,990 auctions, 9,958 people.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from millstream.connectors.nexmark import generate

COLUMNS = {
    "OpenAuction": "itemID INT, sellerID INT, start_price REAL, timestamp TIMESTAMP",
    "ClosedAuction": "itemID INT, buyerID INT, timestamp TIMESTAMP",
    "Bid": "itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP",
}
EUROS_PER_DOLLAR = 0.89


def streams(seed: int = 1, bids: int | None = None) -> dict[str, pa.Table]:
    """K's sizes, or `bids` bids with auctions and people in proportion."""
    preset = "kraemer" if bids is None else None
    return {name: generate(name, seed=seed, bids=bids, preset=preset) for name in COLUMNS}


def declarations(seed: int = 1) -> str:
    """CREATE STREAM for each stream, read from the connector."""
    return "\n".join(
        f"CREATE STREAM {name} ({columns}) "
        f"SOURCE nexmark(stream => '{name}', seed => {seed}, preset => 'kraemer') "
        "ORDERED BY timestamp;"
        for name, columns in COLUMNS.items()
    )


# Q5 reads two derived streams; each text ends with the query that is measured.
QUERIES: Mapping[str, str] = {
    "Q1": f"SELECT itemID, bid_price * {EUROS_PER_DOLLAR} AS euros, bidderID FROM Bid",
    "Q2": """SELECT Bid.* FROM Bid
WHERE itemID = 1007 OR itemID = 1020 OR itemID = 2001 OR itemID = 2019 OR itemID = 1087""",
    "Q3": """SELECT O.* FROM OpenAuction O WINDOW(RANGE 5 HOURS), ClosedAuction C
WHERE O.itemID = C.itemID""",
    "Q4": """SELECT itemID, bid_price FROM Bid WINDOW(RANGE 10 MINUTES)
WHERE bid_price = (SELECT MAX(bid_price) FROM Bid WINDOW(RANGE 10 MINUTES))""",
    "Q5": """CREATE STREAM CurrentPrice AS
SELECT P.itemID, P.price, O.sellerID AS sellerID
FROM ((SELECT itemID, bid_price AS price FROM Bid WINDOW(RANGE 2 DAYS))
      UNION ALL
      (SELECT itemID, start_price AS price FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
     ClosedAuction C,
     OpenAuction O WINDOW(RANGE 2 DAYS)
WHERE P.itemID = C.itemID AND C.itemID = O.itemID;
SELECT itemID, sellerID, MAX(price) AS price FROM CurrentPrice GROUP BY itemID, sellerID""",
    "Q6": """SELECT itemID
FROM (SELECT B1.itemID AS itemID, COUNT(*) AS num
      FROM Bid WINDOW(RANGE 60 MINUTES) B1 GROUP BY B1.itemID)
WHERE num >= ALL(SELECT COUNT(*) FROM Bid WINDOW(RANGE 60 MINUTES) B2 GROUP BY B2.itemID)""",
}

# The faster of K's two plans for Q5 (figures 10.2 and 14.7), written out: the sellers are joined
# after the grouping, not before it as in the text above.
Q5_GROUPED_FIRST = """CREATE STREAM HighestPrice AS
SELECT P.itemID, MAX(P.price) AS price
FROM ((SELECT itemID, bid_price AS price FROM Bid WINDOW(RANGE 2 DAYS))
      UNION ALL
      (SELECT itemID, start_price AS price FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
     ClosedAuction C
WHERE P.itemID = C.itemID
GROUP BY P.itemID;
SELECT H.itemID, O.sellerID, H.price
FROM HighestPrice H, OpenAuction O WINDOW(RANGE 2 DAYS)
WHERE H.itemID = O.itemID"""
