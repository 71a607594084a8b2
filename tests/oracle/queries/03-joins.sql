-- Inner joins.

SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b JOIN Item WINDOW(RANGE 10) AS i ON b.item = i.item;
SELECT b.price, i.name FROM Bid [RANGE 6] b, Item [RANGE 10] i WHERE b.item = i.item AND b.price > i.cost;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 3) AS b CROSS JOIN Item WINDOW(RANGE 4) AS i;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 3) AS b, Item WINDOW(RANGE 4) AS i;
SELECT b.price, i.cost FROM Bid WINDOW(RANGE 4) AS b JOIN Item WINDOW(RANGE 8) AS i ON b.price < i.cost;
SELECT b.price, i.cost FROM Bid WINDOW(RANGE 4) AS b JOIN Item WINDOW(RANGE 8) AS i ON b.item = i.item OR b.price = i.cost;
SELECT b.item FROM Bid WINDOW(RANGE 4) AS b JOIN Item WINDOW(RANGE 8) AS i ON b.item <=> i.item;
SELECT b.price, i.name FROM Bid AS b JOIN Item WINDOW(RANGE 10) AS i ON b.item = i.item;
SELECT b.price, i.name FROM Bid AS b JOIN Item AS i ON b.item = i.item;
SELECT a.price, b.price AS other FROM Bid WINDOW(RANGE 5) AS a JOIN Bid WINDOW(RANGE 9) AS b ON a.item = b.item AND a.ts < b.ts;
SELECT b.bidder, p.city FROM Bid WINDOW(ROWS 4) AS b JOIN Person WINDOW(PARTITION BY bidder ROWS 1) AS p ON b.bidder = p.bidder;
SELECT b.price, i.name, p.city FROM Bid WINDOW(RANGE 6) AS b JOIN Item WINDOW(RANGE 12) AS i ON b.item = i.item JOIN Person WINDOW(RANGE 15) AS p ON p.bidder = b.bidder;
SELECT b.price, i.name, p.city FROM Bid [RANGE 6] b, Item [RANGE 12] i, Person [RANGE 15] p WHERE b.item = i.item AND p.bidder = b.bidder AND p.age > i.cost;
SELECT a.price, c.price AS q FROM Bid [RANGE 4] a, Bid [RANGE 4] b, Bid [RANGE 4] c WHERE a.item = b.item AND b.bidder = c.bidder AND a.price < 30;
SELECT UPPER(b.bidder) AS u, p.age FROM Bid WINDOW(RANGE 6) AS b JOIN Person WINDOW(RANGE 9) AS p ON UPPER(b.bidder) = UPPER(p.bidder);
SELECT b.price FROM (Bid WINDOW(RANGE 6) AS b JOIN Item WINDOW(RANGE 12) AS i ON b.item = i.item) JOIN Person WINDOW(RANGE 15) AS p ON p.bidder = b.bidder;
SELECT b.price, q.name FROM Bid WINDOW(RANGE 6) AS b JOIN (Item WINDOW(RANGE 12) AS i JOIN Person WINDOW(RANGE 15) AS p ON p.age > i.cost) AS q ON q.bidder = b.bidder AND q.item = b.item;
SELECT b.item, i.item AS other FROM Bid WINDOW(RANGE 5) AS b JOIN Item WINDOW(RANGE 7) AS i ON TRUE WHERE b.price + i.cost > 100;

-- A comma binds less than JOIN.

SELECT a.price, b.age, c.cost FROM Bid WINDOW(RANGE 3) AS a, Person WINDOW(RANGE 2) AS b RIGHT JOIN Item WINDOW(RANGE 5) AS c ON b.age = c.cost;
SELECT a.price, b.age, c.cost FROM Bid WINDOW(RANGE 3) AS a CROSS JOIN Person WINDOW(RANGE 2) AS b RIGHT JOIN Item WINDOW(RANGE 5) AS c ON b.age = c.cost;
SELECT a.price, b.cost, c.age, d.pct FROM Bid [RANGE 3] a LEFT JOIN Item [RANGE 5] b ON a.item = b.item, Person [RANGE 4] c FULL JOIN Rate d ON c.age = d.item WHERE a.price < 60;
SELECT q.price FROM (SELECT a.price, c.cost FROM Person WINDOW(RANGE 9) AS b, Bid AS a LEFT JOIN Item WINDOW(RANGE 5) AS c ON a.item = c.item) AS q WINDOW(RANGE 3);

-- USING and NATURAL.

SELECT * FROM Bid WINDOW(RANGE 5) JOIN Item WINDOW(RANGE 9) USING (item);
SELECT item, price, name FROM Bid WINDOW(RANGE 5) JOIN Item WINDOW(RANGE 9) USING (item);
SELECT item, b.item AS l, i.item AS r FROM Bid WINDOW(RANGE 5) AS b LEFT JOIN Item WINDOW(RANGE 9) AS i USING (item);
SELECT item, b.item AS l, i.item AS r FROM Bid WINDOW(RANGE 5) AS b RIGHT JOIN Item WINDOW(RANGE 9) AS i USING (item);
SELECT item, b.item AS l, i.item AS r FROM Bid WINDOW(RANGE 5) AS b FULL JOIN Item WINDOW(RANGE 9) AS i USING (item);
SELECT * FROM Bid WINDOW(RANGE 5) AS b FULL OUTER JOIN Item WINDOW(RANGE 9) AS i USING (item);
SELECT * FROM Bid WINDOW(RANGE 5) AS b RIGHT JOIN Item WINDOW(RANGE 9) AS i USING (item);
SELECT * FROM Bid WINDOW(RANGE 5) NATURAL JOIN Item WINDOW(RANGE 9);
SELECT * FROM Bid WINDOW(RANGE 5) NATURAL LEFT JOIN Item WINDOW(RANGE 9);
SELECT * FROM Recent NATURAL JOIN Cheap;
SELECT * FROM (SELECT item, bidder, price FROM Bid WINDOW(RANGE 7)) AS x NATURAL JOIN (SELECT price, ts, item FROM Bid WINDOW(RANGE 4)) AS y;
SELECT * FROM Bid WINDOW(RANGE 5) JOIN Item WINDOW(RANGE 9) USING (item) JOIN Person WINDOW(RANGE 12) USING (bidder);
SELECT item, COUNT(*) AS n FROM Bid WINDOW(RANGE 8) JOIN Item WINDOW(RANGE 12) USING (item) GROUP BY item;
SELECT item, price FROM Bid WINDOW(RANGE 5) LEFT SEMI JOIN Item WINDOW(RANGE 9) USING (item);

-- Outer joins.

SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b LEFT JOIN Item WINDOW(RANGE 4) AS i ON b.item = i.item;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b LEFT OUTER JOIN Item WINDOW(RANGE 4) AS i ON b.item = i.item AND i.cost > 8;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b LEFT JOIN Item WINDOW(RANGE 4) AS i ON b.item = i.item WHERE i.name IS NULL;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b LEFT JOIN Item WINDOW(RANGE 4) AS i ON b.item = i.item AND b.ok;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b RIGHT JOIN Item WINDOW(RANGE 8) AS i ON b.item = i.item;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 2) AS b RIGHT JOIN Item WINDOW(RANGE 8) AS i ON b.item = i.item AND b.price > 20;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 4) AS b FULL JOIN Item WINDOW(RANGE 4) AS i ON b.item = i.item;
SELECT b.price, i.cost FROM Bid WINDOW(RANGE 4) AS b FULL OUTER JOIN Item WINDOW(RANGE 6) AS i ON b.price < i.cost;
SELECT b.price, i.name FROM Bid AS b LEFT JOIN Item AS i ON b.item = i.item;
SELECT b.price, i.name, p.city FROM Bid WINDOW(RANGE 5) AS b LEFT JOIN Item WINDOW(RANGE 5) AS i ON b.item = i.item LEFT JOIN Person WINDOW(RANGE 7) AS p ON p.bidder = b.bidder;
SELECT b.price, i.name, p.city FROM Bid WINDOW(RANGE 5) AS b FULL JOIN Item WINDOW(RANGE 5) AS i ON b.item = i.item JOIN Person WINDOW(RANGE 7) AS p ON p.age > i.cost OR p.bidder = b.bidder;
SELECT p.bidder, COUNT(b.price) AS n, COUNT(*) AS m FROM Person WINDOW(RANGE 10) AS p LEFT JOIN Bid WINDOW(RANGE 8) AS b ON p.bidder = b.bidder GROUP BY p.bidder;
SELECT b.item, q.total FROM Bid WINDOW(RANGE 3) AS b LEFT JOIN (SELECT item, SUM(cost) AS total FROM Item WINDOW(RANGE 12) GROUP BY item) AS q ON q.item = b.item;

-- Semi-joins and anti-joins.

SELECT price, item FROM Bid WINDOW(RANGE 6) AS b LEFT SEMI JOIN Item WINDOW(RANGE 8) AS i ON b.item = i.item;
SELECT price, item FROM Bid WINDOW(RANGE 6) AS b SEMI JOIN Item WINDOW(RANGE 8) AS i ON b.price > i.cost;
SELECT price, item FROM Bid WINDOW(RANGE 6) AS b LEFT ANTI JOIN Item WINDOW(RANGE 8) AS i ON b.item = i.item;
SELECT price, item FROM Bid WINDOW(RANGE 6) AS b ANTI JOIN Item WINDOW(RANGE 8) AS i ON b.item = i.item AND i.cost < b.price;
SELECT b.price, i.name FROM Bid WINDOW(RANGE 6) AS b LEFT SEMI JOIN Person WINDOW(RANGE 8) AS p ON p.bidder = b.bidder JOIN Item WINDOW(RANGE 8) AS i ON i.item = b.item;
