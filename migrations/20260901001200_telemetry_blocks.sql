-- Telemetry at fleet speed: accepted windows in compressed blocks, packed hours with their minutes, proof of life as runs.

-- ---- blocks -------------------------------------------------------------------------------------------------------

CREATE SEQUENCE public.telemetry_block_number;
GRANT USAGE ON SEQUENCE public.telemetry_block_number TO gpuledger_writer;

CREATE TABLE public.telemetry_block (
    hour_us     BIGINT  NOT NULL CHECK (hour_us % 3600000000 = 0),
    number      BIGINT  NOT NULL DEFAULT nextval('public.telemetry_block_number'),
    first_node  TEXT    COLLATE "C" NOT NULL,
    last_node   TEXT    COLLATE "C" NOT NULL,
    next_node   TEXT    COLLATE "C",
    windows     INTEGER NOT NULL CHECK (windows > 0),
    rows        INTEGER NOT NULL CHECK (rows >= 0),
    raw_bytes   INTEGER NOT NULL CHECK (raw_bytes > 0),
    last_end_us BIGINT  NOT NULL,
    packed      BOOLEAN NOT NULL GENERATED ALWAYS AS (next_node IS NULL) STORED,
    archived    BOOLEAN NOT NULL DEFAULT FALSE,
    body        BYTEA   NOT NULL,
    PRIMARY KEY (hour_us, number)
) PARTITION BY RANGE (hour_us);
-- The body is compressed already.
ALTER TABLE public.telemetry_block ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX telemetry_block_waiting ON public.telemetry_block (hour_us, next_node, number) WHERE next_node IS NOT NULL;
CREATE INDEX telemetry_block_newest ON public.telemetry_block (last_end_us);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.telemetry_block TO gpuledger_writer;
COMMENT ON TABLE public.telemetry_block IS
    'Accepted telemetry windows as they came, many to a compressed block, of one UTC hour (of their start) and sorted by node. Dropped by the day once archived.';
COMMENT ON COLUMN public.telemetry_block.next_node IS 'Windows of nodes before this one are in packed_hour; null: all are.';
COMMENT ON COLUMN public.telemetry_block.rows IS 'Readings of units and processes in its windows.';
COMMENT ON COLUMN public.telemetry_block.raw_bytes IS 'Bytes before compression.';
COMMENT ON COLUMN public.telemetry_block.last_end_us IS 'Latest end of its windows.';
COMMENT ON COLUMN public.telemetry_block.body IS 'crates/wire/src/block.rs.';

-- ---- packed hours -------------------------------------------------------------------------------------------------

CREATE TABLE public.packed_hour (
    hour_us               BIGINT   NOT NULL CHECK (hour_us % 3600000000 = 0),
    node                  TEXT     COLLATE "C" NOT NULL CHECK (octet_length(node) <= 1024),
    gpu                   TEXT     COLLATE "C" NOT NULL,
    placement_start       SMALLINT NOT NULL,
    placement_size        SMALLINT NOT NULL,
    owner                 TEXT     COLLATE "C" NOT NULL,
    sm_active_us          NUMERIC,
    memory_byte_us        NUMERIC,
    covered_us            NUMERIC,
    unit_sm_active_us     NUMERIC,
    unit_memory_byte_us   NUMERIC,
    unit_memory_bytes_max NUMERIC,
    unit_energy_mj        NUMERIC,
    unit_covered_us       NUMERIC,
    quality               JSON     NOT NULL,
    minutes               BYTEA    NOT NULL
) PARTITION BY RANGE (hour_us);
-- Rows are short and hold varints, which do not compress.
ALTER TABLE public.packed_hour ALTER COLUMN minutes SET STORAGE EXTERNAL;
CREATE INDEX packed_hour_by_node ON public.packed_hour (hour_us, node);
CREATE INDEX packed_hour_by_gpu ON public.packed_hour (gpu, hour_us);
GRANT SELECT, INSERT, DELETE ON public.packed_hour TO gpuledger_writer;
COMMENT ON TABLE public.packed_hour IS
    'One row per unit, process owner and UTC hour (A-13). The unit''s own readings stand in the row of its first owner. Derived from blocks, replaced by node and hour.';
COMMENT ON COLUMN public.packed_hour.placement_start IS 'First memory slice; -1: the whole GPU.';
COMMENT ON COLUMN public.packed_hour.owner IS 'job:ID, pod:UID, container:ID or pid:BOOT/PID/START; empty: no process was seen on the unit in this hour.';
COMMENT ON COLUMN public.packed_hour.sm_active_us IS
    'Of the owner''s processes, as memory_byte_us and covered_us. Null: never measured (M-8), which is not zero. NUMERIC: such sums pass 2^63 (M-6).';
COMMENT ON COLUMN public.packed_hour.unit_sm_active_us IS 'Of the unit, as all columns unit_*; null in the rows of its other owners.';
COMMENT ON COLUMN public.packed_hour.quality IS '{"owner"|"unit": {reading: {label: covered microseconds}}} (M-8).';
COMMENT ON COLUMN public.packed_hour.minutes IS 'The same readings by minute: crates/storage/src/hours/minutes.rs.';

-- ---- partitions ---------------------------------------------------------------------------------------------------

-- The partition an instant falls into. LIKE and ATTACH take no lock that readers or writers of other partitions wait for.
CREATE FUNCTION public.ensure_telemetry_partition(parent TEXT, at_us BIGINT) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unit  TEXT      := CASE parent WHEN 'telemetry_block' THEN 'day' WHEN 'packed_hour' THEN 'month' END;
    since TIMESTAMP := date_trunc(unit, timestamp 'epoch' + make_interval(secs => floor(at_us / 1000000.0)));
    name  TEXT      := parent || to_char(since, CASE unit WHEN 'day' THEN '_YYYY_MM_DD' ELSE '_YYYY_MM' END);
    first BIGINT    := extract(epoch FROM since)::BIGINT * 1000000;
    past  BIGINT    := extract(epoch FROM since + ('1 ' || unit)::INTERVAL)::BIGINT * 1000000;
BEGIN
    IF unit IS NULL THEN
        RAISE EXCEPTION '% has no such partitions, expected telemetry_block or packed_hour', parent;
    END IF;
    IF to_regclass('public.' || name) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('gpuledger.telemetry_partition', 0));
    IF to_regclass('public.' || name) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING CONSTRAINTS INCLUDING STORAGE,
                    CONSTRAINT period CHECK (hour_us >= %s AND hour_us < %s))', name, parent, first, past);
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%s) TO (%s)', parent, name, first, past);
END $$;
REVOKE EXECUTE ON FUNCTION public.ensure_telemetry_partition(TEXT, BIGINT) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.ensure_telemetry_partition(TEXT, BIGINT) TO gpuledger_writer;
COMMENT ON FUNCTION public.ensure_telemetry_partition(TEXT, BIGINT) IS
    'Makes the partition of telemetry_block (a day) or packed_hour (a month) that this instant is in; does nothing where it exists.';

-- ---- proof of life ------------------------------------------------------------------------------------------------

CREATE TABLE public.node_heard (
    node   TEXT           COLLATE "C" NOT NULL CHECK (octet_length(node) <= 1024),
    day_us BIGINT         NOT NULL CHECK (day_us % 86400000000 = 0),
    heard  INT8MULTIRANGE NOT NULL,
    PRIMARY KEY (node, day_us)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.node_heard TO gpuledger_writer;
COMMENT ON TABLE public.node_heard IS
    'Proof of life by telemetry (A-15). A window end adds the minute that begins with it, so ends that follow each other within a minute are one run. Order-free.';
COMMENT ON COLUMN public.node_heard.day_us IS 'UTC day of the window ends.';
COMMENT ON COLUMN public.node_heard.heard IS 'Runs: lower is the earliest end of a run, upper a minute after its latest.';

INSERT INTO public.node_heard (node, day_us, heard)
SELECT node, hour_us - (hour_us % 86400000000 + 86400000000) % 86400000000, range_agg(int8range(at_us, at_us + 60000000))
FROM public.node_alive, UNNEST(first_us || last_us) AS at_us
WHERE at_us IS NOT NULL GROUP BY 1, 2;

-- Windows staged before stay in telemetry_window until the ledger has put them into blocks, from which their hours are packed anew.
-- Whoever takes them locks their rows, which asks for the right to update.
GRANT UPDATE ON public.telemetry_window TO gpuledger_writer;
DROP TABLE public.node_alive;
DROP TABLE public.telemetry_hour;
DROP FUNCTION public.add_quality(JSONB, JSONB);
