-- Nodes whose journals and read models may lag behind accepted telemetry (see the ledger's room, ADR 4).

CREATE TABLE public.touched (
    node TEXT PRIMARY KEY CHECK (octet_length(node) <= 1024)
);
GRANT SELECT, INSERT, DELETE ON public.touched TO gpuledger_writer;
COMMENT ON TABLE public.touched IS
    'Written in the transaction that accepts a telemetry window, taken in the transaction that settles the node: a crash between both loses nothing.';
