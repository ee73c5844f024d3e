-- One append-only list. A column that seems to be missing (a session, a call) is a stream or a subject.
CREATE TABLE records (
  seq         INTEGER PRIMARY KEY CHECK (seq > 0),
  stream      TEXT NOT NULL,
  kind        TEXT NOT NULL,
  subject     TEXT NOT NULL,
  at          INTEGER NOT NULL,   -- microseconds since the epoch, for people; the order is seq
  data        BLOB,               -- canonical JSON; NULL once it was pruned
  once        TEXT,               -- a key that no other record may ever have
  data_digest TEXT NOT NULL,
  digest      TEXT NOT NULL       -- covers the digest before, every column above except data, and data_digest
) STRICT;

-- An index of a table with a row number ends in that number, so each of these also gives its records in order.
CREATE INDEX records_by_stream ON records (stream);
CREATE INDEX records_by_kind ON records (kind);
CREATE INDEX records_by_subject ON records (subject);
CREATE UNIQUE INDEX records_by_once ON records (once) WHERE once IS NOT NULL;
