"""An auction house: the highest bid of every auction, at the instant at which it closes.

The streams are those of the NEXMark benchmark, from the built-in generator. A closing is in its
window only at its own instant, bids for two days. The generator's own `closing_price` is the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import millstream as ms

STATEMENTS = """
CREATE STREAM ClosedAuction (itemID INT, buyerID INT, closing_price REAL, timestamp TIMESTAMP)
    SOURCE nexmark('ClosedAuction', bids => 500, seed => 7) ORDERED BY timestamp;

CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
    SOURCE nexmark('Bid', bids => 500, seed => 7) ORDERED BY timestamp;

SELECT C.itemID, C.closing_price, MAX(B.bid_price) AS highest, COUNT(*) AS bids
FROM ClosedAuction C WINDOW(NOW), Bid B WINDOW(RANGE 2 DAYS)
WHERE C.itemID = B.itemID
GROUP BY C.itemID, C.closing_price
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local", "reference"])
    session = ms.Session(parser.parse_args(arguments).engine)
    for row in session.sql(STATEMENTS).run().to_pylist():
        print(
            f"{row['valid_from']:%d %b %H:%M} item {row['itemID']}: sold for "
            f"{row['closing_price']:.0f}, highest bid {row['highest']:.0f} of {row['bids']}"
        )


if __name__ == "__main__":
    main()
