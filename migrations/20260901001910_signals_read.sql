-- GET /v1/signals reads under row security: a tenant sees what concerns it.

ALTER TABLE public.signal FORCE ROW LEVEL SECURITY;
GRANT SELECT ON public.signal TO gpuledger_api;
CREATE INDEX signal_by_tenant ON public.signal (tenant, seq);
