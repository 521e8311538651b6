-- An id may name a person: no values of users, agents and channels are sampled either. Plans do not need them: every query goes
-- by a key that begins with space and user, and PostgreSQL assumes that a value it knows nothing of is rare.
DO $$
DECLARE held record;
BEGIN
    FOR held IN
        SELECT c.oid::regclass AS named, a.attname
        FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE p.polname = 'own_rows' AND c.relnamespace = quote_ident(current_schema())::regnamespace AND a.attnum > 0
          AND NOT a.attisdropped AND a.atttypid IN ('text'::regtype, 'bytea'::regtype)
          AND a.attname NOT IN ('space', 'kind', 'state', 'role', 'field', 'purpose', 'outcome', 'embedder', 'face', 'call',
                                'action')
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', held.named, held.attname);
    END LOOP;
END $$;

-- ANALYZE leaves the samples of such a column as they are. They go when its type is set, even to the one it has; that writes
-- neither the table anew nor its indexes, but for two small ones, and no policy may name the column meanwhile. Where something
-- of others' depends on a column, as a view does, its samples stay: docs/how-to/forget.md says how a superuser removes them.
DO $$
DECLARE held record;
BEGIN
    FOR held IN
        SELECT c.oid::regclass AS named, pg_get_expr(p.polqual, p.polrelid) AS rule,
               string_agg(format('ALTER COLUMN %I TYPE %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                                 coalesce(' COLLATE ' || quote_ident(l.collname), '')), ', ') AS same
        FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_attribute AS a ON a.attrelid = c.oid
            LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
        WHERE p.polname = 'own_rows' AND c.relnamespace = quote_ident(current_schema())::regnamespace AND a.attnum > 0
          AND NOT a.attisdropped AND a.attstattarget = 0 AND c.reltuples > 0
        GROUP BY c.oid, p.polqual, p.polrelid
    LOOP
        BEGIN
            EXECUTE format('DROP POLICY own_rows ON %s', held.named);
            EXECUTE format('ALTER TABLE %s %s', held.named, held.same);
            EXECUTE format('CREATE POLICY own_rows ON %s USING (%s)', held.named, held.rule);
        EXCEPTION WHEN feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END $$;
