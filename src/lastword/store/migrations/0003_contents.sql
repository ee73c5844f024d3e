-- What records hold beside their data: each content once, however many records hold it.
CREATE TABLE contents (
  digest TEXT PRIMARY KEY,   -- SHA-256 of data, in hexadecimal
  data   BLOB NOT NULL
) STRICT;

-- Which record holds which. A content that no row names is deleted in the transaction that deletes the last such row.
CREATE TABLE holds (
  digest TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  PRIMARY KEY (digest, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX holds_by_record ON holds (seq);
