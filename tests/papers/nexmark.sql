-- The statements that K (Krämer 2007) prints, over the streams of the NEXMark benchmark.
--
-- A line `-- @name` begins a statement; what follows it up to the next one is that statement. Slips of
-- the printed text that are corrected here:
--
--   7.2   Short Auctions: OpenAuction.* under the alias O is O.*
--   7.3   Closing Price: no comma after CurrentPrice P
--   7.4   Highest Bid: no comma after the window
--   17.7  Monitor New Users: the subquery of FROM stands in brackets and has the alias P, which the
--         select list uses; Person, a relation in K, is a stream of the people who register
--   15.1  CQL: the select list L and the condition C are those of a query of ours
--
-- Accepted as printed, though the rest of K writes it otherwise: the arguments of SOURCE by position
-- (7.1), CQL's brackets around windows (7.4, Hot Item), BID for Bid (7.4).

-- @OpenAuction                                 7.1, as printed
CREATE STREAM OpenAuction(itemID INT, sellerID INT,
                           start_price REAL, timestamp TIMESTAMP)
  SOURCE establishConnection('port34100', 'converter')
  ORDERED BY timestamp;

-- @ClosedAuction                               ours, after figure 6.4
CREATE STREAM ClosedAuction(itemID INT, buyerID INT, timestamp TIMESTAMP)
  SOURCE establishConnection('port34101', 'converter')
  ORDERED BY timestamp;

-- @Bid                                         ours, after figure 6.4
CREATE STREAM Bid(itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
  SOURCE establishConnection('port34102', 'converter')
  ORDERED BY timestamp;

-- @Person                                      ours, after figure 6.4
CREATE STREAM Person(id INT, name STRING, registrationTime TIMESTAMP)
  SOURCE establishConnection('port34103', 'converter')
  ORDERED BY registrationTime;

-- @sensor                                      ours, after 20.1: timestamps are milliseconds
CREATE STREAM sensor(temperature DOUBLE, time BIGINT)
  SOURCE establishConnection('port34104', 'converter')
  ORDERED BY time UNIT MILLISECONDS;

-- @currency_conversion                         7.2
SELECT itemID, DolToEuro(bid_price), bidderID
FROM Bid;

-- @selection                                   7.2
SELECT Bid.*
FROM Bid
WHERE itemID = 1007 OR itemID = 1020
      OR itemID = 2001 OR itemID = 2019
      OR itemID = 1087;

-- @short_auctions                              7.2
SELECT O.*
FROM OpenAuction O WINDOW(RANGE 5 HOURS),
      ClosedAuction C
WHERE O.itemID = C.itemID;

-- @CurrentPrice                                7.3
CREATE STREAM CurrentPrice AS
    SELECT P.itemID, P.price, O.sellerID AS sellerID
    FROM ((SELECT itemID, bid_price AS price
            FROM Bid WINDOW(RANGE 2 DAYS))
          UNION ALL
        (SELECT itemID, start_price AS price
            FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
              ClosedAuction C,
              OpenAuction O WINDOW(RANGE 2 DAYS)
    WHERE P.itemID = C.itemID AND C.itemID = O.itemID;

-- @ClosingPriceStream                          7.3
CREATE STREAM ClosingPriceStream AS
    SELECT itemID, sellerID, MAX(P.price) AS price
    FROM CurrentPrice P
    GROUP BY P.itemID, P.sellerID;

-- @highest_bid                                 7.4
SELECT itemID, bid_price
FROM   Bid WINDOW(RANGE 10 MINUTES)
WHERE  bid_price = (SELECT MAX(bid_price)
                    FROM BID WINDOW(RANGE 10 MINUTES));

-- @hot_item                                    7.4
SELECT itemID
FROM  (SELECT    B1.itemID AS itemID, COUNT(*) AS num
       FROM      Bid [RANGE 60 MINUTES] B1
       GROUP BY B1.itemID)
WHERE num >= ALL(SELECT COUNT(*)
                  FROM Bid [RANGE 60 MINUTES] B2
                  GROUP BY B2.itemID);

-- @average_selling_price                       12.2
SELECT sellerID, AVG(price)
FROM ClosingPriceStream WINDOW(PARTITION BY sellerID ROWS 10)
GROUP BY sellerID;

-- @cql_istream_unbounded                       15.1.1, with L = itemID, bid_price and C = bid_price > 10
SELECT Istream(itemID, bid_price) FROM Bid [Range Unbounded] WHERE bid_price > 10;

-- @cql_rstream_now                             15.1.1
SELECT Rstream(itemID, bid_price) FROM Bid [Now] WHERE bid_price > 10;

-- @highest_bid_every_10_minutes                17.1
SELECT itemID, bid_price
  FROM Bid WINDOW(RANGE 10 MINUTES
                  SLIDE 10 MINUTES)
 WHERE bid_price = (SELECT MAX(bid_price)
                      FROM Bid WINDOW(RANGE 10 MINUTES
                                      SLIDE 10 MINUTES));

-- @NewPersonStream                             17.7
CREATE STREAM NewPersonStream AS
    SELECT P.id, P.name
    FROM   Istream(Person) P;

-- @monitor_new_users                           17.7
SELECT DISTINCT(P.id, P.name)
FROM   (SELECT P.id, P.name
        FROM   NewPersonStream WINDOW(RANGE 12 HOURS) P, OpenAuction O
        WHERE  P.id = O.sellerID) P;

-- @average_temperature                         20.1
SELECT AVG(temperature)
  FROM sensor WINDOW(RANGE 1 HOUR) GRANULARITY(1 MINUTE);

-- @average_temperature_with_bounds             21.1
SELECT AVG(temperature)
  FROM sensor WINDOW(RANGE MIN 12 HOURS, MAX 24 HOURS)
        GRANULARITY(COARSEST 2 HOURS, FINEST 10 SECONDS);

-- @average_temperature_of_rows_with_bounds     21.2, the window that closes the section
SELECT AVG(temperature)
  FROM sensor WINDOW(ROWS MIN 50, MAX 200);
