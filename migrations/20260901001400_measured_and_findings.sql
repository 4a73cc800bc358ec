-- What usage needs to be joined with what was measured (A-13), and findings for the API.

ALTER TABLE public.usage_span ADD COLUMN alone BOOLEAN NOT NULL DEFAULT TRUE;
UPDATE public.usage_span SET alone = FALSE WHERE since_us IS NOT NULL;
COMMENT ON COLUMN public.usage_span.alone IS 'Whether the unit is held exclusively: its reading is the holder''s where no process owner tells (A-13).';

-- A tenant may read the packed hours of GPUs in the hours in which it held part of them; which of their readings are its own is for the join.
-- The inner query is under row security too.
ALTER TABLE public.packed_hour ENABLE ROW LEVEL SECURITY;
CREATE POLICY holder_rows ON public.packed_hour FOR SELECT USING (EXISTS (
    SELECT FROM public.usage_span AS s
    WHERE s.gpu = packed_hour.gpu AND s.end_us > packed_hour.hour_us AND s.start_us < packed_hour.hour_us + 3600000000));
GRANT SELECT ON public.packed_hour TO gpuledger_api;

CREATE TABLE public.finding (
    kind     TEXT   COLLATE "C" NOT NULL,
    subject  TEXT   COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL,
    until_us BIGINT,
    detail   TEXT   NOT NULL,
    PRIMARY KEY (kind, subject)
);
ALTER TABLE public.finding ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.finding FORCE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON public.finding USING (public.may_see_tenant('*')) WITH CHECK (public.may_see_tenant('*'));
GRANT SELECT, INSERT, DELETE ON public.finding TO gpuledger_writer;
GRANT SELECT ON public.finding TO gpuledger_api;
COMMENT ON TABLE public.finding IS
    'Findings as they held when they were last derived, for GET /v1/findings of those who see all. Derived from facts and packed hours, never the truth.';
COMMENT ON COLUMN public.finding.until_us IS 'Null: it stands.';

CREATE TABLE public.finding_tenant (
    tenant   TEXT   COLLATE "C" NOT NULL,
    kind     TEXT   COLLATE "C" NOT NULL,
    subject  TEXT   COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL,
    until_us BIGINT,
    detail   TEXT   NOT NULL,
    PRIMARY KEY (tenant, kind, subject)
);
SELECT public.protect_tenant_rows('public.finding_tenant');
ALTER TABLE public.finding_tenant FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE ON public.finding_tenant TO gpuledger_writer;
GRANT SELECT ON public.finding_tenant TO gpuledger_api;
COMMENT ON TABLE public.finding_tenant IS 'Findings about allocations of a tenant, whoever owned them when, and about the tenant itself, as it may read them.';
COMMENT ON COLUMN public.finding_tenant.detail IS 'Names nobody else: where the finding does, it is what the kind means.';

CREATE TABLE public.finding_state (
    one      BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    as_of_us BIGINT  NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON public.finding_state TO gpuledger_writer;
GRANT SELECT ON public.finding_state TO gpuledger_api;
COMMENT ON TABLE public.finding_state IS 'One row: at which horizon the findings were derived; no row: never.';

ALTER TABLE public.telemetry_stream ADD COLUMN top_end_us BIGINT;
COMMENT ON COLUMN public.telemetry_stream.top_end_us IS 'End of the window with the greatest sequence received; null: it came before ends were kept.';

CREATE TABLE public.telemetry_edge (
    node     TEXT   COLLATE "C" NOT NULL,
    stream   TEXT   COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    start_us BIGINT NOT NULL,
    end_us   BIGINT NOT NULL,
    PRIMARY KEY (node, stream, sequence)
);
GRANT SELECT, INSERT, DELETE ON public.telemetry_edge TO gpuledger_writer;
COMMENT ON TABLE public.telemetry_edge IS
    'Windows beside a hole in their stream: when the hole began and ended. Rows of holes that were filled since mean nothing.';

CREATE TABLE public.telemetry_unread (
    node     TEXT   COLLATE "C" NOT NULL CHECK (octet_length(node) <= 1024),
    reason   TEXT   COLLATE "C" NOT NULL,
    day_us   BIGINT NOT NULL CHECK (day_us % 86400000000 = 0),
    times    INT8MULTIRANGE NOT NULL,
    PRIMARY KEY (node, day_us, reason)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.telemetry_unread TO gpuledger_writer;
COMMENT ON TABLE public.telemetry_unread IS 'Times in which a node could not measure, as its windows say (gaps[]), by reason and UTC day of their start. Order-free.';

-- Rare rows: it costs nothing where clocks are right.
CREATE INDEX fact_ahead ON public.fact (source, seq) WHERE at_us > received_at_us + 60000000;
