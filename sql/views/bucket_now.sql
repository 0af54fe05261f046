-- bucket_now: every stored bucket as it is at this instant: the whole tokens it holds and when it is full. For people;
-- it reads without locks. A key that is not listed is an idle bucket. Find a caller's row by
-- key = ration.bucket_key(policy, attributes).
CREATE OR REPLACE VIEW ration.bucket_now AS
SELECT p.id::text AS policy, b.key, b.shard, p.durability, b.version AS settled_version, p.version AS policy_version,
       greatest(0, held.balance / p.d) AS tokens, p.capacity,
       ration.instant_v1(clock.now, ration.wait_v1(p.capacity_units - held.balance, p.n, b.at - clock.now)) AS full_at
FROM (SELECT f.shard, f.key, f.policy, f.version, f.balance, f.at FROM ration.bucket_fast AS f
      UNION ALL
      SELECT d.shard, d.key, d.policy, d.version, d.balance, d.at FROM ration.bucket_durable AS d) AS b
JOIN ration.policy AS p ON p.number = b.policy AND b.version >= p.since  -- what came before counts no more
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
CROSS JOIN LATERAL (SELECT ration.balance_at_v1(b.policy, b.version, b.balance, b.at, clock.now) AS balance) AS held;
