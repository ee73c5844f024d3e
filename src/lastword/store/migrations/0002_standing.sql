-- Where the records are that still count (standing.py), so that nobody reads the whole list to find what waits. It follows
-- from the records alone, and is written in the transaction that writes them.
CREATE TABLE standing (
  kind   TEXT NOT NULL,
  stream TEXT NOT NULL,
  name   TEXT NOT NULL,
  since  INTEGER NOT NULL,   -- the first record of that name: the order in which they are read
  seq    INTEGER NOT NULL,   -- the last one: the one that counts
  PRIMARY KEY (kind, stream, name)
) STRICT, WITHOUT ROWID;

-- What is known about the file itself.
CREATE TABLE marks (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
