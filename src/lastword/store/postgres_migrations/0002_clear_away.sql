-- A card that was answered leaves an empty place in the table of what still counts, which everybody who looks what waits
-- has to step over until the server has cleared it away. So it does that soon, without pauses, and in the index too.
ALTER TABLE standing SET (
  autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_index_cleanup = on
);
