-- Tables, indexes, joins, sorts, windows, JSON, text search, a transaction that is rolled back.
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer REFERENCES customer, day INTEGER, note TEXT);
CREATE TABLE line(orders REFERENCES orders, article TEXT, count INTEGER, price REAL);

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
INSERT INTO customer SELECT i, printf('customer %04d', i * 7919 % 1000), 'city ' || (i * 31 % 97) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO orders SELECT i, i * 613 % 1000 + 1, i * 17 % 365, printf('%.*c', i % 90, 'x') FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
INSERT INTO line SELECT i * 7 % 5000 + 1, 'article ' || (i * 101 % 499), i % 9 + 1, i % 1000 / 10.0 FROM n;

CREATE INDEX orders_customer ON orders(customer, day);
CREATE INDEX line_orders ON line(orders);
CREATE VIEW total AS
    SELECT orders.id AS orders, customer, day, sum(count * price) AS sum
    FROM orders JOIN line ON line.orders = orders.id GROUP BY orders.id;

SELECT city, count(*), round(sum(sum), 1) FROM total JOIN customer ON customer.id = total.customer
    GROUP BY city ORDER BY 3 DESC, 1 LIMIT 10;
SELECT article, sum(count), group_concat(DISTINCT count % 3) FROM line GROUP BY article ORDER BY 2 DESC, 1 LIMIT 5;
SELECT name, day, sum, rank FROM (
    SELECT name, day, round(sum, 1) AS sum, rank() OVER (PARTITION BY customer ORDER BY sum DESC) AS rank
    FROM total JOIN customer ON customer.id = total.customer) WHERE rank = 3 ORDER BY sum DESC, name LIMIT 5;
SELECT length(json_group_array(json_object('id', id, 'name', name))) FROM customer;
SELECT sum(json_extract(value, '$.n')) FROM json_each(
    (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
     SELECT json_group_array(json_object('n', i, 't', 'text ' || i)) FROM n));

BEGIN;
UPDATE line SET price = price * 2 WHERE count > 3;
DELETE FROM orders WHERE day < 100;
SELECT round(sum(price), 1), (SELECT count(*) FROM orders) FROM line;
ROLLBACK;
SELECT round(sum(price), 1), (SELECT count(*) FROM orders) FROM line;

CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words SELECT name || ' of ' || city FROM customer;
SELECT count(*) FROM words WHERE words MATCH 'city AND 42';

-- From the documentation of SQLite: the Mandelbrot set.
WITH RECURSIVE
  xaxis(x) AS (VALUES(-2.0) UNION ALL SELECT x+0.05 FROM xaxis WHERE x<1.2),
  yaxis(y) AS (VALUES(-1.0) UNION ALL SELECT y+0.1 FROM yaxis WHERE y<1.0),
  m(iter, cx, cy, x, y) AS (
    SELECT 0, x, y, 0.0, 0.0 FROM xaxis, yaxis
    UNION ALL
    SELECT iter+1, cx, cy, x*x-y*y + cx, 2.0*x*y + cy FROM m
     WHERE (x*x + y*y) < 4.0 AND iter<28
  ),
  m2(iter, cx, cy) AS (
    SELECT max(iter), cx, cy FROM m GROUP BY cx, cy
  ),
  a(t) AS (
    SELECT group_concat( substr(' .+*#', 1+min(iter/7,4), 1), '')
    FROM m2 GROUP BY cy
  )
SELECT group_concat(rtrim(t),x'0a') FROM a;
