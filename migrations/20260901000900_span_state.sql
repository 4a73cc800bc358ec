-- Spans of tenants that a pool serves, and billing states.

ALTER TABLE public.usage_span
    ADD COLUMN held  BOOLEAN NOT NULL DEFAULT TRUE,
    ADD COLUMN state TEXT;
COMMENT ON COLUMN public.usage_span.held IS 'False: a pool served the tenant, which has a part of the time and holds nothing (A-10).';
COMMENT ON COLUMN public.usage_span.state IS 'Billing state of the allocation over the time; null: none was said.';
