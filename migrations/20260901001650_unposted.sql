-- GPUs whose journals lag behind accepted facts while a backlog is read (ADR 55).

CREATE TABLE public.unposted (
    gpu     TEXT   PRIMARY KEY CHECK (octet_length(gpu) <= 1024),
    from_us BIGINT NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.unposted TO gpuledger_writer;
COMMENT ON TABLE public.unposted IS
    'Written in the transaction that accepts the facts, taken in the transaction that posts: a crash between both loses nothing. Reads compute these GPUs from facts.';
COMMENT ON COLUMN public.unposted.from_us IS 'Journals of hours that begin before this instant stand as they should; microseconds UTC.';
