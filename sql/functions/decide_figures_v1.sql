-- decide_figures_v1: what decide_v1 tells of one check: what is left of its key, how long the same cost has to wait, and when
-- nothing is spent any more.
--
-- Arguments: figures of the key as decide_read_v1 gives them; p_taken is what the call has charged to it up to and with
--        this check. p_cost is what does not fit and has to wait, at most the capacity; NULL where nothing waits.
-- Units: tokens, microseconds from p_now. Clock: none, the instant is given.
-- Locks: none. SQLSTATE: none.
-- Note:  one query without settings of its own, so that the planner puts it into the caller's plan.
CREATE OR REPLACE FUNCTION ration.decide_figures_v1(
    p_now bigint, p_place int, p_cost bigint, p_capacity bigint, p_taken bigint, p_n bigint, p_d bigint, p_span bigint,
    p_sliding boolean, p_base bigint, p_at bigint, p_previous bigint, p_mark bigint, p_log ration.log_entries)
RETURNS TABLE (remaining bigint, retry_after bigint, reset_after bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN p_place <= 2 THEN (p_base - p_taken * p_d) / p_d
                WHEN p_place <= 4 THEN ration.window_room_v1(p_sliding, p_base + p_taken, p_previous, greatest(0, p_now - p_at), p_span,
                                                             p_capacity)
                ELSE p_capacity - p_base - p_taken END,
           CASE WHEN p_cost IS NULL THEN NULL
                WHEN p_place <= 2 THEN ration.wait_v1(p_cost * p_d - (p_base - p_taken * p_d), p_n, p_at - p_now)
                WHEN p_place <= 4 THEN p_at - p_now + ration.window_wait_v1(p_sliding, p_base + p_taken, p_previous, p_span, p_capacity,
                                                                            p_cost)
                ELSE ration.log_wait_v1((p_log).entries, p_taken, p_mark, p_base + p_taken + p_cost - p_capacity)
                     + CASE WHEN p_place = 7 THEN 0 ELSE p_span END - p_now END,  -- a slot counts until its expiry, an entry for the window behind it
           CASE WHEN p_place <= 2 THEN ration.wait_v1(p_capacity * p_d - (p_base - p_taken * p_d), p_n, p_at - p_now)
                WHEN p_place <= 4 THEN CASE WHEN p_base + p_taken > 0 THEN p_at - p_now + CASE WHEN p_sliding THEN 2 ELSE 1 END * p_span
                                            WHEN p_sliding AND p_previous > 0 THEN p_at - p_now + p_span
                                            ELSE 0 END
                WHEN p_base + p_taken = 0 THEN 0
                ELSE greatest(p_at, CASE WHEN p_taken > 0 THEN p_mark END) + CASE WHEN p_place = 7 THEN 0 ELSE p_span END - p_now END;
END;
