-- The streams of `millstream demo`: an auction house in which ten seconds pass in one.
CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
    SOURCE nexmark('Bid', speed => 10, bids => 40000, auctions => 4000, people => 400,
                   rate => 20, burst => 2, longest => '40 seconds')
    ORDERED BY timestamp;

CREATE STREAM Item (id INT, name STRING, description STRING, categoryID INT,
                    registrationTime TIMESTAMP)
    SOURCE nexmark('Item', speed => 10, bids => 40000, auctions => 4000, people => 400,
                   rate => 20, burst => 2, longest => '40 seconds')
    ORDERED BY registrationTime;

CREATE STREAM OpenAuction (itemID INT, sellerID INT, start_price REAL, timestamp TIMESTAMP)
    SOURCE nexmark('OpenAuction', speed => 10, bids => 40000, auctions => 4000, people => 400,
                   rate => 20, burst => 2, longest => '40 seconds')
    ORDERED BY timestamp;

CREATE STREAM ClosedAuction (itemID INT, buyerID INT, closing_price REAL, timestamp TIMESTAMP)
    SOURCE nexmark('ClosedAuction', speed => 10, bids => 40000, auctions => 4000, people => 400,
                   rate => 20, burst => 2, longest => '40 seconds')
    ORDERED BY timestamp;
