-- sweep_stretch_v1: brings a stretch of a table to the versions in force, for the sweeps of a pass. Buckets of older versions are
-- carried over, as a decision on them would. Windows and logs of older versions count no more and are deleted, and so is
-- whatever a policy has in a table that is not the place of its state any more.
--
-- Arguments: the pass; the table's place, see state_place_v1; the shard; the stretch, behind p_after up to p_until.
-- Answers: whether an older row is left, because others hold it.
-- Units: none. Clock: none.
-- Locks: the rows it writes, ascending by key, by SKIP LOCKED; PostgreSQL checks a row again under its lock when another session has
--        changed it since the look. The caller has locked the sweeps.
-- SQLSTATE: none.
CREATE OR REPLACE FUNCTION ration.sweep_stretch_v1(
    p_pass bigint, p_place int, p_shard int, p_after uuid, p_until uuid, OUT o_left boolean)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
-- Whether analysed or not: the rows of the stretch, and what each of them needs.
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
DECLARE
    c_older constant text := '
        FROM ration.%1$I AS t
        CROSS JOIN LATERAL (SELECT w.version FROM ration.sweep AS w WHERE w.policy = t.policy AND w.pass = $1 OFFSET 0) AS w
        JOIN ration.policy AS p ON p.number = t.policy
        WHERE t.shard = $3 AND t.key > $4 AND t.key <= $5 AND t.version < w.version';
    c_placed constant text := '
        ration.state_place_v1(p.algorithm, p.strict, p.durability) = $2';
    v_table constant text := ration.state_table_v1(p_place);
BEGIN
    -- Planned anew each time: once in a while, and over any table.
    IF p_place <= 2 THEN
        EXECUTE format('
            WITH held AS (
                SELECT t.key, t.policy, t.version, t.balance, t.at, p.version AS now' || c_older || ' AND' || c_placed || '
                ORDER BY t.key FOR NO KEY UPDATE OF t SKIP LOCKED
            ), carried AS (
                SELECT h.key, h.policy, h.now, c.o_balance, c.o_at, c.o_clamped
                FROM held AS h CROSS JOIN LATERAL ration.carry_v1(h.policy, h.version, h.now, h.balance, h.at) AS c
            ), written AS (
                UPDATE ration.%1$I AS t SET balance = c.o_balance, at = c.o_at, version = c.now
                FROM carried AS c WHERE t.shard = $3 AND t.key = c.key
            )
            UPDATE ration.sweep AS w SET settled = w.settled + n.settled, clamped = w.clamped + n.clamped
            FROM (SELECT c.policy, count(*) AS settled, count(*) FILTER (WHERE c.o_clamped) AS clamped
                  FROM carried AS c GROUP BY c.policy) AS n
            WHERE w.policy = n.policy', v_table)
            USING p_pass, p_place, p_shard, p_after, p_until;
    END IF;
    EXECUTE format('
        WITH held AS (
            SELECT t.key' || c_older || ' AND ($2 > 2 OR NOT' || c_placed || ')
            ORDER BY t.key FOR NO KEY UPDATE OF t SKIP LOCKED
        ), deleted AS (
            DELETE FROM ration.%1$I AS t USING held AS h WHERE t.shard = $3 AND t.key = h.key RETURNING t.policy
        )
        UPDATE ration.sweep AS w SET settled = w.settled + n.settled
        FROM (SELECT d.policy, count(*) AS settled FROM deleted AS d GROUP BY d.policy) AS n
        WHERE w.policy = n.policy', v_table)
        USING p_pass, p_place, p_shard, p_after, p_until;
    EXECUTE format('SELECT EXISTS (SELECT' || c_older || ' AND $2 > 0)', v_table)
        INTO o_left USING p_pass, p_place, p_shard, p_after, p_until;
END $$;
