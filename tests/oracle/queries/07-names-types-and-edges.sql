-- Names and spelling.

select ITEM, Price from bid window(range 5) where PRICE > 20;
SELECT `item`, b.`price` AS `my price` FROM Bid WINDOW(RANGE 5) AS b;
SELECT q.`my col` + 1 AS `select`, q.`a.b` FROM (SELECT item AS `my col`, price AS `a.b` FROM Bid WINDOW(RANGE 5)) AS q WHERE q.`my col` > 1;
SELECT `group`.item, COUNT(*) AS `count` FROM Bid WINDOW(RANGE 5) AS `group` GROUP BY `group`.item;
SELECT 'it\'s' AS a, 'naïve ∞' AS b, 'x''y' AS c, "double" AS d, '' AS e, 'tab\there' AS f, 'back\\slash' AS g FROM Bid WHERE item = 1;
SELECT item, item, price AS item FROM Bid WINDOW(RANGE 3);
SELECT COUNT(*), MAX(price), item + 1 FROM Bid WINDOW(RANGE 5) GROUP BY item;
SELECT a.item, b.item, c.item FROM Bid WINDOW(RANGE 3) a JOIN Item WINDOW(RANGE 9) b ON a.item = b.item JOIN Bid WINDOW(RANGE 2) c ON b.item = c.item;

-- How strongly operators bind.

SELECT price + item * 2 - 3 AS a, (price + item) * 2 - 3 AS b, price - (item - 3) AS c, price - item - 3 AS d, 2 * (price % 7) AS e, -(price + 1) AS f, - price % 7 AS g FROM Bid;
SELECT item FROM Bid WHERE ok OR price > 30 AND item = 2;
SELECT item FROM Bid WHERE (ok OR price > 30) AND item = 2;
SELECT item FROM Bid WHERE NOT ok AND NOT price > 30 OR NOT (item = 2 AND ok);
SELECT NOT item = 2 AS a, NOT (item = 2) IS NULL AS b, (item = 2) = (price > 20) AS c, item = 2 IS NOT NULL AS d FROM Bid;
SELECT price / 2 / 5 AS a, price / (2 / 5) AS b, price DIV 7 % 3 AS c, price DIV (7 % 3) AS d FROM Bid;
SELECT bidder || CAST(item + 1 AS STRING) AS a, CASE WHEN ok THEN 1 ELSE 0 END + 1 AS b, item BETWEEN 1 + 1 AND 2 * 2 AS c, item IN (1 + 1, 3) AND ok AS d FROM Bid;
SELECT price > 10 AND price < 40 OR price IS NULL AS a, (price > 10) <> ok AS b FROM Bid;

-- Types that meet.

SELECT price > 24.5 AS a, fee > 1 AS b, fee = 4.0e0 AS c, score > fee AS d, price = '25' AS e, day = '2024-02-29' AS f FROM Bid;
SELECT price + fee AS a, price + 0.5 AS b, price * 1.5e0 AS c, fee * price AS d, price + 3000000000 AS e FROM Bid;
SELECT COALESCE(price, fee) AS a, COALESCE(fee, 1) AS b, IF(ok, price, score) AS c, GREATEST(price, fee) AS d, NULLIF(price, 25.0) AS e FROM Bid;
SELECT CASE WHEN ok THEN price ELSE fee END AS a, CASE WHEN ok THEN NULL ELSE day END AS b FROM Bid;
SELECT item IN (1, 2.0) AS a, fee IN (1.25, 4) AS b, score IN (3, 2.5) AS c FROM Bid;
SELECT b.price, i.rate FROM Bid WINDOW(RANGE 6) AS b JOIN Item WINDOW(RANGE 9) AS i ON b.price = i.rate * 10 OR b.fee > i.rate;
SELECT price FROM Bid WINDOW(RANGE 6) WHERE fee IN (SELECT rate FROM Item WINDOW(RANGE 9));
SELECT price FROM Bid WINDOW(RANGE 6) WHERE price < (SELECT MAX(rate) * 20 FROM Item WINDOW(RANGE 9));
SELECT fee AS a FROM Bid WINDOW(RANGE 4) EXCEPT ALL SELECT score FROM Bid WINDOW(RANGE 4);
SELECT SUM(fee * price) AS a, SUM(price / 4) AS b, AVG(fee + 1) AS c, SUM(CAST(ok AS INT)) AS d, MAX(price + fee) AS e FROM Bid WINDOW(RANGE 6);

-- Which name is meant.

SELECT item % 2 AS item, COUNT(*) AS n FROM Bid WINDOW(RANGE 6) GROUP BY Bid.item;
SELECT -item AS item, price FROM Bid WINDOW(RANGE 6) ORDER BY item LIMIT 2;
SELECT item AS price, price AS p FROM Bid WINDOW(RANGE 6) ORDER BY price DESC, p LIMIT 2;
SELECT b.item, (SELECT COUNT(*) FROM Item WINDOW(RANGE 9) WHERE item = b.item) AS n FROM Bid WINDOW(RANGE 4) AS b;
SELECT item FROM Bid WINDOW(RANGE 6) WHERE EXISTS (SELECT 1 FROM Person WINDOW(RANGE 9) WHERE age > price);
SELECT price FROM Bid WINDOW(RANGE 6) AS x WHERE price > ALL (SELECT price FROM Bid WINDOW(RANGE 3) AS x WHERE item = 1);

-- Edges of joins.

SELECT item, a.price, b.cost, c.lo FROM Bid WINDOW(RANGE 4) AS a FULL JOIN Item WINDOW(RANGE 5) AS b USING (item) FULL JOIN Rate AS c USING (item);
SELECT item, a.price, b.cost, c.lo FROM Bid WINDOW(RANGE 4) AS a LEFT JOIN Item WINDOW(RANGE 5) AS b USING (item) LEFT JOIN Rate AS c USING (item);
SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 4) AS a FULL JOIN Item WINDOW(RANGE 5) AS b USING (item) WHERE item > 1 GROUP BY item;
SELECT a.price, b.cost FROM Bid WINDOW(RANGE 5) AS a LEFT JOIN Item WINDOW(RANGE 5) AS b ON FALSE;
SELECT a.price, b.cost FROM Bid WINDOW(RANGE 5) AS a FULL JOIN Item WINDOW(RANGE 5) AS b ON NULL;
SELECT a.price, b.cost FROM Bid WINDOW(RANGE 3) AS a FULL JOIN Item WINDOW(RANGE 5) AS b ON a.ok;
SELECT a.price, q.n FROM Bid WINDOW(RANGE 3) AS a LEFT JOIN (SELECT COUNT(*) AS n FROM Item WINDOW(RANGE 5)) AS q ON q.n > 1;
SELECT q.n, b.item FROM (SELECT COUNT(*) AS n FROM Item WINDOW(RANGE 5)) AS q LEFT JOIN Bid WINDOW(RANGE 3) AS b ON b.item < q.n;
SELECT a.item FROM Bid WINDOW(RANGE 6) AS a LEFT JOIN Item WINDOW(RANGE 8) AS b ON a.item = b.item LEFT ANTI JOIN Rate AS c ON c.item = b.item;

-- Edges of subqueries.

SELECT price FROM Bid WINDOW(RANGE 6) WHERE EXISTS (SELECT COUNT(*) FROM Item WHERE FALSE);
SELECT price FROM Bid WINDOW(RANGE 6) WHERE NOT EXISTS (SELECT MAX(cost) FROM Item WHERE FALSE);
SELECT price FROM Bid WINDOW(RANGE 6) WHERE price IN (SELECT MAX(cost) FROM Item WINDOW(RANGE 3));
SELECT price FROM Bid WINDOW(RANGE 6) WHERE price NOT IN (SELECT MAX(cost) FROM Item WINDOW(RANGE 3));
SELECT price FROM Bid WINDOW(RANGE 6) WHERE price NOT IN (SELECT cost FROM Item WHERE FALSE);
SELECT price FROM Bid WINDOW(RANGE 6) WHERE NULL NOT IN (SELECT cost FROM Item WINDOW(RANGE 3));
SELECT price FROM Bid WINDOW(RANGE 6) WHERE 1 IN (SELECT item FROM Item WINDOW(RANGE 3));
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE b.price NOT IN (SELECT c.price FROM Bid WINDOW(RANGE 3) AS c WHERE c.item = b.item AND c.price IS NOT NULL) IS NOT FALSE;
SELECT b.item, (SELECT COUNT(*) FROM Bid WINDOW(RANGE 6) AS c WHERE c.item = b.item HAVING COUNT(*) > 1) AS n FROM Bid WINDOW(RANGE 6) AS b;
SELECT b.item, (SELECT COUNT(*) + COUNT(c.price) FROM Bid WINDOW(RANGE 6) AS c WHERE c.item = b.item + 1) AS n FROM Bid WINDOW(RANGE 6) AS b;
SELECT b.item, (SELECT CASE WHEN COUNT(*) = 0 THEN 'none' ELSE MAX(i.name) END FROM Item WINDOW(RANGE 6) AS i WHERE i.item = b.item) AS n FROM Bid WINDOW(RANGE 6) AS b;
SELECT b.item, (SELECT COALESCE(SUM(i.cost), 0) FROM Item WINDOW(RANGE 6) AS i WHERE b.item = i.item AND b.price > i.cost) AS n FROM Bid WINDOW(RANGE 6) AS b;
SELECT b.item, (SELECT DISTINCT COUNT(*) FROM Item WINDOW(RANGE 6) AS i WHERE i.item = b.item) AS n FROM Bid WINDOW(RANGE 6) AS b;
SELECT b.item, (SELECT ARRAY_AGG(i.cost) FROM Item WINDOW(RANGE 12) AS i WHERE i.item = b.item) AS a, (SELECT FIRST(i.name) FROM Item WINDOW(RANGE 12) AS i WHERE i.item >= b.item) AS f FROM Bid WINDOW(RANGE 4) AS b;
SELECT b.item, (SELECT AVG(i.cost) FROM Item WINDOW(RANGE 12) AS i WHERE i.item = b.item AND i.name = 'desk') AS a FROM Bid WINDOW(RANGE 4) AS b WHERE b.item IS NULL OR b.item = 3;
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE b.price = (SELECT c.price FROM Bid WINDOW(RANGE 6) AS c WHERE c.bidder = b.bidder ORDER BY c.price DESC NULLS LAST LIMIT 1);
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE b.price IN (SELECT c.price FROM Bid WINDOW(RANGE 6) AS c WHERE c.item = b.item ORDER BY c.price DESC LIMIT 2);
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE b.item IN (SELECT i.item FROM Item WINDOW(RANGE 9) AS i WHERE i.cost < b.price EXCEPT SELECT r.item FROM Rate AS r WHERE r.pct < b.score);
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE EXISTS (SELECT 1 FROM Item WINDOW(RANGE 9) AS i LEFT JOIN Rate AS r ON r.item = i.item AND r.pct < b.score WHERE i.item = b.item AND r.item IS NULL);
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE EXISTS (SELECT 1 FROM Item WINDOW(RANGE 9) AS i FULL JOIN Rate AS r ON r.item = i.item AND i.cost < b.price WHERE r.item = b.item OR i.item = b.item);
SELECT b.price FROM Bid WINDOW(RANGE 6) AS b WHERE b.item IN (SELECT q.item FROM (SELECT i.item, i.cost FROM Item WINDOW(RANGE 9) AS i WHERE i.cost < b.price) AS q WHERE q.cost > 5);
SELECT item, COUNT(*) AS n, (SELECT COUNT(*) FROM Item WINDOW(RANGE 9) AS i WHERE i.item = b.item) AS m FROM Bid WINDOW(RANGE 6) AS b GROUP BY item;
SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 6) AS b HAVING COUNT(*) > (SELECT COUNT(*) FROM Item WINDOW(RANGE 6));
SELECT item FROM Bid WINDOW(RANGE 8) GROUP BY item ORDER BY (SELECT MAX(cost) FROM Item WINDOW(RANGE 9) AS i WHERE i.item = Bid.item) DESC LIMIT 2;
SELECT item FROM Bid WINDOW(RANGE 8) ORDER BY item IN (SELECT item FROM Item WINDOW(RANGE 9)), price LIMIT 3;
