-- log_now: every stored key of sliding window logs and strict sliding window counters as it is at this instant: what is used
-- of its limit and when nothing is any more. For people; it reads without locks. A key that is not listed is idle.
CREATE OR REPLACE VIEW ration.log_now AS
SELECT p.id::text AS policy, l.key, l.shard, p.durability, p.version AS policy_version, p.capacity - f.remaining AS used, p.capacity,
       ration.instant_v1(clock.now, f.reset_after) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.entries FROM ration.log_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.entries FROM ration.log_durable AS d) AS l
JOIN ration.policy AS p ON p.number = l.policy AND l.version >= p.since  -- what came before counts no more
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL ration.log_live_v1(l.entries, clock.now - p.span) AS held
CROSS JOIN LATERAL (SELECT held.o_live[cardinality(held.o_live) - 1] AS at) AS newest
CROSS JOIN LATERAL ration.decide_figures_v1(
    clock.now, 5 /* state_place_v1 */, NULL, p.capacity, 0, p.n, p.d, p.span, false,
    held.o_used, newest.at, 0, newest.at, ROW (held.o_live)::ration.log_entries) AS f;
