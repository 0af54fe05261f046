-- The tables of Ration. Functions, views and grants come with the next migration.
-- Units: instants and durations are microseconds since 1970 (UTC) of the database clock; a balance is in units of 1/d token.

DO $$
BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'Ration needs a database of encoding UTF8, this one has %', getdatabaseencoding();
    END IF;
END $$;

CREATE TABLE ration.schema_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    major    int NOT NULL,  -- a binary refuses another major
    minor    int NOT NULL   -- a binary accepts newer minors
);
INSERT INTO ration.schema_version (major, minor) VALUES (1, 0);

-- The policy set as a whole. Every policy change bumps the generation; a call matched under another one decides nothing.
CREATE TABLE ration.policy_set (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    generation  bigint  NOT NULL,
    incarnation uuid    NOT NULL,               -- the life of the unlogged tables, see ration.incarnation_marker
    test_clock  boolean NOT NULL DEFAULT false  -- p_now is refused unless this is true
);

-- Emptied by a crash together with ration.bucket_fast: a missing or different incarnation means that fast state was lost.
CREATE UNLOGGED TABLE ration.incarnation_marker (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    incarnation uuid NOT NULL
);

WITH first AS (INSERT INTO ration.policy_set (generation, incarnation) VALUES (1, gen_random_uuid()) RETURNING incarnation)
INSERT INTO ration.incarnation_marker (incarnation) SELECT incarnation FROM first;

-- Every loss of fast state that recover_v1 has found.
CREATE TABLE ration.state_loss (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    found_at             bigint NOT NULL,
    lost_incarnation     uuid   NOT NULL,
    new_incarnation      uuid   NOT NULL,
    policies_idle        int    NOT NULL,  -- fast policies whose buckets start from what an idle bucket holds
    policies_empty       int    NOT NULL   -- fast policies whose buckets start empty at the loss
);

CREATE DOMAIN ration.policy_name AS text CHECK (VALUE ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$');

-- Every version of every policy. Only the idle bucket of a fast version changes later, when its state is lost.
CREATE TABLE ration.policy_version (
    number         int     NOT NULL,
    version        int     NOT NULL CHECK (version >= 1),
    content        json    NOT NULL,            -- the stored form, byte for byte
    n              bigint  NOT NULL CHECK (n BETWEEN 1 AND 4611686018427387903),   -- units earned in a microsecond, < 2^62
    d              bigint  NOT NULL CHECK (d BETWEEN 1 AND 4611686018427387903),   -- units in a token
    capacity       bigint  NOT NULL CHECK (capacity >= 1),                         -- tokens
    capacity_units bigint  NOT NULL CHECK (capacity_units BETWEEN 1 AND 4611686018427387903),
    idle_balance   bigint  NOT NULL,            -- what a bucket that never spent holds at idle_at
    idle_at        bigint  NOT NULL,
    balances       text    NOT NULL CHECK (balances = 'keep'),  -- how balances of the version before are carried over
    installed_at   bigint  NOT NULL,            -- never before the version before
    generation     bigint  NOT NULL,
    PRIMARY KEY (number, version),
    CHECK (capacity::numeric * d = capacity_units),
    CHECK (gcd(n, d) = 1),
    CHECK (idle_balance BETWEEN -capacity_units AND capacity_units)
);

-- The version in force of each policy: the row that decisions read.
CREATE TABLE ration.policy (
    number         int     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- never reused
    id             ration.policy_name NOT NULL UNIQUE,
    version        int     NOT NULL,
    durability     text    NOT NULL CHECK (durability IN ('fast', 'durable')),
    n              bigint  NOT NULL,
    d              bigint  NOT NULL,
    capacity       bigint  NOT NULL,
    capacity_units bigint  NOT NULL,
    idle_balance   bigint  NOT NULL,
    idle_at        bigint  NOT NULL,
    generation     bigint  NOT NULL,            -- of the change that installed this version
    FOREIGN KEY (number, version) REFERENCES ration.policy_version (number, version) DEFERRABLE INITIALLY DEFERRED
);
-- An instance loads only what changed since the generation it has.
CREATE INDEX policy_generation ON ration.policy (generation);

-- Buckets. The columns stand in an order that leaves no padding. No index but the primary key: an index on a column that a
-- decision writes would rule out heap-only updates. They also need room on their page, but not more than they use: below
-- its fillfactor every access prunes the page. Over 500,000 decisions on 1,000,000 rows in batches of 128, 94.0 % of the
-- updates were heap-only at fillfactor 100 and all of them at 90 and 80; a decision cost 20.9, 19.0 and 25.8 µs.
CREATE UNLOGGED TABLE ration.bucket_fast (
    balance bigint NOT NULL,   -- units held at `at` under `version`
    at      bigint NOT NULL,   -- never moves back
    key     uuid   NOT NULL,
    shard   int    NOT NULL,   -- 0 on one server
    policy  int    NOT NULL,
    version int    NOT NULL,
    took    int    NOT NULL,   -- callers admitted by the last decision: RETURNING, and the look after an INSERT, see only the row
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);
CREATE TABLE ration.bucket_durable (
    balance bigint NOT NULL,
    at      bigint NOT NULL,
    key     uuid   NOT NULL,
    shard   int    NOT NULL,
    policy  int    NOT NULL,
    version int    NOT NULL,
    took    int    NOT NULL,
    PRIMARY KEY (shard, key)
) WITH (fillfactor = 90);

-- What operators did. Rows are only ever added.
CREATE TABLE ration.audit (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             bigint NOT NULL,
    actor          text   NOT NULL,
    action         text   NOT NULL,             -- policy.created, policy.changed
    policy         text,
    version_before int,
    version_after  int,
    before         json,
    after          json,
    reason         text   NOT NULL,
    request_id     text   NOT NULL
);
