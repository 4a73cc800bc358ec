-- Residue: violations as they were recorded, and orders to allocators that are on their way (R-2, R-3, Q-5).

CREATE TABLE public.residue_violation (
    gpu           TEXT    COLLATE "C" NOT NULL CHECK (octet_length(gpu) <= 1024),
    allocation    TEXT    COLLATE "C" NOT NULL CHECK (octet_length(allocation) <= 1024),
    unit          INTEGER NOT NULL,
    start_us      BIGINT  NOT NULL,
    detail        TEXT    NOT NULL,
    seen_at_us    BIGINT  NOT NULL,
    due_at_us     BIGINT  NOT NULL,
    alarmed_at_us BIGINT,
    cleared_at_us BIGINT,
    PRIMARY KEY (gpu, allocation, unit)
);
CREATE INDEX residue_violation_start ON public.residue_violation (gpu, start_us);
CREATE INDEX residue_violation_due ON public.residue_violation (due_at_us) WHERE alarmed_at_us IS NULL AND cleared_at_us IS NULL;
GRANT SELECT, INSERT, UPDATE ON public.residue_violation TO gpuledger_writer;
COMMENT ON TABLE public.residue_violation IS
    'Grants that the ledger found in violation of R-2, once each. Findings are derived from facts and do not read it; it says what was audited and alarmed.';
COMMENT ON COLUMN public.residue_violation.due_at_us IS 'When it is alarmed, unless facts on their way clear it before.';
COMMENT ON COLUMN public.residue_violation.cleared_at_us IS 'When facts that came late showed that it was none.';

CREATE TABLE public.signal (
    seq             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    signal          TEXT   COLLATE "C" NOT NULL UNIQUE,
    cause           TEXT   COLLATE "C" NOT NULL UNIQUE,
    tenant          TEXT   NOT NULL,
    action          TEXT   NOT NULL CHECK (action IN ('deny_new', 'throttle', 'preempt', 'resume', 'quarantine', 'release_quarantine')),
    gpu             TEXT   COLLATE "C",
    slices          TEXT,
    since_us        BIGINT NOT NULL,
    event           BYTEA  NOT NULL,
    raised_at_us    BIGINT NOT NULL,
    due_at_us       BIGINT NOT NULL,
    withdrawn_at_us BIGINT,
    published_at_us BIGINT,
    attempts        INTEGER NOT NULL DEFAULT 0,
    outcome         TEXT   CHECK (outcome IN ('accepted', 'effected', 'refused')),
    answered_at_us  BIGINT,
    lifted_at_us    BIGINT
);
CREATE INDEX signal_due ON public.signal (due_at_us) WHERE published_at_us IS NULL AND withdrawn_at_us IS NULL;
CREATE INDEX signal_quarantine ON public.signal (gpu) WHERE action = 'quarantine' AND withdrawn_at_us IS NULL AND lifted_at_us IS NULL;
SELECT public.protect_tenant_rows('public.signal');
GRANT SELECT, INSERT, UPDATE ON public.signal TO gpuledger_writer;
COMMENT ON TABLE public.signal IS
    'The outbox of signals: written with what caused them, published at least once under one event id, marked by the allocator''s answer (Q-5).';
COMMENT ON COLUMN public.signal.cause IS 'What raises it once, however often it is found again.';
COMMENT ON COLUMN public.signal.slices IS 'Memory slices that are kept from tenants, such as 0-3.';
COMMENT ON COLUMN public.signal.since_us IS 'When its cause happened.';
COMMENT ON COLUMN public.signal.event IS 'signal.raised as one canonical JSON text.';
COMMENT ON COLUMN public.signal.due_at_us IS 'When it is published, unless it is withdrawn before.';
COMMENT ON COLUMN public.signal.withdrawn_at_us IS 'When facts that came late showed that nothing was to be ordered; only before it was published.';
COMMENT ON COLUMN public.signal.answered_at_us IS 'Time of the latest answer.';
COMMENT ON COLUMN public.signal.lifted_at_us IS 'When its quarantine was over: sanitised, or a named person answers for it (R-3).';
