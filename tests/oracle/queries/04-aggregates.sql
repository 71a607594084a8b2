-- Aggregates over everything.

SELECT COUNT(*) AS a, COUNT(price) AS b, COUNT(DISTINCT price) AS c, COUNT(price, ok) AS d, COUNT(DISTINCT item, bidder) AS e FROM Bid WINDOW(RANGE 7);
SELECT SUM(price) AS a, SUM(fee) AS b, SUM(score) AS c, SUM(DISTINCT price) AS d, SUM(price * 2 + item) AS e FROM Bid WINDOW(RANGE 7);
SELECT AVG(price) AS a, AVG(fee) AS b, AVG(score) AS c, AVG(DISTINCT price) AS d, MEAN(price) AS e FROM Bid WINDOW(RANGE 7);
SELECT MIN(price) AS a, MAX(price) AS b, MIN(bidder) AS c, MAX(bidder) AS d, MIN(day) AS e, MAX(day) AS f, MIN(score) AS g, MAX(score) AS h, MIN(fee) AS i, MAX(ok) AS j FROM Bid WINDOW(RANGE 7);
SELECT VARIANCE(price) AS a, VAR_SAMP(price) AS b, VAR_POP(price) AS c, STDDEV(price) AS d, STDDEV_POP(price) AS e, STDDEV_SAMP(price) AS f, STD(price) AS g FROM Bid WINDOW(RANGE 9);
SELECT VARIANCE(score) AS a, STDDEV(score) AS b, VAR_POP(score) AS c FROM Bid WINDOW(RANGE 5);
SELECT MEDIAN(price) AS a, MEDIAN(score) AS b, PERCENTILE(price, 0.25) AS c, PERCENTILE(price, 0.9) AS d, MEDIAN(fee) AS e FROM Bid WINDOW(RANGE 7);
SELECT BOOL_AND(ok) AS a, BOOL_OR(ok) AS b, EVERY(ok) AS c, SOME(ok) AS d, COUNT_IF(ok) AS e, COUNT_IF(price > 20) AS f FROM Bid WINDOW(RANGE 5);
SELECT MIN_BY(bidder, price) AS a, MAX_BY(bidder, price) AS b, MAX_BY(price, score) AS c, MIN_BY(price, item) AS d FROM Bid WINDOW(RANGE 9);
SELECT FIRST(price) AS a, LAST(price) AS b, FIRST(bidder) AS c, LAST(ok) AS d, ANY_VALUE(item) AS e FROM Bid WINDOW(RANGE 7);
SELECT ARRAY_AGG(price) AS a, COLLECT_LIST(bidder) AS b FROM Bid WINDOW(RANGE 7);
SELECT ARRAY_AGG(DISTINCT price) AS a FROM Bid WINDOW(RANGE 9);
SELECT FIRST(price) AS a, LAST(price) AS b, ARRAY_AGG(item) AS c FROM Bid WINDOW(ROWS 4);
SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 5) WHERE price > 1000;
SELECT SUM(price) AS s, MAX(bidder) AS m, ARRAY_AGG(price) AS a FROM Bid WINDOW(RANGE 5) WHERE price > 1000;
SELECT COUNT(*) + 1 AS a, SUM(price) / COUNT(*) AS b, MAX(price) - MIN(price) AS c FROM Bid WINDOW(RANGE 40);
SELECT CASE WHEN COUNT(*) > 3 THEN 'busy' ELSE 'calm' END AS c FROM Bid WINDOW(RANGE 6);
SELECT SUM(CASE WHEN ok THEN price ELSE 0 END) AS s, COUNT(CASE WHEN ok THEN 1 END) AS c FROM Bid WINDOW(RANGE 6);
SELECT SUM(score) AS s FROM Bid WINDOW(RANGE 3);
SELECT SUM(score) AS s, AVG(score) AS a FROM Bid WINDOW(UNBOUNDED) WHERE NOT ISNAN(score);
SELECT COUNT(*) AS n, SUM(pct) AS s, FIRST(label) AS f FROM Rate;
SELECT SUM(price) FILTER (WHERE ok) AS a, COUNT(*) FILTER (WHERE price > 20) AS b, AVG(score) FILTER (WHERE item = 1) AS c FROM Bid WINDOW(RANGE 8);
SELECT FIRST(price) FILTER (WHERE ok) AS a, ARRAY_AGG(price) FILTER (WHERE item = 2) AS b, COUNT(DISTINCT bidder) FILTER (WHERE price > 9) AS c, MAX_BY(item, price) FILTER (WHERE NOT ok) AS d FROM Bid WINDOW(RANGE 8);
SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 6) HAVING COUNT(*) > 2;
SELECT MAX(price) AS m FROM Bid WINDOW(RANGE 6) HAVING SUM(price) > 50;

-- Groups.

SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item;
SELECT item, bidder, SUM(price) AS s FROM Bid WINDOW(RANGE 12) GROUP BY item, bidder;
SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item;
SELECT item FROM Bid WINDOW(RANGE 8) GROUP BY item;
SELECT price % 10 AS digit, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY price % 10;
SELECT price DIV 20 AS band, MIN(price) AS l, MAX(price) AS h FROM Bid WINDOW(RANGE 8) GROUP BY band;
SELECT price DIV 20 AS band, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY 1;
SELECT CASE WHEN price > 30 THEN 'dear' ELSE 'cheap' END AS class, AVG(price) AS a FROM Bid WINDOW(RANGE 8) GROUP BY CASE WHEN price > 30 THEN 'dear' ELSE 'cheap' END;
SELECT item + 1 AS i, item * 2 AS j, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item;
SELECT score, COUNT(*) AS n FROM Bid WINDOW(RANGE 12) GROUP BY score;
SELECT ok, SUM(score) AS s, AVG(fee) AS f FROM Bid WINDOW(RANGE 9) GROUP BY ok;
SELECT day, FIRST(bidder) AS f, LAST(bidder) AS l, ARRAY_AGG(price) AS a FROM Bid WINDOW(RANGE 15) GROUP BY day;
SELECT item, MEDIAN(price) AS m, STDDEV_POP(price) AS d FROM Bid WINDOW(RANGE 20) GROUP BY item;
SELECT item, COUNT(DISTINCT bidder) AS b, MIN_BY(bidder, price) AS w FROM Bid WINDOW(ROWS 8) GROUP BY item;
SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item HAVING COUNT(*) > 1;
SELECT item FROM Bid WINDOW(RANGE 8) GROUP BY item HAVING MAX(price) > 30 AND MIN(price) < 60;
SELECT item, SUM(price) AS s FROM Bid WINDOW(RANGE 8) WHERE ok GROUP BY item HAVING item > 1 OR SUM(price) > 40;
SELECT item, COUNT(*) AS n FROM Bid GROUP BY item;
SELECT YEAR(day) AS y, COUNT(*) AS n FROM Bid WINDOW(UNBOUNDED) GROUP BY YEAR(day);
SELECT UPPER(bidder) AS u, COUNT(*) AS n FROM Bid WINDOW(RANGE 15) GROUP BY UPPER(bidder);
SELECT b.item, i.name, SUM(b.price - i.cost) AS gain FROM Bid WINDOW(RANGE 9) AS b JOIN Item WINDOW(RANGE 12) AS i ON b.item = i.item GROUP BY b.item, i.name;
SELECT FIRST(b.price) AS f, LAST(i.name) AS l, ARRAY_AGG(b.price) AS a FROM Bid WINDOW(RANGE 5) AS b JOIN Item WINDOW(RANGE 7) AS i ON b.item = i.item;
SELECT FIRST(q.p) AS f, LAST(q.p) AS l FROM (SELECT price + 1 AS p FROM Bid WINDOW(RANGE 7) WHERE ok) AS q;
SELECT FIRST(n) AS f, ARRAY_AGG(item) AS a FROM Totals;
SELECT FIRST(price) AS f, LAST(price) AS l FROM Bid WINDOW(RANGE 9) WHERE item IN (SELECT item FROM Item WINDOW(RANGE 9));
SELECT SUM(n) AS s FROM (SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item) AS q;
SELECT n, COUNT(*) AS m FROM (SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item) AS q GROUP BY n;

-- DISTINCT.

SELECT DISTINCT item FROM Bid WINDOW(RANGE 8);
SELECT DISTINCT item, bidder FROM Bid WINDOW(RANGE 8);
SELECT DISTINCT score FROM Bid WINDOW(RANGE 12);
SELECT DISTINCT price > 30 AS dear FROM Bid WINDOW(RANGE 5);
SELECT DISTINCT COUNT(*) AS n FROM Bid WINDOW(RANGE 8) GROUP BY item;
SELECT DISTINCT * FROM Bid WINDOW(RANGE 4);
SELECT DISTINCT b.bidder FROM Bid WINDOW(RANGE 6) AS b JOIN Person WINDOW(RANGE 10) AS p ON b.bidder = p.bidder;

-- The stream's order passes through what only filters.

SELECT ARRAY_AGG(price) AS a FROM Bid WINDOW(RANGE 6) AS b LEFT SEMI JOIN Item WINDOW(RANGE 9) AS i ON b.item = i.item;
SELECT item, FIRST(price) AS f, LAST(bidder) AS l FROM Bid WINDOW(RANGE 9) AS b LEFT ANTI JOIN Person WINDOW(RANGE 4) AS p ON b.bidder = p.bidder GROUP BY item;
SELECT ARRAY_AGG(price) AS a FROM Bid WINDOW(RANGE 6) AS b WHERE NOT EXISTS (SELECT 1 FROM Item WINDOW(RANGE 3) AS i WHERE b.item = i.item);
SELECT q.item, LAST(q.price) AS l FROM (SELECT item, price FROM Bid WINDOW(RANGE 9) WHERE item IN (SELECT item FROM Item WINDOW(RANGE 9))) AS q GROUP BY q.item;

-- the order of a join is that of its visible columns, also where a window has numbered the rows
SELECT a.ts AS ts, ARRAY_AGG(b.price) AS p FROM Bid WINDOW(PARTITION BY item ROWS 2) AS a, Bid WINDOW(RANGE 9) AS b GROUP BY a.ts;
SELECT FIRST(b.item) AS f, LAST(b.item) AS l FROM Bid WINDOW(ROWS 3) AS a, Bid WINDOW(ROWS 4) AS b;
