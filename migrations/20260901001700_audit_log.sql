-- The audit log: which pending records wait, the leaves with the tree over them, signed heads, and the keys that salts are made of.
-- The proof is never this database: it is the tree's signed head outside of it, and whoever has seen one (L-6, L-7).

CREATE TABLE public.audit_queue (
    pending_seq BIGINT PRIMARY KEY
);
GRANT SELECT, INSERT, DELETE ON public.audit_queue TO gpuledger_writer;
COMMENT ON TABLE public.audit_queue IS
    'Pending records without a leaf. A row goes with the leaf of its record, in one transaction: numbers become visible out of order, so no reader may go by the last one it saw.';

CREATE FUNCTION public.queue_pending() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO public.audit_queue (pending_seq) SELECT seq FROM added;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION public.queue_pending() IS 'Whoever writes a pending record, the sequencer finds it (L-4).';

CREATE TRIGGER queue_pending AFTER INSERT ON public.audit_pending
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.queue_pending();
ALTER TABLE public.audit_pending ENABLE ALWAYS TRIGGER queue_pending;
INSERT INTO public.audit_queue (pending_seq) SELECT seq FROM public.audit_pending;

CREATE TABLE public.subject_key (
    no            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest        BYTEA  NOT NULL CHECK (octet_length(digest) = 32),
    kind          TEXT   NOT NULL,
    tenant        TEXT,
    key           BYTEA,
    made_at_us    BIGINT NOT NULL,
    erased_at_us  BIGINT,
    CHECK ((key IS NULL) = (erased_at_us IS NOT NULL))
);
CREATE UNIQUE INDEX subject_key_live ON public.subject_key (digest) WHERE erased_at_us IS NULL;
CREATE INDEX subject_key_tenant ON public.subject_key (tenant) WHERE tenant IS NOT NULL;
SELECT public.protect_tenant_rows('public.subject_key');
GRANT SELECT, INSERT, UPDATE (key, erased_at_us) ON public.subject_key TO gpuledger_writer;
GRANT SELECT ON public.subject_key TO gpuledger_api;
COMMENT ON TABLE public.subject_key IS 'A key for each person, tenant or other subject that leaves speak of without naming it (L-3). Destroying the key erases them: what stays are commitments that nobody can open.';
COMMENT ON COLUMN public.subject_key.digest IS 'Keyed digest of kind and name; the name itself stands nowhere here, but that of a tenant.';
COMMENT ON COLUMN public.subject_key.tenant IS 'Of kind tenant: which, so that row security can tell whose leaves are whose.';
COMMENT ON COLUMN public.subject_key.key IS '32 bytes as they are, or sealed by the key-encryption key: 12 bytes of nonce, ciphertext, tag. Null once erased.';

CREATE TABLE public.audit_state (
    one      BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    pepper   BYTEA,
    erasures BIGINT NOT NULL DEFAULT 0,
    size     BIGINT NOT NULL DEFAULT 0,
    root     BYTEA
);
INSERT INTO public.audit_state DEFAULT VALUES;
GRANT SELECT, UPDATE ON public.audit_state TO gpuledger_writer;
COMMENT ON TABLE public.audit_state IS 'One row.';
COMMENT ON COLUMN public.audit_state.root IS 'Root over the first size leaves, as the sequencer appended them; leaves that are read back to be signed must lead to it.';
COMMENT ON COLUMN public.audit_state.pepper IS 'Key of the digests of subjects; sealed like a subject''s key.';
COMMENT ON COLUMN public.audit_state.erasures IS 'How often a key was destroyed: a process that keeps keys in memory lets go of them when this moves.';

CREATE TABLE public.audit_leaf (
    leaf_index  BIGINT   PRIMARY KEY CHECK (leaf_index >= 0),
    pending_seq BIGINT,
    fact_seq    BIGINT,
    subjects    BIGINT[] NOT NULL,
    leaf        BYTEA    NOT NULL CHECK (octet_length(leaf) <= 65535)
);
CREATE INDEX audit_leaf_origin ON public.audit_leaf USING BRIN (pending_seq, fact_seq) WITH (pages_per_range = 8, autosummarize = on);
SELECT public.make_append_only('public.audit_leaf');
ALTER TABLE public.audit_leaf ENABLE ROW LEVEL SECURITY;
CREATE POLICY named ON public.audit_leaf USING (
    current_setting('gpuledger.tenant', true) = '*'
    OR EXISTS (SELECT FROM public.subject_key AS k
               WHERE k.no = ANY (subjects) AND k.tenant = NULLIF(current_setting('gpuledger.tenant', true), '')));
GRANT SELECT, INSERT ON public.audit_leaf TO gpuledger_writer;
GRANT SELECT ON public.audit_leaf TO gpuledger_api;
COMMENT ON TABLE public.audit_leaf IS 'The log: leaves as the bytes that are hashed, indexes contiguous from 0 (L-4). A tenant sees those that name or concern it.';
COMMENT ON COLUMN public.audit_leaf.pending_seq IS 'The record it was composed of; null: a heartbeat. Nearly in order, hence the small index.';
COMMENT ON COLUMN public.audit_leaf.subjects IS 'Whose keys salt its commitments, in the order of its fields; then tenants that it concerns without naming them: whose allocation was released.';

CREATE TABLE public.audit_tile (
    level      SMALLINT NOT NULL CHECK (level BETWEEN 0 AND 7),
    tile_index BIGINT   NOT NULL CHECK (tile_index >= 0),
    root       BYTEA    NOT NULL CHECK (octet_length(root) = 32),
    hashes     BYTEA    NOT NULL CHECK (octet_length(hashes) = 8192),
    PRIMARY KEY (level, tile_index)
);
ALTER TABLE public.audit_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
SELECT public.make_append_only('public.audit_tile');
GRANT SELECT, INSERT ON public.audit_tile TO gpuledger_writer;
GRANT SELECT ON public.audit_tile TO gpuledger_api;
COMMENT ON TABLE public.audit_tile IS 'Full tiles of the tree, 256 hashes each, with the hash over all of them: a hash of the next level of tiles. What is not full is made of leaves and roots.';

CREATE TABLE public.audit_checkpoint (
    size         BIGINT PRIMARY KEY CHECK (size >= 0),
    root         BYTEA  NOT NULL CHECK (octet_length(root) = 32),
    note         BYTEA  NOT NULL,
    signed_at_us BIGINT NOT NULL
);
SELECT public.make_append_only('public.audit_checkpoint');
GRANT SELECT, INSERT ON public.audit_checkpoint TO gpuledger_writer;
GRANT SELECT ON public.audit_checkpoint TO gpuledger_api;
COMMENT ON TABLE public.audit_checkpoint IS 'Published heads, each a signed note. The largest is served.';

CREATE TABLE public.audit_cosignature (
    size       BIGINT NOT NULL REFERENCES public.audit_checkpoint,
    witness    TEXT   NOT NULL,
    line       TEXT   NOT NULL,
    came_at_us BIGINT NOT NULL,
    PRIMARY KEY (size, witness)
);
SELECT public.make_append_only('public.audit_cosignature');
GRANT SELECT, INSERT ON public.audit_cosignature TO gpuledger_writer;
GRANT SELECT ON public.audit_cosignature TO gpuledger_api;
COMMENT ON TABLE public.audit_cosignature IS 'Signature lines of witnesses under a published head; they are served with it.';

CREATE TABLE public.audit_chain (
    gpu    TEXT     PRIMARY KEY CHECK (octet_length(gpu) <= 1024),
    counts BIGINT[] NOT NULL CHECK (cardinality(counts) = 8),
    lasts  BIGINT[] NOT NULL CHECK (cardinality(lasts) = 8)
);
GRANT SELECT, INSERT, UPDATE ON public.audit_chain TO gpuledger_writer;
COMMENT ON TABLE public.audit_chain IS 'Ends of the chains of residue domains (L-5): of each memory slice how many leaves touched it, and the last of them. Derived from the leaves.';
