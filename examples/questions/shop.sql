CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers, day TEXT, total REAL);

INSERT INTO customers VALUES (1, 'Bakery at the bridge', 'Porto'), (2, 'Bookshop', 'Lisbon'), (3, 'Garage', 'Lisbon');
INSERT INTO orders VALUES
  (1, 1, '2026-01-12', 120.50), (2, 2, '2026-01-20', 75.00), (3, 2, '2026-02-03', 19.90),
  (4, 3, '2026-02-14', 310.00), (5, 1, '2026-03-01', 64.20), (6, 3, '2026-03-22', 15.00);
