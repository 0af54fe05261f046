-- decide_figures_v1: what decide_v1 tells of one check: what is left of its key, how long the same cost has to wait, and when
-- nothing is spent any more.
--
-- Arguments: figures of the key as decide_read_v1 gives them; p_taken is what the call has charged to it up to and with
--        this check. The wait is meaningful for a cost of at most the capacity that does not fit.
-- Units: tokens, microseconds from p_now. Clock: none, the instant is given.
-- Locks: none. SQLSTATE: none.
-- Note:  one query without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.decide_figures_v1(
    p_now bigint, p_place int, p_cost bigint, p_capacity bigint, p_taken bigint, p_n bigint, p_d bigint, p_span bigint,
    p_sliding boolean, p_base bigint, p_at bigint, p_previous bigint, p_mark bigint, p_log ration.log_entries)
RETURNS TABLE (remaining bigint, retry_after bigint, reset_after bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT (p_base - p_taken * p_d) / p_d,
           ration.wait_v1(CASE WHEN p_cost <= p_capacity THEN p_cost * p_d END - (p_base - p_taken * p_d), p_n, p_at - p_now),
           ration.wait_v1(p_capacity * p_d - (p_base - p_taken * p_d), p_n, p_at - p_now)
    WHERE p_place <= 2
    UNION ALL
    SELECT ration.window_room_v1(p_sliding, p_base + p_taken, p_previous, greatest(0, p_now - p_at), p_span, p_capacity),
           p_at - p_now + CASE WHEN p_cost <= p_capacity
                               THEN ration.window_wait_v1(p_sliding, p_base + p_taken, p_previous, p_span, p_capacity, p_cost) END,
           CASE WHEN p_base + p_taken > 0 THEN p_at - p_now + CASE WHEN p_sliding THEN 2 * p_span ELSE p_span END
                WHEN p_sliding AND p_previous > 0 THEN p_at - p_now + p_span
                ELSE 0 END
    WHERE p_place BETWEEN 3 AND 4
    UNION ALL
    -- An entry counts for the window behind its instant, a slot until its expiry.
    SELECT p_capacity - p_base - p_taken,
           counted.span - p_now + ration.log_wait_v1((p_log).entries, p_taken, p_mark, p_base + p_taken + p_cost - p_capacity),
           CASE WHEN p_base + p_taken = 0 THEN 0
                ELSE counted.span - p_now + greatest(p_at, CASE WHEN p_taken > 0 THEN p_mark END) END
    FROM (SELECT CASE WHEN p_place = 7 THEN 0 ELSE p_span END AS span) AS counted
    WHERE p_place >= 5;
END;
