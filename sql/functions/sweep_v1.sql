-- sweep_v1: does one piece of what open sweeps have to do. A pass goes through the tables, stretch by stretch, and serves all
-- sweeps that were open when it began; at its end it closes them.
--
-- Arguments: the shard; rows to examine; p_share: of the time, one part in so many goes into pieces, whoever does them.
-- Answers: how long to rest before the next piece; NULL when there was nothing to do, or another session is doing it.
-- Units: rows, microseconds.
-- Clock: clock_timestamp() once a call, or p_now on a test clock; what a piece took is by clock_timestamp() always.
-- Locks: the pass, by SKIP LOCKED: one session does a piece at a time. Then the sweeps of the pass, then the rows it writes, see
--        sweep_stretch_v1. A piece that closes sweeps locks no rows, and the row of ration.policy_set before the sweeps, as
--        policy changes do.
-- SQLSTATE: RN003 from clock_v1; RN001 RN004 from stretch_v1; RN004 p_share below 1.
CREATE OR REPLACE FUNCTION ration.sweep_v1(p_shard int, p_rows int, p_share int, p_now bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c_grace constant bigint      := 1000000;   -- calls that began under the version before are over by then
    c_ahead constant bigint      := 60000000;  -- longer than any rest: the clock was set back meanwhile
    v_start constant timestamptz := clock_timestamp();
    v_now   constant bigint      := ration.clock_v1(p_now);
    v_rest           bigint;
    v_pass           ration.sweep_pass;
    v_over           boolean := true;  -- with the table in hand
    s                record;
BEGIN
    IF (p_share >= 1) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'RN004', MESSAGE = 'a sweep takes one part in 1 or more of the time';
    END IF;
    IF NOT EXISTS (SELECT FROM ration.sweep AS w WHERE w.pass IS NOT NULL OR w.began_at <= v_now - c_grace) THEN
        RETURN NULL;
    END IF;
    PERFORM ration.commit_lazily_v1();  -- a piece that is lost is done again, with what it counted
    SELECT p.* INTO v_pass FROM ration.sweep_pass AS p
    WHERE p.next_at <= v_now OR p.next_at > v_now + c_ahead FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    IF NOT EXISTS (SELECT FROM ration.sweep AS w WHERE w.pass = v_pass.pass) THEN
        v_pass.pass := v_pass.pass + 1;
        v_pass.place := 0;
        UPDATE ration.sweep SET pass = v_pass.pass WHERE began_at <= v_now - c_grace;
    ELSIF v_pass.place = 7 THEN
        PERFORM FROM ration.policy_set FOR UPDATE;
        PERFORM ration.close_sweep_v1(w.policy, v_now, 'every balance is settled') FROM ration.sweep AS w WHERE w.pass = v_pass.pass;
    ELSE
        PERFORM FROM ration.sweep AS w WHERE w.pass = v_pass.pass FOR NO KEY UPDATE;
        s := ration.stretch_v1(ration.state_table_v1(v_pass.place), 'key', p_shard, v_pass.after, p_rows);
        -- Where others hold a row, the next piece is this stretch once more.
        IF ration.sweep_stretch_v1(v_pass.pass, v_pass.place, p_shard, s.o_after, s.o_until) THEN
            v_over := false;
        ELSIF s.o_last IS NOT NULL THEN
            v_over := false;
            v_pass.after := s.o_last;
        END IF;
    END IF;
    IF v_over THEN
        -- The next table that may hold anything of these policies; behind the last one, which is 6, the sweeps are closed.
        v_pass.after := '00000000-0000-0000-0000-000000000000';
        SELECT coalesce(min(n.place), 7) INTO v_pass.place
        FROM ration.sweep AS w
        JOIN ration.policy AS p ON p.number = w.policy
        JOIN ration.policy_version AS v ON v.number = w.policy AND v.version = w.version
        JOIN generate_series(v_pass.place + 1, 6) AS n (place)
             ON v.balances = 'restart' OR ration.state_place_v1(p.algorithm, p.strict, p.durability) = n.place
        WHERE w.pass = v_pass.pass;
    END IF;
    v_rest := (p_share - 1) * (extract(epoch FROM clock_timestamp() - v_start) * 1000000)::bigint;
    UPDATE ration.sweep_pass SET pass = v_pass.pass, place = v_pass.place, after = v_pass.after, next_at = v_now + v_rest;
    RETURN v_rest;
END $$;
