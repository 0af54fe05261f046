-- window_now: every stored key of fixed windows and sliding window counters as it is at this instant: what is used of its
-- limit and when nothing is any more. For people; it reads without locks. A key that is not listed is idle. Logs, and strict
-- counters, are in log_now.
CREATE OR REPLACE VIEW ration.window_now AS
SELECT p.id::text AS policy, w.key, w.shard, p.durability, p.version AS policy_version, p.capacity - f.remaining AS used, p.capacity,
       ration.instant_v1(clock.now, f.reset_after) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.start, f.current, f.previous FROM ration.window_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.start, d.current, d.previous FROM ration.window_durable AS d) AS w
JOIN ration.policy AS p ON p.number = w.policy AND w.version >= p.since  -- what came before counts no more
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL ration.window_at_v1(w.start, w.current, w.previous, p.span, clock.now) AS held
CROSS JOIN LATERAL ration.decide_figures_v1(
    clock.now, 3 /* state_place_v1 */, NULL, p.capacity, 0, p.n, p.d, p.span,
    p.algorithm = 'sliding_window_counter', held.current, held.start, held.previous, held.start, NULL) AS f;
