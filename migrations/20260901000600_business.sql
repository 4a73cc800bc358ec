-- Business objects, closes and documents.

CREATE TABLE public.object (
    seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          TEXT    NOT NULL CHECK (octet_length(kind) <= 1024),
    id            TEXT    NOT NULL CHECK (octet_length(id) <= 1024),
    version       INTEGER NOT NULL CHECK (version >= 1),
    body          JSON    NOT NULL,
    applied_at_us BIGINT  NOT NULL,
    principal     TEXT    NOT NULL,
    UNIQUE (kind, id, version)
);
SELECT public.make_append_only('public.object');
ALTER TABLE public.object ENABLE ROW LEVEL SECURITY;
CREATE POLICY shared_or_own ON public.object FOR SELECT USING (
    kind IN ('Tenant', 'Sku', 'Seller', 'Customer', 'RateCard')
    AND (current_setting('gpuledger.tenant', true) = '*' OR kind = 'Sku'
         OR kind = 'Tenant' AND id = NULLIF(current_setting('gpuledger.tenant', true), '')));
GRANT SELECT, INSERT ON public.object TO gpuledger_writer;
GRANT SELECT ON public.object TO gpuledger_api;
COMMENT ON TABLE public.object IS 'Versions of the objects of `apply`: the last version stands. The API reads SKUs and the tenant''s own object.';
COMMENT ON COLUMN public.object.body IS 'JSON, not JSONB: its text is kept as it was written.';

CREATE TABLE public.period_close (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    period       TEXT   NOT NULL CHECK (period ~ '^[0-9]{4}-[0-9]{2}$'),
    tenant       TEXT   NOT NULL,
    as_of_us     BIGINT NOT NULL,
    facts_count  BIGINT NOT NULL,
    facts_digest BYTEA  NOT NULL CHECK (octet_length(facts_digest) = 32),
    facts_seq    BIGINT NOT NULL,
    rule_set     TEXT   NOT NULL,
    closed_at_us BIGINT NOT NULL
);
CREATE INDEX period_close_by_tenant ON public.period_close (tenant, period);
SELECT public.make_append_only('public.period_close');
SELECT public.protect_tenant_rows('public.period_close');
GRANT SELECT, INSERT ON public.period_close TO gpuledger_writer;
COMMENT ON TABLE public.period_close IS 'What a close froze (V-3). Facts of the period accepted later are adjustments.';
COMMENT ON COLUMN public.period_close.period IS 'Calendar month in the tenant''s period zone, YYYY-MM.';
COMMENT ON COLUMN public.period_close.facts_digest IS 'SHA-256 over the sorted (source, id, content digest) of all facts accepted until then.';
COMMENT ON COLUMN public.period_close.facts_seq IS 'Greatest fact.seq accepted until then: facts above it are later. Sound because a close excludes every open batch.';

CREATE TABLE public.number_series (
    seller      TEXT   NOT NULL,
    series      TEXT   NOT NULL,
    next_number BIGINT NOT NULL CHECK (next_number >= 1),
    PRIMARY KEY (seller, series)
);
GRANT SELECT, INSERT, UPDATE ON public.number_series TO gpuledger_writer;
COMMENT ON TABLE public.number_series IS 'Next document number. A row, not a sequence: a rolled-back issue must leave no hole (V-2).';

CREATE TABLE public.document (
    id            TEXT PRIMARY KEY,
    number        TEXT,
    kind          TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('draft', 'issued', 'paid', 'discarded')),
    seller        TEXT    NOT NULL,
    series        TEXT    NOT NULL,
    customer      TEXT    NOT NULL,
    tenant        TEXT    NOT NULL,
    period        TEXT    NOT NULL,
    attempt       INTEGER NOT NULL CHECK (attempt >= 1),
    body          JSON    NOT NULL,
    created_at_us BIGINT  NOT NULL,
    issued_at_us  BIGINT,
    paid_at_us    BIGINT,
    CONSTRAINT document_number UNIQUE (seller, series, number),
    CONSTRAINT document_key UNIQUE (customer, tenant, period, kind, attempt),
    CONSTRAINT numbered_when_issued CHECK ((status IN ('issued', 'paid')) = (number IS NOT NULL AND issued_at_us IS NOT NULL)),
    CONSTRAINT dated_when_paid CHECK ((status = 'paid') = (paid_at_us IS NOT NULL))
);
CREATE INDEX document_by_tenant ON public.document (tenant, period);
SELECT public.protect_tenant_rows('public.document');
ALTER TABLE public.document FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE ON public.document TO gpuledger_writer;
GRANT SELECT ON public.document TO gpuledger_api;
COMMENT ON TABLE public.document IS 'Invoices and credit notes. A draft becomes issued or discarded; an issued one never changes but to paid (V-1).';
COMMENT ON COLUMN public.document.body IS 'The frozen JSON of `invoice show`. JSON, not JSONB: the same bytes a year later (V-3).';

CREATE FUNCTION public.check_document_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step   TEXT;
    before public.document := OLD;
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'deletion of % document % refused: discard a draft, correct an issued one by a credit note', OLD.status, OLD.id
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'document_frozen', TABLE = 'document';
    END IF;
    step := OLD.status || ' to ' || NEW.status;
    -- What a step may change is copied over; the rest must be equal, columns added later included.
    before.status := NEW.status;
    IF step = 'draft to issued' THEN
        before.number := NEW.number;
        before.issued_at_us := NEW.issued_at_us;
        before.body := NEW.body;
    ELSIF step = 'issued to paid' THEN
        before.paid_at_us := NEW.paid_at_us;
    ELSIF step <> 'draft to discarded' THEN
        RAISE EXCEPTION 'change of document % from % refused', OLD.id, step
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'document_frozen', TABLE = 'document';
    END IF;
    IF before::TEXT IS DISTINCT FROM NEW::TEXT THEN
        RAISE EXCEPTION 'change of document % from % refused: it may not change anything else', OLD.id, step
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'document_frozen', TABLE = 'document';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER document_frozen BEFORE UPDATE OR DELETE ON public.document
    FOR EACH ROW EXECUTE FUNCTION public.check_document_change();
CREATE TRIGGER document_kept BEFORE TRUNCATE ON public.document
    FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
ALTER TABLE public.document ENABLE ALWAYS TRIGGER document_frozen;
ALTER TABLE public.document ENABLE ALWAYS TRIGGER document_kept;
COMMENT ON FUNCTION public.check_document_change() IS 'The life of a document (V-1), step by step.';
