-- GPUs whose measured time was packed anew: where a pool divides by it, journals and read models may lag behind (ADR 34).

CREATE TABLE public.measured_mark (
    gpu     TEXT   PRIMARY KEY CHECK (octet_length(gpu) <= 1024),
    from_us BIGINT NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON public.measured_mark TO gpuledger_writer;
COMMENT ON TABLE public.measured_mark IS
    'Written in the transaction that packs an hour, while some pool divides by measured time; taken in the transaction that settles the GPU: a crash between both loses nothing.';
COMMENT ON COLUMN public.measured_mark.from_us IS 'Begin of the earliest hour that was packed.';
