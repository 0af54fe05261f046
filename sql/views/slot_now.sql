-- slot_now: every live slot: whose it is, how much of its key's limit it holds and when it expires. For people; it reads
-- without locks.
CREATE OR REPLACE VIEW ration.slot_now AS
SELECT p.id::text AS policy, s.key, s.shard, s.id AS slot, s.cost, p.capacity, ration.instant_v1(s.expires_at, 0) AS expires_at
FROM ration.slot AS s
JOIN ration.policy AS p ON p.number = s.policy
CROSS JOIN (SELECT ration.clock_v1() AS now) AS clock
WHERE s.expires_at > clock.now;
