-- A decision about a parked event says who took it, and may be a correction; a vain retry names the event it retried.

ALTER TABLE public.parked ADD COLUMN retry_of BIGINT REFERENCES public.parked;
COMMENT ON COLUMN public.parked.retry_of IS 'The parked event this is a vain retry of; of those parked before this column came it is in the fingerprint alone.';

ALTER TABLE public.parked_decision ADD COLUMN principal TEXT NOT NULL DEFAULT 'cli';
COMMENT ON COLUMN public.parked_decision.principal IS 'Who decided: cli, or ledger where the time of a future event came.';

ALTER TABLE public.parked_decision DROP CONSTRAINT parked_decision_decision_check;
ALTER TABLE public.parked_decision
    ADD CONSTRAINT parked_decision_decision_check CHECK (decision IN ('retried', 'corrected', 'discarded')) NOT VALID;
ALTER TABLE public.parked_decision VALIDATE CONSTRAINT parked_decision_decision_check;
COMMENT ON COLUMN public.parked_decision.decision IS
    'retried: taken in again as it is; corrected: another event was taken in for it; discarded: given up.';
