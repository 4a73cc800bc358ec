-- Telemetry: received sequences, proof of life, packed hours, and windows staged until they are archived.

CREATE TABLE public.telemetry_stream (
    node   TEXT           NOT NULL CHECK (octet_length(node) <= 1024),
    stream TEXT           NOT NULL CHECK (octet_length(stream) <= 1024),
    ranges INT8MULTIRANGE NOT NULL DEFAULT '{}',
    PRIMARY KEY (node, stream)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.telemetry_stream TO gpuledger_writer;
COMMENT ON TABLE public.telemetry_stream IS 'Sequences received, per node and stream (I-2). A hole between two ranges is a gap.';

CREATE TABLE public.telemetry_window (
    node     TEXT   NOT NULL,
    stream   TEXT   NOT NULL,
    sequence BIGINT NOT NULL,
    end_us   BIGINT NOT NULL,
    body     BYTEA  NOT NULL
);
GRANT SELECT, INSERT, DELETE ON public.telemetry_window TO gpuledger_writer;
COMMENT ON TABLE public.telemetry_window IS
    'Staging until archived. No key: telemetry_stream tells what is new, and an index would cost four fifths of the COPY rate.';

CREATE TABLE public.telemetry_hour (
    node             TEXT     NOT NULL,
    gpu              TEXT     NOT NULL,
    placement_start  SMALLINT NOT NULL,
    placement_size   SMALLINT NOT NULL,
    owner            TEXT     NOT NULL,
    hour_us          BIGINT   NOT NULL CHECK (hour_us % 3600000000 = 0),
    sm_active_us     NUMERIC,
    memory_byte_us   NUMERIC,
    memory_bytes_max NUMERIC,
    energy_mj        NUMERIC,
    covered_us       BIGINT   NOT NULL,
    quality          JSONB    NOT NULL DEFAULT '{}',
    PRIMARY KEY (node, gpu, placement_start, placement_size, owner, hour_us)
);
CREATE INDEX telemetry_hour_by_gpu ON public.telemetry_hour (gpu, hour_us);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.telemetry_hour TO gpuledger_writer;
COMMENT ON TABLE public.telemetry_hour IS 'One row per unit, process owner and UTC hour (A-13); windows are added to it.';
COMMENT ON COLUMN public.telemetry_hour.placement_start IS 'First memory slice; -1: the whole GPU.';
COMMENT ON COLUMN public.telemetry_hour.owner IS 'Empty: the unit itself; else job:ID, pod:UID, container:ID or pid:BOOT/PID/START.';
COMMENT ON COLUMN public.telemetry_hour.sm_active_us IS 'Null: never measured in this hour (M-8), which is not zero. NUMERIC: products of bytes and microseconds pass 2^63 (M-6).';
COMMENT ON COLUMN public.telemetry_hour.covered_us IS 'Time the windows of this row cover.';
COMMENT ON COLUMN public.telemetry_hour.quality IS '{reading: {label: covered microseconds}} (M-8).';

-- Adds the numbers of two {reading: {label: number}} objects. Order-free, so late windows give the same row.
CREATE FUNCTION public.add_quality(a JSONB, b JSONB) RETURNS JSONB
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT COALESCE(jsonb_object_agg(reading, labels), '{}')
    FROM (SELECT reading, jsonb_object_agg(label, covered) AS labels
          FROM (SELECT r.key AS reading, l.key AS label, sum(l.value::NUMERIC) AS covered
                FROM (SELECT * FROM jsonb_each(a) UNION ALL SELECT * FROM jsonb_each(b)) AS r,
                     LATERAL jsonb_each_text(r.value) AS l
                GROUP BY r.key, l.key) AS labelled
          GROUP BY reading) AS merged
$$;
COMMENT ON FUNCTION public.add_quality(JSONB, JSONB) IS 'Sum of two quality objects, label by label.';

CREATE TABLE public.node_alive (
    node     TEXT     NOT NULL CHECK (octet_length(node) <= 1024),
    hour_us  BIGINT   NOT NULL CHECK (hour_us % 3600000000 = 0),
    first_us BIGINT[] NOT NULL CHECK (cardinality(first_us) = 60),
    last_us  BIGINT[] NOT NULL CHECK (cardinality(last_us) = 60),
    PRIMARY KEY (node, hour_us)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.node_alive TO gpuledger_writer;
COMMENT ON TABLE public.node_alive IS
    'Proof of life by telemetry (A-15): per UTC minute of the hour the earliest and the latest window end, null where none. Order-free.';
