-- window_at_v1: what a row of windows counts at an instant: moved on to the window of that instant, but never back.
--
-- Arguments: the newest window that the row has seen, what was charged in it and in the one before; the window's length.
-- Answers: the same of the window that counts at the instant.
-- Units: tokens, microseconds. Clock: none, the instant is given. Locks: none. SQLSTATE: none.
-- Note:  one query without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.window_at_v1(p_start bigint, p_current bigint, p_previous bigint, p_span bigint, p_now bigint)
RETURNS TABLE (start bigint, current bigint, previous bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT greatest(p_start, w.due), CASE WHEN w.due <= p_start THEN p_current ELSE 0 END,
           CASE WHEN w.due <= p_start THEN p_previous WHEN w.due = p_start + p_span THEN p_current ELSE 0 END
    FROM (SELECT ration.window_start_v1(p_now, p_span) AS due) AS w;
END;
