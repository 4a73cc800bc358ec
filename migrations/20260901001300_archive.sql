-- The archive: files that telemetry was closed in, what was begun and not closed, and partitions that policy lets go.

CREATE TABLE public.archive_file (
    key          TEXT     COLLATE "C" PRIMARY KEY CHECK (octet_length(key) <= 1024),
    kind         TEXT     NOT NULL CHECK (kind IN ('windows', 'minutes')),
    hour_us      BIGINT   NOT NULL CHECK (hour_us % 3600000000 = 0),
    part         INTEGER  NOT NULL CHECK (part >= 0),
    digest       BYTEA    NOT NULL CHECK (octet_length(digest) = 32),
    bytes        BIGINT   NOT NULL CHECK (bytes > 0),
    rows         BIGINT   NOT NULL CHECK (rows > 0),
    gaps         BIGINT   NOT NULL CHECK (gaps >= 0),
    gap_us       BIGINT   NOT NULL CHECK (gap_us >= 0),
    first_us     BIGINT   NOT NULL,
    last_us      BIGINT   NOT NULL,
    closed_at_us BIGINT   NOT NULL,
    UNIQUE (hour_us, kind, part)
);
SELECT public.make_append_only('public.archive_file');
GRANT SELECT, INSERT ON public.archive_file TO gpuledger_writer;
COMMENT ON TABLE public.archive_file IS
    'Closed files of the archive, immutable. The pending audit record of a file is written with its row: telemetry enters the log as these digests (L-1).';
COMMENT ON COLUMN public.archive_file.key IS 'Name within the archive: KIND/date=YYYY-MM-DD/hour=HH/part-N-DIGEST.parquet.';
COMMENT ON COLUMN public.archive_file.hour_us IS 'UTC hour of the start of its windows.';
COMMENT ON COLUMN public.archive_file.digest IS 'SHA-256 of the file.';
COMMENT ON COLUMN public.archive_file.rows IS 'Windows; or units and owners by minute.';
COMMENT ON COLUMN public.archive_file.gaps IS 'Gaps told by its windows, gap_us their length together; 0 for minutes.';
COMMENT ON COLUMN public.archive_file.first_us IS 'Earliest start of a window; or earliest minute.';
COMMENT ON COLUMN public.archive_file.last_us IS 'Latest end of a window; or latest minute.';

CREATE TABLE public.archive_intent (
    key         TEXT   COLLATE "C" PRIMARY KEY CHECK (octet_length(key) <= 1024),
    begun_at_us BIGINT NOT NULL
);
GRANT SELECT, INSERT, DELETE ON public.archive_intent TO gpuledger_writer;
COMMENT ON TABLE public.archive_intent IS
    'Files that are about to be written, committed before they are: what a kill leaves in the archive is known by name, and only that is removed.';

-- What of a partition is nowhere but in the database stays. A window that begins in the hour before may reach into an hour. The parent is locked
-- first, in the order in which writers lock: the other way round both would wait in a circle.
CREATE FUNCTION public.drop_telemetry_partition(name TEXT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    parent TEXT;
    needed BOOLEAN;
BEGIN
    SELECT p.relname INTO parent
    FROM pg_inherits AS i JOIN pg_class AS p ON p.oid = i.inhparent
    WHERE i.inhrelid = to_regclass('public.' || quote_ident(name)) AND p.relnamespace = 'public'::REGNAMESPACE
      AND p.relname IN ('telemetry_block', 'packed_hour');
    IF parent IS NULL THEN
        RAISE EXCEPTION '% is no partition that may be dropped', name
            USING HINT = 'those of telemetry_block and packed_hour may';
    END IF;
    EXECUTE format('LOCK TABLE public.%I IN ACCESS EXCLUSIVE MODE', parent);
    IF parent = 'telemetry_block' THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I WHERE NOT (packed AND archived))', name) INTO needed;
    ELSE
        EXECUTE format('SELECT EXISTS (
            SELECT FROM (SELECT DISTINCT hour_us FROM public.%I) AS h
            WHERE NOT EXISTS (SELECT FROM public.archive_file AS f
                              WHERE f.kind = ''minutes'' AND f.hour_us IN (h.hour_us - 3600000000, h.hour_us) AND f.last_us >= h.hour_us)
               OR EXISTS (SELECT FROM public.telemetry_block AS b
                          WHERE b.hour_us IN (h.hour_us - 3600000000, h.hour_us) AND NOT (b.packed AND b.archived)))', name)
            INTO needed;
    END IF;
    IF needed THEN
        RETURN false;
    END IF;
    EXECUTE format('ALTER TABLE public.%I DETACH PARTITION public.%I', parent, name);
    EXECUTE format('DROP TABLE public.%I', name);
    RETURN true;
END $$;
REVOKE EXECUTE ON FUNCTION public.drop_telemetry_partition(TEXT) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.drop_telemetry_partition(TEXT) TO gpuledger_writer;
COMMENT ON FUNCTION public.drop_telemetry_partition(TEXT) IS
    'Detaches and drops a partition of telemetry_block or packed_hour whose telemetry is archived; false where some is not. Of facts, identities, journals and entries nothing is ever dropped.';

CREATE INDEX telemetry_block_unarchived ON public.telemetry_block (hour_us) WHERE packed AND NOT archived;
