-- What gives data away or destroys it is in the log before it is begun.
ALTER TABLE accesses
    DROP CONSTRAINT accesses_outcome_check,
    ADD CONSTRAINT accesses_outcome_check CHECK (outcome IN ('begun', 'done', 'refused'));
