-- State of every other algorithm, operation ids and slots. A running instance of the version before sees nothing of it: its
-- policies are token buckets, and the new columns have defaults.
-- Units: instants and durations are microseconds since 1970 (UTC) of the database clock; counts are tokens.

-- What the row that decisions read says of the limit. A limit that is no token bucket has n = d = 1, so that its capacity
-- is its capacity_units, and its idle_balance is what is left of it when nothing was spent since idle_at.
ALTER TABLE ration.policy
    ADD COLUMN algorithm text NOT NULL DEFAULT 'token_bucket'
        CHECK (algorithm IN ('token_bucket', 'fixed_window', 'sliding_window_counter', 'sliding_window_log', 'concurrency')),
    ADD COLUMN strict boolean NOT NULL DEFAULT false,   -- of a sliding_window_counter
    ADD COLUMN span   bigint  NOT NULL DEFAULT 0 CHECK (span >= 0),  -- the window, or how long a slot lives
    ADD COLUMN mode   text    NOT NULL DEFAULT 'enforce' CHECK (mode IN ('enforce', 'shadow', 'disabled'));
-- An idle key may have used more than a limit that was lowered since: what is counted stays, as it does in rows.
ALTER TABLE ration.policy_version
    DROP CONSTRAINT policy_version_check2,
    ADD CONSTRAINT policy_version_idle CHECK (idle_balance BETWEEN -4611686018427387903 AND capacity_units);
UPDATE ration.policy AS p SET mode = v.content ->> 'mode'
FROM ration.policy_version AS v WHERE v.number = p.number AND v.version = p.version AND v.content ->> 'mode' <> p.mode;

-- Windows: fixed_window and sliding_window_counter. A row is counted on from the newest window it has seen.
CREATE UNLOGGED TABLE ration.window_fast (
    start    bigint NOT NULL,  -- of the newest window that was charged; never moves back
    current  bigint NOT NULL,  -- charged in it
    previous bigint NOT NULL,  -- charged in the window before it
    key      uuid   NOT NULL,
    shard    int    NOT NULL,
    policy   int    NOT NULL,
    version  int    NOT NULL,
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);
CREATE TABLE ration.window_durable (
    start    bigint NOT NULL,
    current  bigint NOT NULL,
    previous bigint NOT NULL,
    key      uuid   NOT NULL,
    shard    int    NOT NULL,
    policy   int    NOT NULL,
    version  int    NOT NULL,
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);

-- Logs: sliding_window_log, and the strict sliding_window_counter, whose entries stand at the ends of its segments. Pairs of
-- instant and tokens, the oldest first, instants distinct. Not compressed: that costs a batch ten times its time.
CREATE UNLOGGED TABLE ration.log_fast (
    key     uuid     NOT NULL,
    shard   int      NOT NULL,
    policy  int      NOT NULL,
    version int      NOT NULL,
    entries bigint[] NOT NULL,
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);
CREATE TABLE ration.log_durable (
    key     uuid     NOT NULL,
    shard   int      NOT NULL,
    policy  int      NOT NULL,
    version int      NOT NULL,
    entries bigint[] NOT NULL,
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);
-- For arrays of such arrays, which PostgreSQL wants to be of one length.
CREATE TYPE ration.log_entries AS (entries bigint[]);
ALTER TABLE ration.log_fast ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE ration.log_durable ALTER COLUMN entries SET STORAGE EXTERNAL;

-- Concurrency: one parent row a key, locked by whoever acquires or renews a slot of it. Always logged.
CREATE TABLE ration.slot_parent (
    key    uuid NOT NULL,
    shard  int  NOT NULL,
    policy int  NOT NULL,
    PRIMARY KEY (shard, key)
);
CREATE TABLE ration.slot (
    expires_at bigint NOT NULL,
    ttl        bigint NOT NULL,  -- how long it lives, from the decision or the last renewal on
    cost       bigint NOT NULL CHECK (cost >= 1),  -- units of concurrency that it holds
    id         uuid   NOT NULL,
    key        uuid   NOT NULL,
    shard      int    NOT NULL,
    policy     int    NOT NULL,
    PRIMARY KEY (shard, id)
) WITH (fillfactor = 90);
-- What is live of a key is read from here alone, whatever has expired beside it.
CREATE INDEX slot_key ON ration.slot (shard, key, expires_at) INCLUDE (cost);

-- One policy's part of a decision, as it is replayed and settled.
CREATE TYPE ration.operation_part AS (
    policy          int,
    version         int,
    key             uuid,
    cost            bigint,   -- tokens charged, 0 when nothing was
    priced          boolean,  -- by the request's own cost: a settlement replaces it
    admitted        boolean,
    remaining       bigint,
    retry_after     bigint,
    reset_after     bigint,
    mark            bigint,   -- where it was charged: the window's start or the entry's instant
    slot            uuid,
    slot_expires_at bigint
);
-- What a settlement did to one policy's charge.
CREATE TYPE ration.settled_part AS (
    policy  int,
    version int,
    charged bigint,
    actual  bigint,
    applied boolean,
    clamped boolean
);
-- Outcomes of operation ids, for replay and settlement. Always logged. Kept until expires_at at least.
CREATE TABLE ration.operation (
    decided_at   bigint  NOT NULL,
    expires_at   bigint  NOT NULL,
    stated       bigint  NOT NULL,  -- the stated cost, 0 when none was
    price        bigint  NOT NULL,  -- the largest cost that a policy would charge
    settled_at   bigint,
    settled_cost bigint,
    key          uuid    NOT NULL,  -- of the operation id, see policy.OperationKeyOf
    content      uuid    NOT NULL,  -- of the request, see policy.ContentOf
    shard        int     NOT NULL,
    allowed      boolean NOT NULL,
    parts        ration.operation_part[] NOT NULL,
    settled      ration.settled_part[],
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);
-- For the cleaner. A settlement changes neither column of an index, so it stays on its page.
CREATE INDEX operation_expires_at ON ration.operation (expires_at);
