-- Events that came over HTTP, on their way to the ledger: a queue, not a record. The API puts, the ledger takes.

CREATE TABLE public.inbox (
    seq            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    principal      TEXT   NOT NULL CHECK (octet_length(principal) <= 1024),
    nodes          TEXT[],
    refusal        TEXT,
    body           BYTEA  NOT NULL,
    received_at_us BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- FOR UPDATE asks for the right to update, though nothing does.
GRANT SELECT, UPDATE, DELETE ON public.inbox TO gpuledger_writer;
GRANT INSERT ON public.inbox TO gpuledger_api;
COMMENT ON TABLE public.inbox IS 'Events of POST /v1/events. The ledger deletes a row in the transaction of its effects (I-3); the API cannot read it back.';
COMMENT ON COLUMN public.inbox.principal IS 'Subject of the token that brought the event.';
COMMENT ON COLUMN public.inbox.nodes IS 'Nodes whose GPUs the principal may speak of (I-5); null: any.';
COMMENT ON COLUMN public.inbox.refusal IS 'Why the principal may not say this (I-5): the ledger parks it as not_entitled. Null: it may.';
COMMENT ON COLUMN public.inbox.body IS 'The structured CloudEvent as canonical JSON.';
