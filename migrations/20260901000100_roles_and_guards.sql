-- Roles of the running processes, and the guards that later tables use.
-- Roles belong to the whole server: several databases of one server may be migrated at once, hence the handlers.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpuledger_writer') THEN
        CREATE ROLE gpuledger_writer NOLOGIN BYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpuledger_api') THEN
        CREATE ROLE gpuledger_api NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

-- The login that migrates is also the one the processes connect with: they SET ROLE after connecting. A superuser may do so
-- without membership, and granting it again would only race with other databases.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'gpuledger_writer', 'MEMBER') THEN
        EXECUTE format('GRANT gpuledger_writer TO %I', current_user);
    END IF;
    IF NOT pg_has_role(current_user, 'gpuledger_api', 'MEMBER') THEN
        EXECUTE format('GRANT gpuledger_api TO %I', current_user);
    END IF;
END $$;

GRANT USAGE ON SCHEMA public TO gpuledger_writer, gpuledger_api;

CREATE FUNCTION public.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% of % refused: its rows are append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'append_only', TABLE = TG_TABLE_NAME,
              HINT = 'correct by a new row (a new fact, revision, version or document)';
END $$;
COMMENT ON FUNCTION public.refuse_change() IS 'Raises on UPDATE, DELETE and TRUNCATE (rule L-7): a guard against accidents, the owner''s included.';

-- Statement triggers see TRUNCATE and statements that touch no row; row triggers see replicated changes too, and Postgres
-- copies them from a partitioned table to every partition attached later. Statement triggers are not copied, so each
-- partition gets its own.
CREATE FUNCTION public.make_append_only(relation REGCLASS) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s
                    FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change()', relation);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER append_only', relation);
    IF NOT (SELECT relispartition FROM pg_class WHERE oid = relation) THEN
        EXECUTE format('CREATE TRIGGER append_only_row BEFORE UPDATE OR DELETE ON %s
                        FOR EACH ROW EXECUTE FUNCTION public.refuse_change()', relation);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER append_only_row', relation);
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION public.make_append_only(REGCLASS) FROM PUBLIC;
COMMENT ON FUNCTION public.make_append_only(REGCLASS) IS 'Puts the append-only guard on a table or partition. Parent first, then each partition.';

-- Who may read a row of a tenant: nobody, unless the transaction names a tenant; '*' names them all.
CREATE FUNCTION public.may_see_tenant(tenant TEXT) RETURNS BOOLEAN
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.current_setting('gpuledger.tenant', true) OPERATOR(pg_catalog.=) '*'
        OR tenant OPERATOR(pg_catalog.=) NULLIF(pg_catalog.current_setting('gpuledger.tenant', true), '')
$$;
COMMENT ON FUNCTION public.may_see_tenant(TEXT) IS
    'True where the setting gpuledger.tenant of the transaction is this tenant or *. Without the setting: false or null.';

CREATE FUNCTION public.protect_tenant_rows(relation REGCLASS) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', relation);
    EXECUTE format('CREATE POLICY tenant_rows ON %s USING (public.may_see_tenant(tenant))
                    WITH CHECK (public.may_see_tenant(tenant))', relation);
END $$;
REVOKE EXECUTE ON FUNCTION public.protect_tenant_rows(REGCLASS) FROM PUBLIC;
COMMENT ON FUNCTION public.protect_tenant_rows(REGCLASS) IS 'Row security by the column tenant. Every table with such a column has it.';

CREATE TABLE public.ledger_state (
    one        BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    horizon_us BIGINT,
    clock_us   BIGINT,
    rule_set   TEXT
);
INSERT INTO public.ledger_state DEFAULT VALUES;
GRANT SELECT, UPDATE ON public.ledger_state TO gpuledger_writer;
GRANT SELECT ON public.ledger_state TO gpuledger_api;
COMMENT ON TABLE public.ledger_state IS 'One row: how far the ledger stands.';
COMMENT ON COLUMN public.ledger_state.horizon_us IS 'As-of instant of the posted journals and read models (A-19), microseconds UTC; null before the first posting.';
COMMENT ON COLUMN public.ledger_state.clock_us IS 'Greatest clock seen, microseconds UTC: the clock never goes back.';
COMMENT ON COLUMN public.ledger_state.rule_set IS 'Version of the rules the read models were derived by.';
