-- What a close knew, how far each partition was read, and the facts that are sold besides GPU time.

ALTER TABLE public.period_close ADD COLUMN objects_seq BIGINT;
COMMENT ON COLUMN public.period_close.objects_seq IS
    'Greatest object.seq applied until then: later objects do not re-rate the period (V-12). Null in closes before this column: those applied by closed_at_us.';

CREATE TABLE public.partition_read (
    topic     TEXT    NOT NULL CHECK (octet_length(topic) <= 1024),
    partition INTEGER NOT NULL CHECK (partition >= 0),
    until_us  BIGINT,
    PRIMARY KEY (topic, partition)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.partition_read TO gpuledger_writer;
COMMENT ON TABLE public.partition_read IS 'Partitions of the consumed topics: a period closes when all are read past its end (V-2).';
COMMENT ON COLUMN public.partition_read.until_us IS
    'Everything that stood in the partition at this instant of the server clock is applied; null: that is not known yet.';

-- Few facts among many: a partial index, small from the start.
CREATE INDEX fact_sold ON public.fact (seq) WHERE type IN ('gpuledger.usage.reported.v1', 'gpuledger.charge.recorded.v1');
