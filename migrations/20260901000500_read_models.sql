-- Read models at ledger_state.horizon_us. They are derived: replaced per allocation, and rebuilt from facts at any time.

CREATE TABLE public.usage_span (
    tenant            TEXT     NOT NULL,
    project           TEXT,
    allocation        TEXT     NOT NULL,
    unit              INTEGER  NOT NULL,
    count             INTEGER  NOT NULL,
    sku               TEXT     NOT NULL,
    class             TEXT     NOT NULL,
    gpu               TEXT,
    node              TEXT,
    start_us          BIGINT   NOT NULL,
    end_us            BIGINT   NOT NULL,
    since_us          BIGINT,
    weights           TEXT[]   NOT NULL DEFAULT '{}',
    position          INTEGER  NOT NULL DEFAULT 0,
    compute_slices    SMALLINT,
    memory_slices     SMALLINT,
    gpu_compute_slices SMALLINT,
    gpu_memory_slices SMALLINT,
    weight            TEXT     NOT NULL,
    CONSTRAINT span_is_an_interval CHECK (start_us < end_us)
);
CREATE INDEX usage_span_by_allocation ON public.usage_span (allocation);
CREATE INDEX usage_span_by_gpu ON public.usage_span (gpu);
CREATE INDEX usage_span_by_tenant ON public.usage_span (tenant, start_us);
CREATE INDEX usage_span_by_time ON public.usage_span USING brin (start_us, end_us);
SELECT public.protect_tenant_rows('public.usage_span');
ALTER TABLE public.usage_span FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.usage_span TO gpuledger_writer;
GRANT SELECT ON public.usage_span TO gpuledger_api;
COMMENT ON TABLE public.usage_span IS 'Held time of one unit of an allocation with unchanged holders and shares. Time is split into parts on read (M-3).';
COMMENT ON COLUMN public.usage_span.unit IS 'Index of the unit within its allocation, from 0.';
COMMENT ON COLUMN public.usage_span.count IS 'Alike units of the span: above 1 for unplaced units only.';
COMMENT ON COLUMN public.usage_span.since_us IS 'Since when holders and shares are what they are: cells are cut there (M-3); null: held alone.';
COMMENT ON COLUMN public.usage_span.weights IS 'Rationals as text, of all holders of the unit in order of allocation id, the free rest last; empty: held alone.';
COMMENT ON COLUMN public.usage_span.position IS 'Place of this allocation in weights, from 0.';
COMMENT ON COLUMN public.usage_span.compute_slices IS 'Null for an unplaced unit (M-4), as are the other slice columns.';
COMMENT ON COLUMN public.usage_span.weight IS 'Whole-GPU equivalent of the unit, a rational as text (M-4).';

CREATE TABLE public.allocation (
    allocation TEXT PRIMARY KEY CHECK (octet_length(allocation) <= 1024),
    tenant     TEXT   NOT NULL,
    project    TEXT,
    class      TEXT   NOT NULL,
    start_us   BIGINT NOT NULL,
    end_us     BIGINT,
    end_kind   TEXT   NOT NULL,
    runtime    JSON   NOT NULL DEFAULT '{}',
    labels     JSON   NOT NULL DEFAULT '{}',
    source     TEXT   NOT NULL
);
CREATE INDEX allocation_by_tenant ON public.allocation (tenant, allocation);
SELECT public.protect_tenant_rows('public.allocation');
ALTER TABLE public.allocation FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.allocation TO gpuledger_writer;
GRANT SELECT ON public.allocation TO gpuledger_api;
COMMENT ON TABLE public.allocation IS 'Allocations as they stand at the horizon, for GET /v1/allocations. tenant is the last owner.';
COMMENT ON COLUMN public.allocation.end_us IS 'Null while it runs.';
COMMENT ON COLUMN public.allocation.end_kind IS 'Why it ended, or running, unconfirmed.';
