-- Reads bounded in time: a fact is found by subject, kind and time; what is carried over a floor is known without reading its history.

-- ---- the index of facts -------------------------------------------------------------------------------------------

ALTER TABLE public.fact_subject
    ADD COLUMN kind  TEXT   COLLATE "C" NOT NULL DEFAULT 'o' CHECK (octet_length(kind) = 1),
    ADD COLUMN at_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE public.fact_subject DISABLE TRIGGER USER;
WITH told AS (
    SELECT seq, at_us, CASE type
        WHEN 'gpuledger.node.inventory.v1' THEN 'i'
        WHEN 'gpuledger.unit.state.v1' THEN
            CASE WHEN convert_from(body, 'UTF8')::JSON #>> '{data,state}' = 'ok'
                  AND convert_from(body, 'UTF8')::JSON #> '{data,placement}' IS NULL THEN 'k' ELSE 's' END
        WHEN 'gpuledger.scrub.started.v1' THEN 'b'
        WHEN 'gpuledger.scrub.finished.v1' THEN 'f'
        WHEN 'gpuledger.node.decommissioned.v1' THEN 'd'
        WHEN 'gpuledger.allocation.granted.v1' THEN 'g'
        WHEN 'gpuledger.allocation.placed.v1' THEN 'p'
        WHEN 'gpuledger.allocation.released.v1' THEN 'r'
        WHEN 'gpuledger.allocation.transferred.v1' THEN 't'
        WHEN 'gpuledger.allocation.state.v1' THEN 'a'
        WHEN 'gpuledger.allocation.snapshot.v1' THEN 'n'
        WHEN 'gpuledger.work.reported.v1' THEN 'w'
        ELSE 'o' END AS kind
    FROM public.fact
)
UPDATE public.fact_subject AS s SET kind = told.kind, at_us = told.at_us FROM told WHERE told.seq = s.fact_seq;
ALTER TABLE public.fact_subject ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE public.fact_subject ENABLE ALWAYS TRIGGER append_only_row;
ALTER TABLE public.fact_subject
    ALTER COLUMN kind DROP DEFAULT,
    ALTER COLUMN at_us DROP DEFAULT,
    DROP CONSTRAINT fact_subject_pkey,
    ADD PRIMARY KEY (subject, kind, at_us, fact_seq);
-- What a scrub's begin and end have in common.
INSERT INTO public.fact_subject (subject, kind, at_us, fact_seq)
SELECT 'scrub:' || encode(sha256(convert_to(concat_ws('/', told.data ->> 'gpu', told.data ->> 'scrub'), 'UTF8')), 'hex'),
       told.kind, told.at_us, told.seq
FROM (SELECT seq, at_us, CASE type WHEN 'gpuledger.scrub.started.v1' THEN 'b' ELSE 'f' END AS kind,
             convert_from(body, 'UTF8')::JSON -> 'data' AS data
      FROM public.fact WHERE type IN ('gpuledger.scrub.started.v1', 'gpuledger.scrub.finished.v1')) AS told;
-- Work and its pool. The instant is the last that the work is about.
INSERT INTO public.fact_subject (subject, kind, at_us, fact_seq)
SELECT 'pool:' || (convert_from(body, 'UTF8')::JSON #>> '{data,pool}'), CASE type WHEN 'gpuledger.work.reported.v1' THEN 'w' ELSE 'g' END,
       CASE type WHEN 'gpuledger.work.reported.v1'
            THEN (extract(epoch FROM (convert_from(body, 'UTF8')::JSON #>> '{data,end}')::TIMESTAMPTZ) * 1000000)::BIGINT
            ELSE at_us END, seq
FROM public.fact
WHERE type IN ('gpuledger.work.reported.v1', 'gpuledger.allocation.granted.v1')
  AND convert_from(body, 'UTF8')::JSON #>> '{data,pool}' IS NOT NULL
ON CONFLICT DO NOTHING;
COMMENT ON TABLE public.fact_subject IS
    'What a fact is about: gpu:UUID, node:NAME, alloc:ID, job:SLURM_JOB, pod:UID, pool:ID, scrub:HASH, snapshot:SOURCE, source-grants:SOURCE.';
COMMENT ON COLUMN public.fact_subject.kind IS
    'i inventory, k ok of a whole GPU, s other state, b and f begin and end of a scrub, d decommissioning, g grant, p placement, r release, t transfer, a state of an allocation, n snapshot, w work, o other.';
COMMENT ON COLUMN public.fact_subject.at_us IS 'When it happened; of work the end of the time it is about.';

-- A horizon that moves finds what begins to act; snapshots speak of allocations of whole sources.
CREATE INDEX fact_by_time ON public.fact (at_us);
CREATE INDEX fact_snapshots ON public.fact (at_us) WHERE type = 'gpuledger.allocation.snapshot.v1';

CREATE TABLE public.inventory_content (
    fact_seq BIGINT PRIMARY KEY,
    content  BYTEA  NOT NULL CHECK (octet_length(content) = 32)
);
SELECT public.make_append_only('public.inventory_content');
GRANT SELECT, INSERT ON public.inventory_content TO gpuledger_writer;
COMMENT ON TABLE public.inventory_content IS
    'Hash of what an inventory says besides its time. Nodes say the same every minute: it is read once. Inventories without a row are read each.';

CREATE TABLE public.gpu_home (
    gpu  TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (gpu, node)
);
CREATE INDEX gpu_home_by_node ON public.gpu_home (node, gpu);
GRANT SELECT, INSERT ON public.gpu_home TO gpuledger_writer;
INSERT INTO public.gpu_home (gpu, node)
SELECT DISTINCT gpu ->> 'uuid', told.data ->> 'node'
FROM (SELECT convert_from(body, 'UTF8')::JSON -> 'data' AS data FROM public.fact WHERE type = 'gpuledger.node.inventory.v1') AS told,
     json_array_elements(told.data -> 'gpus') AS gpu
ON CONFLICT DO NOTHING;
COMMENT ON TABLE public.gpu_home IS 'Nodes that each GPU was ever on, by the inventories that were accepted.';

-- ---- what is carried over a floor ---------------------------------------------------------------------------------

CREATE TABLE public.reach (
    gpu      TEXT   COLLATE "C" NOT NULL,
    subject  TEXT   COLLATE "C" NOT NULL,
    source   TEXT   COLLATE "C" NOT NULL,
    until_us BIGINT NOT NULL,
    first_us BIGINT NOT NULL,
    pools    TEXT[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (subject, gpu)
);
CREATE INDEX reach_by_gpu ON public.reach (gpu, until_us);
CREATE INDEX reach_open_by_source ON public.reach (source) WHERE until_us = 9223372036854775807;
CREATE INDEX reach_in_pools ON public.reach (until_us) WHERE pools <> '{}';
GRANT SELECT, INSERT, UPDATE, DELETE ON public.reach TO gpuledger_writer;
COMMENT ON TABLE public.reach IS
    'Until when the facts of an allocation or scrub matter on a GPU. Derived from the facts that act at the horizon; rebuilt with the read models.';
COMMENT ON COLUMN public.reach.gpu IS 'Empty: units without a device.';
COMMENT ON COLUMN public.reach.subject IS 'alloc:ID or scrub:HASH.';
COMMENT ON COLUMN public.reach.source IS 'Who granted it; empty for a scrub, and where nobody did.';
COMMENT ON COLUMN public.reach.first_us IS 'The first instant at which a fact or snapshot names it. Who is named by snapshots and granted by nobody is kept for this.';
COMMENT ON COLUMN public.reach.pools IS 'Pools that grants of the allocation name.';
COMMENT ON COLUMN public.reach.until_us IS 'The last instant at which a fact or snapshot names it; the greatest number while no release or end is known.';

GRANT UPDATE ON public.touched TO gpuledger_writer;
ALTER TABLE public.touched ADD COLUMN from_us BIGINT NOT NULL DEFAULT -9223372036854775808;
COMMENT ON COLUMN public.touched.from_us IS 'The earliest instant at which what came may change something.';

ALTER TABLE public.ledger_state ADD COLUMN derived INTEGER NOT NULL DEFAULT 0;
COMMENT ON COLUMN public.ledger_state.derived IS
    'Form of the read models. Where it is not the one the process writes, everything is derived anew before anything else is posted.';
ALTER TABLE public.usage_span
    ADD COLUMN memory_start SMALLINT,
    ADD COLUMN slurm_job    TEXT,
    ADD COLUMN pod_uid      TEXT,
    ADD COLUMN before_us    INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN after_us     INTEGER NOT NULL DEFAULT 0;
COMMENT ON COLUMN public.usage_span.memory_start IS 'First memory slice of the unit; null: unplaced.';
COMMENT ON COLUMN public.usage_span.slurm_job IS 'With pod_uid the names by which process owners tell this span (A-13); null: none do.';
COMMENT ON COLUMN public.usage_span.before_us IS 'Held by these names in the minute of the start, before it; after_us: in the minute of the end, from it on.';
COMMENT ON COLUMN public.usage_span.end_us IS 'The greatest number: it goes on with the horizon.';
CREATE INDEX usage_span_on_gpu ON public.usage_span (gpu, end_us);
DROP INDEX public.usage_span_by_gpu;
