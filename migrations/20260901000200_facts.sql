-- What was said: accepted facts, their identities and subjects, what was parked, and the records the audit log will sequence.
-- All instants are BIGINT microseconds UTC. Names are at most 1024 bytes so that index rows stay below a third of a page.

CREATE TABLE public.identity (
    source   TEXT   NOT NULL CHECK (octet_length(source) <= 1024),
    id       TEXT   NOT NULL CHECK (octet_length(id) <= 1024),
    digest   BYTEA  NOT NULL CHECK (octet_length(digest) = 32),
    fact_seq BIGINT NOT NULL,
    PRIMARY KEY (source, id)
) PARTITION BY HASH (source, id);
SELECT public.make_append_only('public.identity');
DO $$
BEGIN
    FOR i IN 0..15 LOOP
        EXECUTE format('CREATE TABLE public.identity_%s PARTITION OF public.identity FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
                       lpad(i::TEXT, 2, '0'), i);
        PERFORM public.make_append_only(format('public.identity_%s', lpad(i::TEXT, 2, '0'))::REGCLASS);
    END LOOP;
END $$;
GRANT SELECT, INSERT ON public.identity TO gpuledger_writer;
COMMENT ON TABLE public.identity IS 'Every accepted (source, id), once (I-1). Outlives its fact, hence no foreign key.';
COMMENT ON COLUMN public.identity.digest IS 'SHA-256 of the content (type, time as an instant, data as a JSON value): equal means repeated, different means conflict.';

CREATE TABLE public.fact (
    seq            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source         TEXT   NOT NULL,
    id             TEXT   NOT NULL,
    type           TEXT   NOT NULL,
    at_us          BIGINT NOT NULL,
    received_at_us BIGINT NOT NULL,
    rule_set       TEXT   NOT NULL,
    digest         BYTEA  NOT NULL CHECK (octet_length(digest) = 32),
    body           BYTEA  NOT NULL
);
SELECT public.make_append_only('public.fact');
GRANT SELECT, INSERT ON public.fact TO gpuledger_writer;
GRANT USAGE ON SEQUENCE public.fact_seq_seq TO gpuledger_writer;
COMMENT ON TABLE public.fact IS 'Accepted facts. The ledger is a function of these (A-5); seq is the order of acceptance, with holes.';
COMMENT ON COLUMN public.fact.at_us IS 'When it happened.';
COMMENT ON COLUMN public.fact.received_at_us IS 'When it was accepted (I-6).';
COMMENT ON COLUMN public.fact.rule_set IS 'Version of the rules it was accepted under.';
COMMENT ON COLUMN public.fact.body IS 'Canonical JSON (RFC 8785) of the whole event, as bytes: JSONB would re-order.';

CREATE TABLE public.fact_subject (
    subject  TEXT   NOT NULL CHECK (octet_length(subject) <= 1100),
    fact_seq BIGINT NOT NULL,
    PRIMARY KEY (subject, fact_seq)
);
SELECT public.make_append_only('public.fact_subject');
GRANT SELECT, INSERT ON public.fact_subject TO gpuledger_writer;
COMMENT ON TABLE public.fact_subject IS
    'What a fact is about: gpu:UUID, node:NAME, alloc:ID, job:SLURM_JOB, pod:UID, snapshot:SOURCE, source-grants:SOURCE.';

CREATE TABLE public.audit_pending (
    seq            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fact_seq       BIGINT,
    kind           TEXT   NOT NULL,
    body           BYTEA  NOT NULL,
    recorded_at_us BIGINT NOT NULL
);
SELECT public.make_append_only('public.audit_pending');
GRANT SELECT, INSERT ON public.audit_pending TO gpuledger_writer;
COMMENT ON TABLE public.audit_pending IS 'Records written in the transaction of what they record (I-3, L-4); the sequencer composes leaves from them in its own order.';
COMMENT ON COLUMN public.audit_pending.body IS 'Canonical bytes; what is hashed is never re-encoded.';

CREATE TABLE public.parked (
    seq            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reason         TEXT   NOT NULL,
    detail         TEXT   NOT NULL,
    source         TEXT,
    id             TEXT,
    subject        TEXT   NOT NULL,
    at_us          BIGINT,
    received_at_us BIGINT NOT NULL,
    origin         TEXT   NOT NULL,
    body           BYTEA  NOT NULL,
    fingerprint    BYTEA  NOT NULL UNIQUE CHECK (octet_length(fingerprint) = 32)
);
SELECT public.make_append_only('public.parked');
GRANT SELECT, INSERT ON public.parked TO gpuledger_writer;
COMMENT ON TABLE public.parked IS 'Events that could not be applied, with their reason (I-4). Parked once, however often they are repeated.';
COMMENT ON COLUMN public.parked.reason IS 'Code: bad_value, conflict, future, not_entitled, …';
COMMENT ON COLUMN public.parked.origin IS 'file:line, or topic/partition/offset.';
COMMENT ON COLUMN public.parked.body IS 'The bytes as they came.';
COMMENT ON COLUMN public.parked.fingerprint IS 'SHA-256 over reason, source, id, body and, of a vain retry, the number it retried; a hash because a bad event may carry a name of any length.';

CREATE TABLE public.parked_decision (
    parked_seq    BIGINT PRIMARY KEY REFERENCES public.parked,
    decision      TEXT   NOT NULL CHECK (decision IN ('retried', 'discarded')),
    reason        TEXT   NOT NULL,
    decided_at_us BIGINT NOT NULL
);
SELECT public.make_append_only('public.parked_decision');
GRANT SELECT, INSERT ON public.parked_decision TO gpuledger_writer;
COMMENT ON TABLE public.parked_decision IS 'What became of a parked event; one decision each. Without one it is open.';

CREATE TABLE public.consumer_offset (
    group_name  TEXT    NOT NULL,
    topic       TEXT    NOT NULL,
    partition   INTEGER NOT NULL,
    cluster_id  TEXT    NOT NULL,
    topic_id    TEXT    NOT NULL,
    next_offset BIGINT  NOT NULL CHECK (next_offset >= 0),
    PRIMARY KEY (group_name, topic, partition)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.consumer_offset TO gpuledger_writer;
COMMENT ON TABLE public.consumer_offset IS 'Next offset per partition, moved in the transaction of its effects (I-3).';
COMMENT ON COLUMN public.consumer_offset.topic_id IS 'With cluster_id: a restored or re-created topic must not replay or skip in silence.';
