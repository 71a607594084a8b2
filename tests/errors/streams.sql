CREATE STREAM Bid (auction INT, price DOUBLE, bidder STRING, tags ARRAY<STRING>, ts TIMESTAMP)
    SOURCE file('bids.csv') ORDERED BY ts;
CREATE STREAM Auction (id INT, seller STRING, reserve DECIMAL(10, 2), category INT, ts TIMESTAMP)
    SOURCE file('auctions.csv') ORDERED BY ts DELAY 5 SECONDS;
CREATE STREAM Person (name STRING, city STRING, since TIMESTAMP, until TIMESTAMP)
    SOURCE file('people.csv') VALID FROM since TO until;
CREATE STREAM Raw (t BIGINT, x INT, y STRING) SOURCE file('raw.csv') ORDERED BY t;
CREATE STREAM Tick (t BIGINT, x INT) SOURCE file('ticks.csv') ORDERED BY t UNIT MILLISECONDS;
CREATE STREAM Best AS SELECT auction, MAX(price) AS price
    FROM Bid WINDOW(RANGE 10 MINUTES) GROUP BY auction;
CREATE STREAM Minutely AS SELECT auction, price FROM Bid WINDOW(RANGE 10 MINUTES) GRANULARITY(1 MINUTE);
