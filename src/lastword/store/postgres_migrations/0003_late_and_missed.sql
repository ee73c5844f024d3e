-- Commits of which somebody was told that they did not happen. One that was sent, and stuck on its way, may still arrive
-- afterwards: it is refused then.
CREATE TABLE judged (
  commit_key uuid PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT now()
);

-- Since when an owner is missed. One whose session was cut for a moment is not swept out for that.
ALTER TABLE owners ADD COLUMN missed timestamptz;

-- For looking what waits, whatever the stream. Rows of a kind lie in the order in which they came, so what ends makes room
-- for what begins. In the index of the primary key, where names follow the clock, it does not.
CREATE INDEX standing_by_kind ON standing ((kind || ''::bytea));

-- The only way to write a record. It goes behind the one that the writer saw as the last, or nowhere.
CREATE OR REPLACE FUNCTION append(of_form integer, as_owner integer, after_seq bigint, after_digest text, key uuid,
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
  IF EXISTS (SELECT 1 FROM judged AS j WHERE j.commit_key = key) THEN
    RAISE EXCEPTION 'this commit came too late, and was said not to have happened' USING ERRCODE = 'LW002';
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
  IF before.seq / 250 < (before.seq + count) / 250 THEN
    -- Passing over what ended marks its places in the index, and the next ones are put there: it stays small, whether or
    -- not anybody looks what waits, and however long the server takes to clear away.
    PERFORM 1 FROM standing AS s WHERE (s.kind || ''::bytea) = ANY (
      ARRAY(SELECT DISTINCT u.k FROM unnest(steps, step_kinds) AS u (what, k) WHERE u.what = 'ends')
    );
  END IF;
  IF cardinality(hold_digests) > 0 THEN
    INSERT INTO contents SELECT * FROM unnest(content_digests, content_datas) ON CONFLICT DO NOTHING;
    INSERT INTO holds SELECT * FROM unnest(hold_digests, hold_seqs) ON CONFLICT DO NOTHING;
  END IF;
  PERFORM pg_notify({channel}, (before.seq + count)::text);
END
$$;

-- Whether a commit happened whose answer never came. If it did not, it never will.
CREATE OR REPLACE FUNCTION has_happened(key uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
BEGIN
  UPDATE head SET seq = seq;
  IF EXISTS (SELECT 1 FROM records WHERE commit_key = key) THEN
    RETURN true;
  END IF;
  INSERT INTO judged VALUES (key) ON CONFLICT DO NOTHING;
  RETURN false;
END
$$;

-- A number for a process that is about to hold names. What was left behind by those that are gone for a day is swept out.
CREATE OR REPLACE FUNCTION new_owner() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  made integer;
BEGIN
  DELETE FROM owners WHERE id IN (
    SELECT id FROM owners WHERE missed < now() - interval '1 day' ORDER BY id LIMIT 100
  ) AND NOT lives(id);
  UPDATE owners SET missed = now() WHERE id IN (
    SELECT id FROM owners WHERE missed IS NULL AND began < now() - interval '1 day' ORDER BY id LIMIT 100
  ) AND NOT lives(id);
  INSERT INTO owners DEFAULT VALUES RETURNING id INTO made;
  RETURN made;
END
$$;

-- Take a name, if nobody holds it. One who held it and whose lock is free has lost everything by that.
CREATE OR REPLACE FUNCTION take(as_owner integer, wanted bytea) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
AS $$
DECLARE
  holder integer;
BEGIN
  UPDATE owners SET missed = NULL WHERE id = as_owner AND missed IS NOT NULL;
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
  IF holder = as_owner THEN
    RETURN 'ours';  -- An answer may have been lost: whoever asks knows best whether they hold it.
  END IF;
  IF lives(holder) THEN
    RETURN 'held';
  END IF;
  UPDATE owners SET lost = true WHERE id = holder;
  UPDATE names SET owner = as_owner WHERE name = wanted;
  RETURN 'taken';
END
$$;

REVOKE ALL ON judged FROM PUBLIC;
