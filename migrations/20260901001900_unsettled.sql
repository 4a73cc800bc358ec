-- Facts of a backlog that are accepted and not settled yet (ADR 56). They take the place of GPUs whose journals wait: where some do, everything is
-- derived anew.

UPDATE public.ledger_state SET derived = 0 WHERE EXISTS (SELECT FROM public.unposted);
DROP TABLE public.unposted;

CREATE TABLE public.unsettled (
    fact_seq   BIGINT PRIMARY KEY,
    allocation TEXT   COLLATE "C",
    gpu        TEXT   COLLATE "C",
    node       TEXT   COLLATE "C"
);
CREATE INDEX unsettled_by_node ON public.unsettled (node);
CREATE INDEX unsettled_homeless ON public.unsettled (gpu) WHERE node IS NULL AND gpu IS NOT NULL;
CREATE INDEX unsettled_by_allocation ON public.unsettled (allocation);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.unsettled TO gpuledger_writer;
COMMENT ON TABLE public.unsettled IS
    'Written in the transaction that accepts the facts, taken in the transaction that settles them: a crash between both loses nothing.';
COMMENT ON COLUMN public.unsettled.allocation IS 'The allocation it is about: all facts of one are settled together.';
COMMENT ON COLUMN public.unsettled.gpu IS 'A GPU it names. Its node may be known only later.';
COMMENT ON COLUMN public.unsettled.node IS 'The node it leads to, as far as is known: what lies on one node is settled together.';
