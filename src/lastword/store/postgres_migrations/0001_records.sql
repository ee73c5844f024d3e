-- One append-only list, as in the SQLite file. Text is kept as its UTF-8 bytes: PostgreSQL's own text has no U+0000, and
-- its order depends on the machine. To read it: convert_from(subject, 'UTF8').
CREATE TABLE records (
  seq         bigint PRIMARY KEY CHECK (seq > 0),
  stream      bytea NOT NULL,
  kind        bytea NOT NULL,
  subject     bytea NOT NULL,
  at          bigint NOT NULL,   -- microseconds since the epoch, for people; the order is seq
  data        bytea,             -- canonical JSON; NULL once it was pruned
  once        bytea,             -- a key that no other record may ever have
  data_digest text NOT NULL,
  digest      text NOT NULL,     -- covers the digest before, every column above except data, and data_digest
  commit_key  uuid               -- on the last record of a commit: by this a commit of unknown end is looked up
);
CREATE INDEX records_by_stream ON records (stream, seq);
CREATE INDEX records_by_kind ON records (kind, seq);
CREATE INDEX records_by_subject ON records (subject, seq);
CREATE UNIQUE INDEX records_by_once ON records (once) WHERE once IS NOT NULL;
CREATE UNIQUE INDEX records_by_commit ON records (commit_key) WHERE commit_key IS NOT NULL;

-- Where the chain ends, and in which form all this is. Whoever writes holds this row until the commit.
CREATE TABLE head (
  is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
  form   integer NOT NULL,
  seq    bigint NOT NULL,
  digest text NOT NULL
) WITH (fillfactor = 10);
INSERT INTO head (form, seq, digest) VALUES (0, 0, repeat('0', 64));

-- Where the records are that still count (standing.py).
CREATE TABLE standing (
  kind   bytea NOT NULL,
  stream bytea NOT NULL,
  name   bytea NOT NULL,
  since  bigint NOT NULL,   -- the first record of that name: the order in which they are read
  seq    bigint NOT NULL,   -- the last one: the one that counts
  PRIMARY KEY (kind, stream, name)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000);   -- most rows do not stay for long

-- What records hold beside their data: each content once, however many records hold it.
CREATE TABLE contents (
  digest text PRIMARY KEY,   -- SHA-256 of data, in hexadecimal
  data   bytea NOT NULL
);
CREATE TABLE holds (
  digest text NOT NULL,
  seq    bigint NOT NULL,
  PRIMARY KEY (digest, seq)
);
CREATE INDEX holds_by_record ON holds (seq);

-- Processes that hold names. Each keeps an advisory lock (the number of this table, its own number) in a session that
-- lives as long as it does. Whoever takes a name from one whose lock is free sets `lost`, and from then on nothing that
-- this one appends is written, however alive it may be.
CREATE TABLE owners (
  id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lost  boolean NOT NULL DEFAULT false,
  began timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE names (
  name  bytea PRIMARY KEY,
  owner integer NOT NULL REFERENCES owners ON DELETE CASCADE
);
CREATE INDEX names_by_owner ON names (owner);

-- Whether an owner may still live. After a restart of the server every lock is free and every owner comes back: for a
-- moment nobody is taken for dead.
CREATE FUNCTION lives(of_owner integer) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
  SELECT pg_postmaster_start_time() > clock_timestamp() - interval '5 seconds'
      OR NOT pg_try_advisory_xact_lock_shared('owners'::regclass::oid::int4, of_owner)
$$;

-- Begin a commit: hold the end of the chain, and say what a writer has to know before it can go on from there.
CREATE FUNCTION begin_append(as_owner integer, claimed bytea[], seen bigint, OUT form integer, OUT seq bigint,
                             OUT digest text, OUT is_lost boolean, OUT taken bytea[], OUT seen_digest text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
BEGIN
  SELECT h.form, h.seq, h.digest INTO STRICT form, seq, digest FROM head AS h FOR UPDATE;
  is_lost := false;
  IF as_owner IS NOT NULL THEN
    SELECT o.lost INTO is_lost FROM owners AS o WHERE o.id = as_owner FOR SHARE;
    is_lost := coalesce(is_lost, true);
  END IF;
  IF cardinality(claimed) > 0 THEN
    SELECT array_agg(r.once) INTO taken FROM records AS r WHERE r.once = ANY (claimed);
  END IF;
  SELECT r.digest INTO seen_digest FROM records AS r WHERE r.seq = seen;
END
$$;

-- The only way to write a record. It goes behind the one that the writer saw as the last, or nowhere.
CREATE FUNCTION append(of_form integer, as_owner integer, after_seq bigint, after_digest text, key uuid,
                       streams bytea[], kinds bytea[], subjects bytea[], times bigint[], datas bytea[], onces bytea[],
                       data_digests text[], digests text[],
                       steps text[], step_kinds bytea[], step_streams bytea[], step_names bytea[], step_seqs bigint[],
                       content_digests text[], content_datas bytea[], hold_digests text[], hold_seqs bigint[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  before head%ROWTYPE;
  count integer := cardinality(digests);
BEGIN
  SELECT * INTO STRICT before FROM head FOR UPDATE;
  IF before.form <> of_form OR before.seq <> after_seq OR before.digest <> after_digest THEN
    RAISE EXCEPTION 'the end of the chain is another' USING ERRCODE = 'serialization_failure';
  END IF;
  IF as_owner IS NOT NULL AND coalesce((SELECT o.lost FROM owners AS o WHERE o.id = as_owner FOR SHARE), true) THEN
    RAISE EXCEPTION 'another process took over' USING ERRCODE = 'LW001';
  END IF;
  IF count > 0 THEN
    INSERT INTO records
    SELECT before.seq + n, s, k, j, t, d, o, dd, g, CASE WHEN n = count THEN key END
    FROM unnest(streams, kinds, subjects, times, datas, onces, data_digests, digests)
         WITH ORDINALITY AS u (s, k, j, t, d, o, dd, g, n);
    UPDATE head SET seq = before.seq + count, digest = digests[count];
  END IF;
  FOR i IN 1 .. coalesce(cardinality(steps), 0) LOOP
    CASE steps[i]
      WHEN 'begins' THEN
        INSERT INTO standing VALUES (step_kinds[i], step_streams[i], step_names[i], step_seqs[i], step_seqs[i])
        ON CONFLICT (kind, stream, name) DO UPDATE SET seq = excluded.seq;
      WHEN 'ends' THEN
        DELETE FROM standing WHERE kind = step_kinds[i] AND stream = step_streams[i] AND name = step_names[i];
      WHEN 'ends all' THEN
        DELETE FROM standing WHERE kind = step_kinds[i] AND stream = step_streams[i];
    END CASE;
  END LOOP;
  IF cardinality(hold_digests) > 0 THEN
    INSERT INTO contents SELECT * FROM unnest(content_digests, content_datas) ON CONFLICT DO NOTHING;
    INSERT INTO holds SELECT * FROM unnest(hold_digests, hold_seqs) ON CONFLICT DO NOTHING;
  END IF;
  PERFORM pg_notify({channel}, (before.seq + count)::text);
END
$$;

-- A whole commit in one step, for a writer that guesses where the chain ends and that nothing is in its way. If something
-- is, nothing is written, and it hears what it has to know.
CREATE FUNCTION try_append(of_form integer, as_owner integer, after_seq bigint, after_digest text, key uuid,
                           streams bytea[], kinds bytea[], subjects bytea[], times bigint[], datas bytea[],
                           onces bytea[], data_digests text[], digests text[],
                           steps text[], step_kinds bytea[], step_streams bytea[], step_names bytea[],
                           step_seqs bigint[], content_digests text[], content_datas bytea[], hold_digests text[],
                           hold_seqs bigint[], claimed bytea[], seen bigint, seen_digest text,
                           OUT is_done boolean, OUT is_only_behind boolean, OUT seq bigint, OUT digest text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  found record;
BEGIN
  SELECT * INTO found FROM begin_append(as_owner, claimed, seen);
  seq := found.seq;
  digest := found.digest;
  is_only_behind := found.form = of_form AND NOT found.is_lost AND found.taken IS NULL
                    AND (seen = 0 OR found.seen_digest IS NOT DISTINCT FROM try_append.seen_digest);
  is_done := is_only_behind AND found.seq = after_seq AND found.digest = after_digest;
  IF is_done THEN
    PERFORM append(of_form, as_owner, after_seq, after_digest, key, streams, kinds, subjects, times, datas, onces,
                   data_digests, digests, steps, step_kinds, step_streams, step_names, step_seqs, content_digests,
                   content_datas, hold_digests, hold_seqs);
  END IF;
END
$$;

-- Whether a commit happened whose answer never came. The session that sent it may still be at work: it holds the end of
-- the chain until it is done, so this waits for it. And where commits wait for a replica, the row that is written here
-- lets this one wait as well, so that what is then said to have happened is on the replica too.
CREATE FUNCTION has_happened(key uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
BEGIN
  UPDATE head SET seq = seq;
  RETURN EXISTS (SELECT 1 FROM records WHERE commit_key = key);
END
$$;

-- Forget what records say, and what only they hold. `names_gone` are kinds whose records have their names from their data.
CREATE FUNCTION forget(seqs bigint[], names_gone bytea[], OUT record_count bigint, OUT content_count bigint,
                       OUT byte_count bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  gone bigint[];
  released text[];
BEGIN
  WITH forgotten AS (
    UPDATE records AS r SET data = NULL WHERE r.seq = ANY (seqs) AND r.data IS NOT NULL RETURNING r.seq
  ) SELECT coalesce(array_agg(f.seq), '{}') INTO gone FROM forgotten AS f;
  record_count := cardinality(gone);
  DELETE FROM standing AS s USING records AS r
  WHERE r.seq = ANY (gone) AND r.kind = ANY (names_gone)
    AND s.kind = r.kind AND s.stream = r.stream AND s.seq = r.seq;
  WITH released_holds AS (DELETE FROM holds AS h WHERE h.seq = ANY (gone) RETURNING h.digest)
  SELECT coalesce(array_agg(DISTINCT h.digest), '{}') INTO released FROM released_holds AS h;
  WITH deleted AS (
    DELETE FROM contents AS c WHERE c.digest = ANY (released)
      AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.digest = c.digest)
    RETURNING octet_length(c.data) AS size
  ) SELECT count(*), coalesce(sum(size), 0) INTO content_count, byte_count FROM deleted;
END
$$;

-- A number for a process that is about to hold names. What was left behind by those that died long ago is swept out.
CREATE FUNCTION new_owner() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  made integer;
BEGIN
  DELETE FROM owners WHERE id IN (
    SELECT id FROM owners WHERE began < now() - interval '1 day' ORDER BY id LIMIT 100
  ) AND NOT lives(id);
  INSERT INTO owners DEFAULT VALUES RETURNING id INTO made;
  RETURN made;
END
$$;

-- Take a name, if nobody holds it. One who held it and whose lock is free has lost everything by that.
CREATE FUNCTION take(as_owner integer, wanted bytea) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  holder integer;
BEGIN
  IF coalesce((SELECT o.lost FROM owners AS o WHERE o.id = as_owner FOR SHARE), true) THEN
    RETURN 'lost';
  END IF;
  INSERT INTO names VALUES (wanted, as_owner) ON CONFLICT DO NOTHING;
  IF FOUND THEN
    RETURN 'taken';
  END IF;
  SELECT n.owner INTO holder FROM names AS n WHERE n.name = wanted FOR UPDATE;
  IF holder IS NULL THEN
    RETURN 'again';  -- It was let go of at this very moment.
  END IF;
  IF holder = as_owner OR lives(holder) THEN
    RETURN 'held';
  END IF;
  UPDATE owners SET lost = true WHERE id = holder;
  UPDATE names SET owner = as_owner WHERE name = wanted;
  RETURN 'taken';
END
$$;

CREATE FUNCTION let_go(as_owner integer, of_names bytea[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$ DELETE FROM names WHERE owner = as_owner AND name = ANY (of_names) $$;

CREATE FUNCTION leave(as_owner integer) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$ DELETE FROM owners WHERE id = as_owner $$;

-- Which of these names somebody holds, who may still live.
CREATE FUNCTION held(of_names bytea[]) RETURNS SETOF bytea
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$ SELECT name FROM names WHERE name = ANY (of_names) AND lives(owner) $$;

-- Nobody but the owner of the schema may do anything before they are given the right (lastword journal grant).
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
