-- What operators live with: changes of every kind, overrides, the kill switch, sweeps, callers and their tokens, instances, and
-- an audit whose rows are chained.
-- Units: instants are microseconds since 1970 (UTC) of the database clock; balances in units of 1/d token.

-- How a change carries over what its policy keeps: keep and scale convert it, reset and restart begin anew from the idle state
-- that the version begins with. A tombstone has the content of the version that it ends.
ALTER TABLE ration.policy_version
    DROP CONSTRAINT policy_version_balances_check,
    ADD CONSTRAINT policy_version_balances CHECK (balances IN ('keep', 'scale', 'reset', 'restart')),
    ADD COLUMN deleted boolean NOT NULL DEFAULT false;
-- since: what was kept under a version before it counts no more. parent: the policy that this one is an override's limit of.
ALTER TABLE ration.policy
    DROP CONSTRAINT policy_mode_check,
    ADD CONSTRAINT policy_mode CHECK (mode IN ('enforce', 'shadow', 'disabled', 'deleted')),
    ADD COLUMN since int NOT NULL DEFAULT 1 CHECK (since >= 1),
    ADD COLUMN parent int REFERENCES ration.policy (number);
-- The limit of an override is a policy without a name of its own: its policy's name, '!' and the override's number.
ALTER DOMAIN ration.policy_name DROP CONSTRAINT policy_name_check;
ALTER DOMAIN ration.policy_name ADD CONSTRAINT policy_name_check CHECK (VALUE ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(![1-9][0-9]{0,18})?$');

-- Exceptions for single keys of a policy.
CREATE TABLE ration.override (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    policy     int    NOT NULL REFERENCES ration.policy (number),
    key        uuid   NOT NULL,               -- ration.bucket_key(policy, attributes)
    attributes jsonb  NOT NULL,               -- the values of the policy's `per`
    action     text   NOT NULL CHECK (action IN ('limit', 'exempt', 'blocked')),
    limited    int    REFERENCES ration.policy (number),  -- the policy that holds its limit
    expires_at bigint,
    actor      text   NOT NULL,
    reason     text   NOT NULL,
    created_at bigint NOT NULL,
    generation bigint NOT NULL,               -- of the change that made it
    UNIQUE (policy, key),
    CHECK ((action = 'limit') = (limited IS NOT NULL))
);
CREATE INDEX override_expires_at ON ration.override (expires_at) WHERE expires_at IS NOT NULL;

-- Enforced policies whose id begins with a prefix ('': all) are shadows until this expires or is taken back.
CREATE TABLE ration.kill_switch (
    prefix     text   PRIMARY KEY CHECK (prefix ~ '^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$'),
    expires_at bigint NOT NULL,
    actor      text   NOT NULL,
    reason     text   NOT NULL,
    created_at bigint NOT NULL
);

-- A change whose older rows are still being settled; gone when they all are and the audit says so.
CREATE TABLE ration.sweep (
    policy   int    PRIMARY KEY REFERENCES ration.policy (number),
    version  int    NOT NULL,
    began_at bigint NOT NULL,
    pass     bigint,                          -- the pass over the tables that settles it, NULL until one begins
    settled  bigint NOT NULL DEFAULT 0,       -- by the sweep itself
    clamped  bigint NOT NULL DEFAULT 0
);
-- The newest pass over the tables of buckets, windows and logs, one row; each instance may do its next piece.
CREATE TABLE ration.sweep_pass (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    pass     bigint NOT NULL,
    place    int    NOT NULL,                 -- of the table in hand, see state_place_v1; 7: behind the last one
    after    uuid   NOT NULL,                 -- the last key that was examined there
    next_at  bigint NOT NULL                  -- when the next piece may begin
);
INSERT INTO ration.sweep_pass (pass, place, after, next_at) VALUES (0, 7, '00000000-0000-0000-0000-000000000000', 0);
-- What calls settled of older rows, a row for each call that did; summed up when the sweep ends.
CREATE TABLE ration.carried (
    policy  int    NOT NULL,
    version int    NOT NULL,
    settled bigint NOT NULL,
    clamped bigint NOT NULL
);
CREATE INDEX carried_policy ON ration.carried (policy, version);

-- Who may call. A token is kept as the SHA-256 of its secret, which has 256 random bits.
CREATE TABLE ration.token (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text   NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$'),  -- of the operator or gateway
    role       text   CHECK (role IN ('viewer', 'operator', 'admin')),  -- NULL for a gateway
    scope      jsonb,                         -- of a gateway: accounts, operations and regions, lists of patterns
    secret     bytea  NOT NULL UNIQUE CHECK (length(secret) = 32),
    created_at bigint NOT NULL,
    created_by text   NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    CHECK ((role IS NULL) = (scope IS NOT NULL))
);

-- Instances of the service. Unlogged: after a crash each one that lives says so within a second.
CREATE UNLOGGED TABLE ration.instance (
    id         uuid   PRIMARY KEY,
    name       text   NOT NULL,
    version    text   NOT NULL,               -- of the program
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    generation bigint NOT NULL                -- confirmed: nothing it answers is of an older one
) WITH (fillfactor = 50);

-- What each version of a policy decided while it was a shadow, as instances have told.
CREATE UNLOGGED TABLE ration.shadow_total (
    policy   int    NOT NULL,
    version  int    NOT NULL,
    decided  bigint NOT NULL,                 -- requests
    denied   bigint NOT NULL,                 -- of these, those that it would have denied
    first_at bigint NOT NULL,                 -- of the decisions
    last_at  bigint NOT NULL,
    PRIMARY KEY (policy, version)
) WITH (fillfactor = 50);
-- Whom it would have denied: the first 1,000 keys of a version.
CREATE UNLOGGED TABLE ration.shadow_denial (
    policy   int    NOT NULL,
    version  int    NOT NULL,
    key      uuid   NOT NULL,
    who      jsonb  NOT NULL,                 -- the values of the policy's `per`
    denied   bigint NOT NULL,
    first_at bigint NOT NULL,
    last_at  bigint NOT NULL,
    PRIMARY KEY (policy, version, key)
) WITH (fillfactor = 90);

-- Audit rows form a chain: each carries the hash of the one before it.
ALTER TABLE ration.audit
    ADD COLUMN role     text NOT NULL DEFAULT '',  -- in which a listener let the actor in; '' of who came by none: Ration, the owner
    ADD COLUMN settled  bigint,               -- balances, of policy.swept
    ADD COLUMN clamped  bigint,
    ADD COLUMN previous bytea,
    ADD COLUMN hash     bytea;
CREATE INDEX audit_policy ON ration.audit (policy, id);
CREATE INDEX audit_actor ON ration.audit (actor, id);
CREATE TABLE ration.audit_head (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       bigint NOT NULL,                 -- of the newest row
    hash     bytea  NOT NULL
);
