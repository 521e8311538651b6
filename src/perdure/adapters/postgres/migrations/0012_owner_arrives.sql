-- A row whose user did not arrive where it is held is refused aloud. It was hidden until now: what got lost on the way to another
-- server would have looked like an empty answer.
DO $$
DECLARE held regclass;
BEGIN
    FOR held IN
        SELECT c.oid::regclass FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
        WHERE p.polname = 'own_rows' AND c.relnamespace = quote_ident(current_schema())::regnamespace
    LOOP
        EXECUTE format($policy$
            ALTER POLICY own_rows ON %s USING (CASE
                WHEN current_setting('perdure.everyone', true) = 'on' THEN true
                WHEN coalesce(current_setting('perdure.space', true), '') = '' OR coalesce(current_setting('perdure.user', true), '') = ''
                    THEN ('whose rows are meant did not arrive' || coalesce(current_setting('perdure.user', true), ''))::boolean
                ELSE space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true)
            END)
        $policy$, held);
    END LOOP;
END $$;
