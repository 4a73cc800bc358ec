-- Journals: one balanced set of entries per (GPU, UTC hour) and revision (A-2, A-6), checked by the database.

CREATE FUNCTION public.covered_us(ranges INT8MULTIRANGE) RETURNS BIGINT
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT COALESCE(sum(upper(part) - lower(part)), 0)::BIGINT FROM unnest(ranges) AS part
$$;
COMMENT ON FUNCTION public.covered_us(INT8MULTIRANGE) IS 'Length of all ranges together.';

CREATE TABLE public.journal (
    gpu            TEXT           NOT NULL,
    hour_us        BIGINT         NOT NULL CHECK (hour_us % 3600000000 = 0),
    revision       INTEGER        NOT NULL CHECK (revision >= 1),
    compute_slices SMALLINT       NOT NULL CHECK (compute_slices BETWEEN 1 AND 30),
    memory_slices  SMALLINT       NOT NULL CHECK (memory_slices BETWEEN 1 AND 30),
    capacity       INT8MULTIRANGE NOT NULL,
    capacity_us    BIGINT         GENERATED ALWAYS AS (public.covered_us(capacity)) STORED,
    digest         BYTEA          NOT NULL CHECK (octet_length(digest) = 32),
    horizon_us     BIGINT         NOT NULL,
    rule_set       TEXT           NOT NULL,
    PRIMARY KEY (gpu, hour_us, revision),
    CONSTRAINT capacity_inside_hour CHECK (capacity <@ int8multirange(int8range(hour_us, hour_us + 3600000000)))
);
SELECT public.make_append_only('public.journal');
GRANT SELECT, INSERT ON public.journal TO gpuledger_writer;
COMMENT ON TABLE public.journal IS 'Header of a journal. The last revision stands; each revision above 1 negates the one before.';
COMMENT ON COLUMN public.journal.capacity IS 'The part of the hour in which the GPU has capacity; the entries cover exactly it.';
COMMENT ON COLUMN public.journal.digest IS 'SHA-256 of the posted entries: an unchanged journal is not posted again.';
COMMENT ON COLUMN public.journal.horizon_us IS 'As-of instant the entries were derived at.';

CREATE TABLE public.entry (
    gpu              TEXT     NOT NULL,
    hour_us          BIGINT   NOT NULL,
    revision         INTEGER  NOT NULL,
    line             INTEGER  NOT NULL,
    sign             SMALLINT NOT NULL CHECK (sign IN (1, -1)),
    start_us         BIGINT   NOT NULL,
    end_us           BIGINT   NOT NULL,
    account          TEXT     NOT NULL CHECK (account IN ('tenant', 'idle', 'stranded', 'scrub', 'quarantine', 'fault', 'maintenance', 'unobserved')),
    tenant           TEXT,
    project          TEXT,
    allocation       TEXT,
    unit             INTEGER,
    memory_mask      INTEGER  NOT NULL CHECK (memory_mask >= 0),
    compute_slices   SMALLINT NOT NULL CHECK (compute_slices >= 0),
    part_us          BIGINT   NOT NULL CHECK (part_us >= -1),
    compute_slice_us BIGINT   NOT NULL,
    memory_slice_us  BIGINT   NOT NULL,
    PRIMARY KEY (gpu, hour_us, revision, line),
    CONSTRAINT interval_inside_hour CHECK (start_us >= hour_us AND start_us < end_us AND end_us <= hour_us + 3600000000),
    CONSTRAINT tenant_iff_held CHECK (
        CASE WHEN account = 'tenant' THEN tenant IS NOT NULL AND allocation IS NOT NULL
             ELSE tenant IS NULL AND project IS NULL AND allocation IS NULL AND unit IS NULL END),
    CONSTRAINT compute_is_part_by_slices CHECK (compute_slice_us = part_us * compute_slices),
    CONSTRAINT memory_is_part_by_slices CHECK (memory_slice_us = part_us * bit_count(memory_mask::BIT(32)))
) PARTITION BY RANGE (hour_us);
SELECT public.make_append_only('public.entry');
SELECT public.protect_tenant_rows('public.entry');
GRANT SELECT, INSERT ON public.entry TO gpuledger_writer;
COMMENT ON TABLE public.entry IS 'Postings. A statement brings whole journals or is refused: see check_journals().';
COMMENT ON COLUMN public.entry.line IS '1 to n within its journal. With the key it makes a second, late statement for the same journal impossible.';
COMMENT ON COLUMN public.entry.sign IS '+1 posted; -1 negates an entry of the revision before.';
COMMENT ON COLUMN public.entry.memory_mask IS 'Memory slices, bit 0 = slice 0; 0: compute slices no memory slice goes with.';
COMMENT ON COLUMN public.entry.part_us IS 'The holder''s part of the unit''s time (M-3); both slice columns are it times the unit''s slices. Of a few microseconds inside a cell it may be -1: parts are differences of largest remainders (ADR 15), and add up all the same.';

CREATE FUNCTION public.check_journals() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bad RECORD;
BEGIN
    -- EXECUTE plans anew each time: a plan cached for a small statement would be quadratic for a large one.
    EXECUTE $check$
        WITH journal_lines AS (
            SELECT gpu, hour_us, revision, count(*) AS lines, min(line) AS first, max(line) AS last, min(sign) AS sign
            FROM added GROUP BY gpu, hour_us, revision
        ), unit AS (
            -- Holders of one unit share it. Compute-only rests have no memory slice to tell them apart: their account does.
            SELECT gpu, hour_us, revision, start_us, end_us, memory_mask, compute_slices, sum(part_us) AS part_us
            FROM added WHERE sign = 1
            GROUP BY gpu, hour_us, revision, start_us, end_us, memory_mask, compute_slices,
                     CASE WHEN memory_mask = 0 THEN account END
        ), segment AS (
            SELECT gpu, hour_us, revision, start_us, end_us, sum(compute_slices) AS compute, bit_or(memory_mask) AS mask,
                   sum(bit_count(memory_mask::BIT(32))) AS slices, bool_and(part_us = end_us - start_us) AS whole
            FROM unit GROUP BY gpu, hour_us, revision, start_us, end_us
        ), tiling AS (
            SELECT gpu, hour_us, revision, range_agg(int8range(start_us, end_us)) AS covered,
                   sum(end_us - start_us) AS covered_us, bool_and(whole) AS whole,
                   bool_and(slices = bit_count(mask::BIT(32))) AS disjoint, min(mask) AS min_mask, max(mask) AS max_mask,
                   min(compute) AS min_compute, max(compute) AS max_compute
            FROM segment GROUP BY gpu, hour_us, revision
        )
        SELECT l.gpu, l.hour_us, l.revision, verdict.rule
        FROM journal_lines AS l
        LEFT JOIN public.journal AS j ON j.gpu = l.gpu AND j.hour_us = l.hour_us AND j.revision = l.revision
        LEFT JOIN tiling AS t ON t.gpu = l.gpu AND t.hour_us = l.hour_us AND t.revision = l.revision
        CROSS JOIN LATERAL (SELECT CASE
            WHEN j.gpu IS NULL THEN 'it has no journal header'
            WHEN l.first <> 1 OR l.last <> l.lines THEN
                format('its lines must be 1 to %s, all in one statement', l.lines)
            WHEN COALESCE(t.covered, '{}') <> j.capacity THEN
                format('its entries cover %s, its capacity is %s', COALESCE(t.covered, '{}'), j.capacity)
            WHEN t.covered_us <> j.capacity_us THEN 'intervals of its entries overlap'
            WHEN NOT t.disjoint THEN 'two units overlap on a memory slice'
            WHEN t.min_mask <> (1 << j.memory_slices) - 1 OR t.max_mask <> (1 << j.memory_slices) - 1 THEN
                format('its entries do not cover the %s memory slices of the GPU', j.memory_slices)
            WHEN t.min_compute <> j.compute_slices OR t.max_compute <> j.compute_slices THEN
                format('its entries add up to %s to %s compute slices, the GPU has %s',
                       t.min_compute, t.max_compute, j.compute_slices)
            WHEN NOT t.whole THEN 'the parts of a unit do not add up to its time'
            WHEN l.revision = 1 AND l.sign = -1 THEN 'revision 1 has nothing to negate'
            WHEN l.revision > 1 AND NOT EXISTS (
                SELECT FROM public.journal AS p
                WHERE p.gpu = l.gpu AND p.hour_us = l.hour_us AND p.revision = l.revision - 1) THEN
                format('revision %s does not exist', l.revision - 1)
        END AS rule) AS verdict
        WHERE verdict.rule IS NOT NULL
        ORDER BY l.gpu, l.hour_us, l.revision
        LIMIT 1
    $check$ INTO bad;

    IF bad IS NULL AND EXISTS (SELECT FROM added WHERE revision > 1) THEN
        EXECUTE $check$
            SELECT gpu, hour_us, revision, 'its negations are not exactly the entries of the revision before' AS rule
            FROM (
                SELECT gpu, hour_us, revision, start_us, end_us, account, tenant, project, allocation, unit, memory_mask,
                       compute_slices, part_us, 1 AS side
                FROM added WHERE sign = -1
                UNION ALL
                SELECT e.gpu, e.hour_us, e.revision + 1, e.start_us, e.end_us, e.account, e.tenant, e.project, e.allocation,
                       e.unit, e.memory_mask, e.compute_slices, e.part_us, -1
                FROM (SELECT DISTINCT gpu, hour_us, revision FROM added WHERE revision > 1) AS l
                JOIN public.entry AS e
                  ON e.gpu = l.gpu AND e.hour_us = l.hour_us AND e.revision = l.revision - 1 AND e.sign = 1
            ) AS both_sides
            GROUP BY gpu, hour_us, revision, start_us, end_us, account, tenant, project, allocation, unit, memory_mask,
                     compute_slices, part_us
            HAVING sum(side) <> 0
            ORDER BY gpu, hour_us, revision
            LIMIT 1
        $check$ INTO bad;
    END IF;

    IF bad IS NOT NULL THEN
        RAISE EXCEPTION 'journal of GPU % hour % revision % refused: %', bad.gpu,
            to_char(timestamp 'epoch' + make_interval(secs => bad.hour_us / 1000000), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
            bad.revision, bad.rule
            USING ERRCODE = 'check_violation', CONSTRAINT = 'journal_balance', TABLE = 'entry', SCHEMA = 'public';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION public.check_journals() IS
    'Balance, tiling, capacity and negation of the journals a statement brings (A-2, A-6), set-wise on its transition table.';

CREATE TRIGGER check_journals AFTER INSERT ON public.entry
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.check_journals();
ALTER TABLE public.entry ENABLE ALWAYS TRIGGER check_journals;

-- A header alone would be a journal with nothing but a hole. Headers come before entries, so this waits for the commit.
CREATE FUNCTION public.check_journal_has_entries() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.entry AS e
                   WHERE e.gpu = NEW.gpu AND e.hour_us = NEW.hour_us AND e.revision = NEW.revision AND e.line = 1) THEN
        RAISE EXCEPTION 'journal of GPU % hour % revision % refused: it has no entries', NEW.gpu,
            to_char(timestamp 'epoch' + make_interval(secs => NEW.hour_us / 1000000), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), NEW.revision
            USING ERRCODE = 'check_violation', CONSTRAINT = 'journal_balance', TABLE = 'journal', SCHEMA = 'public';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER journal_has_entries AFTER INSERT ON public.journal
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.check_journal_has_entries();
ALTER TABLE public.journal ENABLE ALWAYS TRIGGER journal_has_entries;

-- The month's partition of entry. LIKE and ATTACH take no lock that readers or writers of other months wait for.
CREATE FUNCTION public.ensure_entry_partition(hour_us BIGINT) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    month TIMESTAMP := date_trunc('month', timestamp 'epoch' + make_interval(secs => hour_us / 1000000));
    name  TEXT   := 'entry_' || to_char(month, 'YYYY_MM');
    first BIGINT := extract(epoch FROM month)::BIGINT * 1000000;
    past  BIGINT := extract(epoch FROM month + interval '1 month')::BIGINT * 1000000;
BEGIN
    IF to_regclass('public.' || name) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('gpuledger.entry_partition', 0));
    IF to_regclass('public.' || name) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.entry INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
                    CONSTRAINT month CHECK (hour_us >= %s AND hour_us < %s))', name, first, past);
    EXECUTE format('ALTER TABLE public.entry ATTACH PARTITION public.%I FOR VALUES FROM (%s) TO (%s)', name, first, past);
    PERFORM public.make_append_only(format('public.%I', name)::REGCLASS);
    PERFORM public.protect_tenant_rows(format('public.%I', name)::REGCLASS);
    EXECUTE format('CREATE TRIGGER check_journals AFTER INSERT ON public.%I
                    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.check_journals()', name);
    EXECUTE format('ALTER TABLE public.%I ENABLE ALWAYS TRIGGER check_journals', name);
    EXECUTE format('GRANT SELECT, INSERT ON public.%I TO gpuledger_writer', name);
END $$;
REVOKE EXECUTE ON FUNCTION public.ensure_entry_partition(BIGINT) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.ensure_entry_partition(BIGINT) TO gpuledger_writer;
COMMENT ON FUNCTION public.ensure_entry_partition(BIGINT) IS
    'Makes the partition of the month this hour is in, with the same guards as the parent; does nothing where it exists.';
