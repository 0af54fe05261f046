-- What the migrations make, read from the catalogs. Written by `go test ./migrations -update`.

-- schema
schema ration grant ration_operator=USAGE, ration_reader=USAGE, ration_service=USAGE

-- types
composite log_entries of entries bigint[]
composite operation_part of policy integer, version integer, key uuid, cost bigint, priced boolean, admitted boolean, remaining bigint, retry_after bigint, reset_after bigint, mark bigint, slot uuid, slot_expires_at bigint
composite settled_part of policy integer, version integer, charged bigint, actual bigint, applied boolean, clamped boolean
domain policy_name as text CHECK ((VALUE ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(![1-9][0-9]{0,18})?$'::text))

-- relations
table audit
table audit_head
table bucket_durable with fillfactor=90
table carried
table kill_switch
table log_durable with fillfactor=90
table operation with fillfactor=90
table override
table policy
table policy_set
table policy_version
table schema_version
table slot with fillfactor=90
table slot_parent
table state_loss
table sweep
table sweep_pass
table token
table window_durable with fillfactor=90
unlogged table bucket_fast with fillfactor=90
unlogged table incarnation_marker
unlogged table instance with fillfactor=50
unlogged table log_fast with fillfactor=90
unlogged table shadow_denial with fillfactor=90
unlogged table shadow_total with fillfactor=50
unlogged table window_fast with fillfactor=90
view bucket_now
view log_now
view slot_now
view window_now

-- columns
audit.id bigint not null
audit.at bigint not null
audit.actor text not null
audit.action text not null
audit.policy text
audit.version_before integer
audit.version_after integer
audit.before json
audit.after json
audit.reason text not null
audit.request_id text not null
audit.role text not null default ''::text
audit.settled bigint
audit.clamped bigint
audit.previous bytea not null
audit.hash bytea not null
audit_head.only_row boolean not null default true
audit_head.id bigint not null
audit_head.hash bytea not null
bucket_durable.balance bigint not null
bucket_durable.at bigint not null
bucket_durable.key uuid not null
bucket_durable.shard integer not null
bucket_durable.policy integer not null
bucket_durable.version integer not null
bucket_durable.took integer not null
bucket_fast.balance bigint not null
bucket_fast.at bigint not null
bucket_fast.key uuid not null
bucket_fast.shard integer not null
bucket_fast.policy integer not null
bucket_fast.version integer not null
bucket_fast.took integer not null
bucket_now.policy text
bucket_now.key uuid
bucket_now.shard integer
bucket_now.durability text
bucket_now.settled_version integer
bucket_now.policy_version integer
bucket_now.tokens bigint
bucket_now.capacity bigint
bucket_now.full_at timestamp with time zone
carried.policy integer not null
carried.version integer not null
carried.settled bigint not null
carried.clamped bigint not null
incarnation_marker.only_row boolean not null default true
incarnation_marker.incarnation uuid not null
instance.id uuid not null
instance.name text not null
instance.version text not null
instance.started_at bigint not null
instance.seen_at bigint not null
instance.generation bigint not null
kill_switch.prefix text not null
kill_switch.expires_at bigint not null
kill_switch.actor text not null
kill_switch.reason text not null
kill_switch.created_at bigint not null
log_durable.key uuid not null
log_durable.shard integer not null
log_durable.policy integer not null
log_durable.version integer not null
log_durable.entries bigint[] not null storage e
log_fast.key uuid not null
log_fast.shard integer not null
log_fast.policy integer not null
log_fast.version integer not null
log_fast.entries bigint[] not null storage e
log_now.policy text
log_now.key uuid
log_now.shard integer
log_now.durability text
log_now.policy_version integer
log_now.used bigint
log_now.capacity bigint
log_now.full_at timestamp with time zone
operation.decided_at bigint not null
operation.expires_at bigint not null
operation.stated bigint not null
operation.price bigint not null
operation.settled_at bigint
operation.settled_cost bigint
operation.key uuid not null
operation.content uuid not null
operation.shard integer not null
operation.allowed boolean not null
operation.parts ration.operation_part[] not null
operation.settled ration.settled_part[]
override.number bigint not null identity always
override.policy integer not null
override.key uuid not null
override.attributes jsonb not null
override.action text not null
override.limited integer
override.expires_at bigint
override.actor text not null
override.reason text not null
override.created_at bigint not null
override.generation bigint not null
policy.number integer not null identity always
policy.id ration.policy_name not null
policy.version integer not null
policy.durability text not null
policy.n bigint not null
policy.d bigint not null
policy.capacity bigint not null
policy.capacity_units bigint not null
policy.idle_balance bigint not null
policy.idle_at bigint not null
policy.generation bigint not null
policy.algorithm text not null default 'token_bucket'::text
policy.strict boolean not null default false
policy.span bigint not null default 0
policy.mode text not null default 'enforce'::text
policy.since integer not null default 1
policy.parent integer
policy_set.only_row boolean not null default true
policy_set.generation bigint not null
policy_set.incarnation uuid not null
policy_set.test_clock boolean not null default false
policy_version.number integer not null
policy_version.version integer not null
policy_version.content json not null
policy_version.n bigint not null
policy_version.d bigint not null
policy_version.capacity bigint not null
policy_version.capacity_units bigint not null
policy_version.idle_balance bigint not null
policy_version.idle_at bigint not null
policy_version.balances text not null
policy_version.installed_at bigint not null
policy_version.generation bigint not null
policy_version.deleted boolean not null default false
schema_version.only_row boolean not null default true
schema_version.major integer not null
schema_version.minor integer not null
shadow_denial.policy integer not null
shadow_denial.version integer not null
shadow_denial.key uuid not null
shadow_denial.who jsonb not null
shadow_denial.denied bigint not null
shadow_denial.first_at bigint not null
shadow_denial.last_at bigint not null
shadow_total.policy integer not null
shadow_total.version integer not null
shadow_total.decided bigint not null
shadow_total.denied bigint not null
shadow_total.first_at bigint not null
shadow_total.last_at bigint not null
slot.expires_at bigint not null
slot.ttl bigint not null
slot.cost bigint not null
slot.id uuid not null
slot.key uuid not null
slot.shard integer not null
slot.policy integer not null
slot_now.policy text
slot_now.key uuid
slot_now.shard integer
slot_now.slot uuid
slot_now.cost bigint
slot_now.capacity bigint
slot_now.expires_at timestamp with time zone
slot_parent.key uuid not null
slot_parent.shard integer not null
slot_parent.policy integer not null
state_loss.id bigint not null identity always
state_loss.found_at bigint not null
state_loss.lost_incarnation uuid not null
state_loss.new_incarnation uuid not null
state_loss.policies_idle integer not null
state_loss.policies_empty integer not null
sweep.policy integer not null
sweep.version integer not null
sweep.began_at bigint not null
sweep.pass bigint
sweep.settled bigint not null default 0
sweep.clamped bigint not null default 0
sweep_pass.only_row boolean not null default true
sweep_pass.pass bigint not null
sweep_pass.place integer not null
sweep_pass.after uuid not null
sweep_pass.next_at bigint not null
token.id bigint not null identity always
token.name text not null
token.role text
token.scope jsonb
token.secret bytea not null
token.created_at bigint not null
token.created_by text not null
token.expires_at bigint
token.revoked_at bigint
window_durable.start bigint not null
window_durable.current bigint not null
window_durable.previous bigint not null
window_durable.key uuid not null
window_durable.shard integer not null
window_durable.policy integer not null
window_durable.version integer not null
window_fast.start bigint not null
window_fast.current bigint not null
window_fast.previous bigint not null
window_fast.key uuid not null
window_fast.shard integer not null
window_fast.policy integer not null
window_fast.version integer not null
window_now.policy text
window_now.key uuid
window_now.shard integer
window_now.durability text
window_now.policy_version integer
window_now.used bigint
window_now.capacity bigint
window_now.full_at timestamp with time zone

-- constraints
ration.audit audit_pkey PRIMARY KEY (id)
ration.audit_head audit_head_only_row_check CHECK (only_row)
ration.audit_head audit_head_pkey PRIMARY KEY (only_row)
ration.bucket_durable bucket_durable_pkey PRIMARY KEY (shard, key)
ration.bucket_fast bucket_fast_pkey PRIMARY KEY (shard, key)
ration.incarnation_marker incarnation_marker_only_row_check CHECK (only_row)
ration.incarnation_marker incarnation_marker_pkey PRIMARY KEY (only_row)
ration.instance instance_pkey PRIMARY KEY (id)
ration.kill_switch kill_switch_pkey PRIMARY KEY (prefix)
ration.kill_switch kill_switch_prefix_check CHECK ((prefix ~ '^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$'::text))
ration.log_durable log_durable_pkey PRIMARY KEY (shard, key)
ration.log_fast log_fast_pkey PRIMARY KEY (shard, key)
ration.operation operation_pkey PRIMARY KEY (shard, key)
ration.override override_action_check CHECK ((action = ANY (ARRAY['limit'::text, 'exempt'::text, 'blocked'::text])))
ration.override override_check CHECK (((action = 'limit'::text) = (limited IS NOT NULL)))
ration.override override_limited_fkey FOREIGN KEY (limited) REFERENCES ration.policy(number)
ration.override override_pkey PRIMARY KEY (number)
ration.override override_policy_fkey FOREIGN KEY (policy) REFERENCES ration.policy(number)
ration.override override_policy_key_key UNIQUE (policy, key)
ration.policy policy_algorithm_check CHECK ((algorithm = ANY (ARRAY['token_bucket'::text, 'fixed_window'::text, 'sliding_window_counter'::text, 'sliding_window_log'::text, 'concurrency'::text])))
ration.policy policy_durability_check CHECK ((durability = ANY (ARRAY['fast'::text, 'durable'::text])))
ration.policy policy_id_key UNIQUE (id)
ration.policy policy_mode CHECK ((mode = ANY (ARRAY['enforce'::text, 'shadow'::text, 'disabled'::text, 'deleted'::text])))
ration.policy policy_number_version_fkey FOREIGN KEY (number, version) REFERENCES ration.policy_version(number, version) DEFERRABLE INITIALLY DEFERRED
ration.policy policy_parent_fkey FOREIGN KEY (parent) REFERENCES ration.policy(number)
ration.policy policy_pkey PRIMARY KEY (number)
ration.policy policy_since_check CHECK ((since >= 1))
ration.policy policy_span_check CHECK ((span >= 0))
ration.policy_set policy_set_only_row_check CHECK (only_row)
ration.policy_set policy_set_pkey PRIMARY KEY (only_row)
ration.policy_version policy_version_balances CHECK ((balances = ANY (ARRAY['keep'::text, 'scale'::text, 'reset'::text, 'restart'::text])))
ration.policy_version policy_version_capacity_check CHECK ((capacity >= 1))
ration.policy_version policy_version_capacity_units_check CHECK (((capacity_units >= 1) AND (capacity_units <= '4611686018427387903'::bigint)))
ration.policy_version policy_version_check CHECK ((((capacity)::numeric * (d)::numeric) = (capacity_units)::numeric))
ration.policy_version policy_version_check1 CHECK ((gcd(n, d) = 1))
ration.policy_version policy_version_d_check CHECK (((d >= 1) AND (d <= '4611686018427387903'::bigint)))
ration.policy_version policy_version_idle CHECK (((idle_balance >= '-4611686018427387903'::bigint) AND (idle_balance <= capacity_units)))
ration.policy_version policy_version_n_check CHECK (((n >= 1) AND (n <= '4611686018427387903'::bigint)))
ration.policy_version policy_version_pkey PRIMARY KEY (number, version)
ration.policy_version policy_version_version_check CHECK ((version >= 1))
ration.schema_version schema_version_only_row_check CHECK (only_row)
ration.schema_version schema_version_pkey PRIMARY KEY (only_row)
ration.shadow_denial shadow_denial_pkey PRIMARY KEY (policy, version, key)
ration.shadow_total shadow_total_pkey PRIMARY KEY (policy, version)
ration.slot slot_cost_check CHECK ((cost >= 1))
ration.slot slot_pkey PRIMARY KEY (shard, id)
ration.slot_parent slot_parent_pkey PRIMARY KEY (shard, key)
ration.state_loss state_loss_pkey PRIMARY KEY (id)
ration.sweep sweep_pkey PRIMARY KEY (policy)
ration.sweep sweep_policy_fkey FOREIGN KEY (policy) REFERENCES ration.policy(number)
ration.sweep_pass sweep_pass_only_row_check CHECK (only_row)
ration.sweep_pass sweep_pass_pkey PRIMARY KEY (only_row)
ration.token token_check CHECK (((role IS NULL) = (scope IS NOT NULL)))
ration.token token_name_check CHECK ((name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$'::text))
ration.token token_pkey PRIMARY KEY (id)
ration.token token_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
ration.token token_secret_check CHECK ((length(secret) = 32))
ration.token token_secret_key UNIQUE (secret)
ration.window_durable window_durable_pkey PRIMARY KEY (shard, key)
ration.window_fast window_fast_pkey PRIMARY KEY (shard, key)

-- indexes
CREATE INDEX audit_actor ON ration.audit USING btree (actor, id)
CREATE INDEX audit_policy ON ration.audit USING btree (policy, id)
CREATE INDEX carried_policy ON ration.carried USING btree (policy, version)
CREATE INDEX operation_expires_at ON ration.operation USING btree (expires_at)
CREATE INDEX override_expires_at ON ration.override USING btree (expires_at) WHERE (expires_at IS NOT NULL)
CREATE INDEX policy_generation ON ration.policy USING btree (generation)
CREATE INDEX slot_key ON ration.slot USING btree (shard, key, expires_at) INCLUDE (cost)
CREATE UNIQUE INDEX audit_head_pkey ON ration.audit_head USING btree (only_row)
CREATE UNIQUE INDEX audit_pkey ON ration.audit USING btree (id)
CREATE UNIQUE INDEX bucket_durable_pkey ON ration.bucket_durable USING btree (shard, key)
CREATE UNIQUE INDEX bucket_fast_pkey ON ration.bucket_fast USING btree (shard, key)
CREATE UNIQUE INDEX incarnation_marker_pkey ON ration.incarnation_marker USING btree (only_row)
CREATE UNIQUE INDEX instance_pkey ON ration.instance USING btree (id)
CREATE UNIQUE INDEX kill_switch_pkey ON ration.kill_switch USING btree (prefix)
CREATE UNIQUE INDEX log_durable_pkey ON ration.log_durable USING btree (shard, key)
CREATE UNIQUE INDEX log_fast_pkey ON ration.log_fast USING btree (shard, key)
CREATE UNIQUE INDEX operation_pkey ON ration.operation USING btree (shard, key)
CREATE UNIQUE INDEX override_pkey ON ration.override USING btree (number)
CREATE UNIQUE INDEX override_policy_key_key ON ration.override USING btree (policy, key)
CREATE UNIQUE INDEX policy_id_key ON ration.policy USING btree (id)
CREATE UNIQUE INDEX policy_pkey ON ration.policy USING btree (number)
CREATE UNIQUE INDEX policy_set_pkey ON ration.policy_set USING btree (only_row)
CREATE UNIQUE INDEX policy_version_pkey ON ration.policy_version USING btree (number, version)
CREATE UNIQUE INDEX schema_version_pkey ON ration.schema_version USING btree (only_row)
CREATE UNIQUE INDEX shadow_denial_pkey ON ration.shadow_denial USING btree (policy, version, key)
CREATE UNIQUE INDEX shadow_total_pkey ON ration.shadow_total USING btree (policy, version)
CREATE UNIQUE INDEX slot_parent_pkey ON ration.slot_parent USING btree (shard, key)
CREATE UNIQUE INDEX slot_pkey ON ration.slot USING btree (shard, id)
CREATE UNIQUE INDEX state_loss_pkey ON ration.state_loss USING btree (id)
CREATE UNIQUE INDEX sweep_pass_pkey ON ration.sweep_pass USING btree (only_row)
CREATE UNIQUE INDEX sweep_pkey ON ration.sweep USING btree (policy)
CREATE UNIQUE INDEX token_pkey ON ration.token USING btree (id)
CREATE UNIQUE INDEX token_secret_key ON ration.token USING btree (secret)
CREATE UNIQUE INDEX window_durable_pkey ON ration.window_durable USING btree (shard, key)
CREATE UNIQUE INDEX window_fast_pkey ON ration.window_fast USING btree (shard, key)

-- triggers
CREATE TRIGGER audit_chain BEFORE INSERT ON ration.audit FOR EACH ROW EXECUTE FUNCTION ration.audit_chain_v1()
CREATE TRIGGER audit_refuse BEFORE DELETE OR TRUNCATE ON ration.audit_head FOR EACH STATEMENT EXECUTE FUNCTION ration.audit_refuse_v1()
CREATE TRIGGER audit_refuse BEFORE DELETE OR UPDATE OR TRUNCATE ON ration.audit FOR EACH STATEMENT EXECUTE FUNCTION ration.audit_refuse_v1()

-- functions
function advisory_key_v1(p_key uuid) returns bigint language sql immutable parallel safe
function append_carried_v1(p_policies integer[], p_from integer[], p_to integer[], p_clamped boolean[]) returns void language plpgsql volatile
function apply_kill_switch_v1(p_prefix text, p_generation bigint) returns void language sql volatile
function audit_chain_v1() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp
function audit_hash_v1(p_row ration.audit) returns bytea language sql stable parallel safe set search_path=pg_catalog, pg_temp
function audit_refuse_v1() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp
function audit_verify_v1(p_after bigint, p_hash bytea, p_rows integer, OUT o_rows integer, OUT o_last bigint, OUT o_hash bytea, OUT o_done boolean, OUT o_fault text, OUT o_row bigint) returns record language plpgsql stable set search_path=pg_catalog, pg_temp
function balance_at_v1(p_policy integer, p_version integer, p_balance bigint, p_at bigint, p_now bigint) returns bigint language sql stable strict set search_path=pg_catalog, pg_temp
function bucket_key(p_policy text, p_attributes jsonb) returns uuid language plpgsql stable strict set search_path=pg_catalog, pg_temp
function canonical_target_v1(p_text text) returns text language plpgsql immutable parallel safe strict set search_path=pg_catalog, pg_temp
function carry_v1(p_policy integer, p_from integer, p_to integer, p_balance bigint, p_at bigint, OUT o_balance bigint, OUT o_at bigint, OUT o_clamped boolean) returns record language plpgsql stable strict
function clamped_v1(p_balance numeric, p_capacity_units bigint) returns bigint language sql immutable parallel safe
function clean_instances_v1(p_now bigint DEFAULT NULL::bigint) returns integer language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_logs_v1(p_durable boolean, p_shard integer, p_after uuid, p_rows integer, p_now bigint DEFAULT NULL::bigint, OUT o_deleted integer, OUT o_last uuid) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_operations_v1(p_shard integer, p_rows integer, p_now bigint DEFAULT NULL::bigint) returns integer language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_shadow_v1(p_now bigint DEFAULT NULL::bigint) returns integer language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_slot_parents_v1(p_shard integer, p_after uuid, p_rows integer, p_now bigint DEFAULT NULL::bigint, OUT o_deleted integer, OUT o_last uuid) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_slots_v1(p_shard integer, p_after uuid, p_rows integer, p_now bigint DEFAULT NULL::bigint, OUT o_deleted integer, OUT o_last uuid) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_v1(p_durable boolean, p_shard integer, p_after uuid, p_rows integer, p_now bigint DEFAULT NULL::bigint, OUT o_deleted integer, OUT o_last uuid) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clean_windows_v1(p_durable boolean, p_shard integer, p_after uuid, p_rows integer, p_now bigint DEFAULT NULL::bigint, OUT o_deleted integer, OUT o_last uuid) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function clock_v1(p_now bigint DEFAULT NULL::bigint) returns bigint language plpgsql volatile
function close_sweep_v1(p_policy integer, p_at bigint, p_reason text) returns void language plpgsql volatile
function commit_durably_v1() returns void language plpgsql volatile
function commit_lazily_v1() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp
function configure_roles_v1() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp
function confirm_v1(p_id uuid, p_name text, p_version text, p_started_at bigint, p_generation bigint, p_now bigint DEFAULT NULL::bigint, OUT o_at bigint, OUT o_started_at bigint) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function converted_v1(p_balances text, p_balance bigint, p_d bigint, p_capacity_units bigint, p_new_d bigint, p_new_capacity_units bigint) returns numeric language sql immutable parallel safe
function corrected_v1(p_charged bigint, p_actual bigint, p_counted bigint, p_limit bigint) returns bigint language sql immutable parallel safe
function create_token_v1(p_name text, p_role text, p_scope jsonb, p_secret bytea, p_life bigint, p_actor text, p_reason text, p_now bigint DEFAULT NULL::bigint, OUT o_id bigint, OUT o_created_at bigint, OUT o_expires_at bigint) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function decide_figures_v1(p_now bigint, p_place integer, p_cost bigint, p_capacity bigint, p_taken bigint, p_n bigint, p_d bigint, p_span bigint, p_sliding boolean, p_base bigint, p_at bigint, p_previous bigint, p_mark bigint, p_log ration.log_entries) returns TABLE(remaining bigint, retry_after bigint, reset_after bigint) language sql stable
function decide_guard_v1(p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[], p_policies integer[], p_keys uuid[], p_claims integer[], p_cells integer[], p_costs bigint[], p_priced boolean[], p_retention bigint, p_hold text) returns void language plpgsql immutable
function decide_lock_v1(p_shard integer, p_hold text, p_wanted boolean[], p_places integer[], p_policies integer[], p_keys uuid[], p_writers xid[], OUT o_cells integer[], OUT o_rows tid[], OUT o_same boolean) returns record language plpgsql volatile set enable_hashjoin=off; enable_memoize=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function decide_new_v1(p_shard integer, p_operations uuid[]) returns boolean language plpgsql volatile set enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function decide_read_v1(p_shard integer, p_generation bigint, p_policies integer[], p_keys uuid[], p_needed boolean[], p_now bigint, OUT o_places integer[], OUT o_rows tid[], OUT o_writers xid[], OUT o_enforced boolean[], OUT o_versions integer[], OUT o_capacities bigint[], OUT o_n bigint[], OUT o_d bigint[], OUT o_spans bigint[], OUT o_sliding boolean[], OUT o_room bigint[], OUT o_base bigint[], OUT o_at bigint[], OUT o_previous bigint[], OUT o_marks bigint[], OUT o_logs ration.log_entries[]) returns record language plpgsql stable set enable_hashjoin=off; enable_memoize=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function decide_replay_v1(p_shard integer, p_now bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_claims integer[], p_costs bigint[], OUT o_status integer[], OUT o_allowed boolean[], OUT o_at bigint[], OUT o_claim integer[], OUT o_policy integer[], OUT o_version integer[], OUT o_admitted boolean[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[], OUT o_slot uuid[], OUT o_slot_expires bigint[], OUT o_cost bigint[]) returns record language plpgsql volatile set enable_hashjoin=off; enable_memoize=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function decide_v1(p_shard integer, p_generation bigint, p_operations uuid[], p_contents uuid[], p_stated bigint[], p_peeks boolean[], p_policies integer[], p_keys uuid[], p_claims integer[], p_cells integer[], p_costs bigint[], p_priced boolean[], p_retention bigint, p_hold text DEFAULT 'wait'::text, p_now bigint DEFAULT NULL::bigint, OUT o_stale boolean, OUT o_now bigint, OUT o_status integer[], OUT o_allowed boolean[], OUT o_at bigint[], OUT o_claim integer[], OUT o_policy integer[], OUT o_version integer[], OUT o_admitted boolean[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[], OUT o_slot uuid[], OUT o_slot_expires bigint[], OUT o_cost bigint[]) returns record language plpgsql volatile security definer set enable_hashjoin=off; enable_memoize=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function decide_write_v1(p_now bigint, p_rows tid[], p_writers xid[], p_places integer[], p_versions integer[], p_room bigint[], p_left bigint[], p_base bigint[], p_at bigint[], p_previous bigint[], p_marks bigint[], p_logs ration.log_entries[], p_undo boolean DEFAULT false, OUT o_all boolean, OUT o_cells integer[], OUT o_rows tid[]) returns record language plpgsql volatile set enable_hashjoin=off; enable_memoize=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function delete_policy_v1(p_id text, p_expected integer, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_outcome text, OUT o_version integer, OUT o_generation bigint) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function drain_v1(p_policy integer, p_key uuid, p_at bigint, OUT o_balance bigint, OUT o_at bigint) returns record language plpgsql volatile
function dry_run_v1(p_shard integer, p_id text, p_content json, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_long bigint, p_now bigint DEFAULT NULL::bigint, OUT o_live bigint, OUT o_clamped bigint, OUT o_denied bigint, OUT o_at_least boolean) returns record language plpgsql stable security definer set enable_hashjoin=off; enable_mergejoin=off; enable_seqscan=off; search_path=pg_catalog, pg_temp
function effective_mode_v1(p_id text, p_mode text) returns text language sql stable
function end_overrides_v1(p_overrides ration.override[], p_go_on boolean, p_generation bigint, p_at bigint) returns void language plpgsql volatile
function expire_v1(p_now bigint DEFAULT NULL::bigint) returns integer language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function floor_div_v1(p_dividend numeric, p_divisor numeric) returns numeric language sql immutable parallel safe
function fold_case_v1(p_text text) returns text language plpgsql immutable parallel safe strict set search_path=pg_catalog, pg_temp
function follow_overrides_v1(p_policy integer, p_actor text, p_role text, p_reason text, p_request_id text, p_generation bigint, p_at bigint) returns void language plpgsql volatile
function guard_v1(p_fast boolean, p_generation bigint, p_policies integer[], p_keys uuid[], p_costs bigint[], p_counts integer[]) returns boolean language plpgsql stable
function hindering_overrides_v1(p_policy integer, p_content json) returns text[] language sql stable
function idle_log_v1(p_policy ration.policy) returns bigint[] language sql immutable parallel safe
function install_version_v1(p_id text, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_deleted boolean, p_parent integer, p_generation bigint, p_at bigint, OUT o_number integer, OUT o_version integer, OUT o_installed_at bigint) returns record language plpgsql volatile
function instances_v1(p_now bigint DEFAULT NULL::bigint, OUT o_id uuid, OUT o_name text, OUT o_version text, OUT o_started_at bigint, OUT o_seen_at bigint, OUT o_generation bigint, OUT o_alive boolean, OUT o_awaited boolean) returns SETOF record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function instant_v1(p_from bigint, p_wait bigint) returns timestamp with time zone language sql immutable parallel safe
function key_address_v1(p_address inet, p_bits_v4 integer, p_bits_v6 integer, OUT name text, OUT value bytea) returns record language plpgsql immutable parallel safe strict set search_path=pg_catalog, pg_temp
function key_field_v1(p_field bytea) returns bytea language sql immutable parallel safe strict
function key_figures_v1(p_shard integer, p_policies integer[], p_keys uuid[], p_now bigint) returns TABLE(policy integer, key uuid, stored boolean, settled_version integer, remaining bigint, reset_after bigint, ahead bigint) language plpgsql stable security definer set search_path=pg_catalog, pg_temp
function leave_v1(p_id uuid) returns boolean language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function list_v1(p_values anyarray, p_length integer) returns boolean language sql immutable parallel safe
function locate_key_v1(p_policy text, p_attributes jsonb, OUT o_number integer, OUT o_key uuid, OUT o_override bigint) returns record language plpgsql stable security definer set search_path=pg_catalog, pg_temp
function log_charged_v1(p_entries bigint[], p_at bigint, p_tokens bigint) returns bigint[] language plpgsql immutable parallel safe
function log_corrected_v1(p_entries bigint[], p_mark bigint, p_charged bigint, p_actual bigint, p_limit bigint, OUT o_entries bigint[], OUT o_clamped boolean) returns record language plpgsql immutable parallel safe
function log_live_v1(p_entries bigint[], p_behind bigint, OUT o_live bigint[], OUT o_used bigint) returns record language plpgsql immutable parallel safe
function log_mark_v1(p_at bigint, p_segment bigint) returns bigint language sql immutable parallel safe
function log_rebased_v1(p_entries bigint[], p_at bigint) returns bigint[] language sql immutable parallel safe
function log_wait_v1(p_entries bigint[], p_extra bigint, p_extra_at bigint, p_lack bigint) returns bigint language plpgsql immutable parallel safe
function open_sweep_v1(p_policy integer, p_version integer, p_at bigint) returns void language plpgsql volatile
function override_content_v1(p_content json, p_limit json) returns json language sql immutable
function override_json_v1(p_override ration.override) returns json language sql stable
function override_key_v1(p_content json, p_id text, p_attributes jsonb, OUT o_members text[], OUT o_key uuid) returns record language plpgsql stable
function policy_keys_v1(p_shard integer, p_policy text, p_after uuid, p_limit integer, OUT o_policies integer[], OUT o_keys uuid[], OUT o_last uuid) returns record language plpgsql stable security definer set search_path=pg_catalog, pg_temp
function put_kill_switch_v1(p_prefix text, p_lasts bigint, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_expires_at bigint, OUT o_policies integer, OUT o_generation bigint) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function put_override_v1(p_id text, p_attributes jsonb, p_action text, p_limit json, p_n bigint, p_d bigint, p_capacity bigint, p_expires_at bigint, p_lasts bigint, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_outcome text, OUT o_number bigint, OUT o_generation bigint, OUT o_members text[]) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function put_policy_v1(p_id text, p_expected integer, p_content json, p_n bigint, p_d bigint, p_capacity bigint, p_balances text, p_start text, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_outcome text, OUT o_number integer, OUT o_version integer, OUT o_installed_at bigint, OUT o_generation bigint, OUT o_restarts text[]) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function ready_v1(p_fast boolean, p_generation bigint) returns boolean language plpgsql stable
function rebase_v1(p_place integer, p_shard integer, p_after uuid, p_rows integer, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_rebased integer, OUT o_last uuid) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function recover_v1(p_now bigint DEFAULT NULL::bigint) returns boolean language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function release_slot_v1(p_shard integer, p_slot uuid, p_now bigint DEFAULT NULL::bigint) returns boolean language plpgsql volatile security definer set lock_timeout=5ms; search_path=pg_catalog, pg_temp
function remove_kill_switch_v1(p_prefix text, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_removed boolean, OUT o_generation bigint) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function remove_override_v1(p_id text, p_attributes jsonb, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_outcome text, OUT o_generation bigint, OUT o_members text[]) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function renew_slot_v1(p_shard integer, p_slot uuid, p_now bigint DEFAULT NULL::bigint) returns bigint language plpgsql volatile security definer set lock_timeout=5ms; search_path=pg_catalog, pg_temp
function report_shadow_v1(p_policy integer, p_version integer, p_decided bigint, p_denied bigint, p_first_at bigint, p_last_at bigint, p_keys uuid[], p_who text[], p_key_denied bigint[], p_key_first_at bigint[], p_key_last_at bigint[]) returns void language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function reset_bucket_v1(p_shard integer, p_policy text, p_attributes jsonb, p_to text, p_release boolean, p_actor text, p_role text, p_reason text, p_request_id text, p_now bigint DEFAULT NULL::bigint, OUT o_outcome text, OUT o_released integer) returns record language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function revoke_token_v1(p_id bigint, p_reason text, p_now bigint DEFAULT NULL::bigint) returns text language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function segment_v1(p_policy ration.policy) returns bigint language sql immutable parallel safe
function settle_buckets_v1(p_shard integer, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied integer[], OUT o_clamped integer[]) returns record language plpgsql volatile
function settle_logs_v1(p_shard integer, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied integer[], OUT o_clamped integer[]) returns record language plpgsql volatile
function settle_v1(p_shard integer, p_operation uuid, p_actual bigint, p_now bigint DEFAULT NULL::bigint, OUT o_status integer, OUT o_at bigint, OUT o_policy integer[], OUT o_version integer[], OUT o_charged bigint[], OUT o_actual bigint[], OUT o_applied boolean[], OUT o_clamped boolean[]) returns record language plpgsql volatile security definer set enable_hashjoin=off; enable_memoize=off; enable_mergejoin=off; enable_seqscan=off; lock_timeout=5ms; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function settle_windows_v1(p_shard integer, p_parts ration.operation_part[], p_actual bigint, p_now bigint, OUT o_applied integer[], OUT o_clamped integer[]) returns record language plpgsql volatile
function settled_v1(p_balance bigint, p_at bigint, p_now bigint, p_rate bigint, p_capacity bigint) returns bigint language sql immutable parallel safe
function settling_v1(p_parts ration.operation_part[]) returns TABLE(part integer, place integer, key uuid, cost bigint, mark bigint, policy integer, version integer, n bigint, d bigint, capacity bigint, capacity_units bigint, idle_balance bigint, idle_at bigint, span bigint, sliding boolean) language sql stable
function slot_log_v1(p_shard integer, p_key uuid, p_now bigint, p_count bigint) returns bigint[] language plpgsql stable
function state_place_v1(p_algorithm text, p_strict boolean, p_durability text) returns integer language sql immutable parallel safe
function state_table_v1(p_place integer) returns text language sql immutable parallel safe
function stretch_v1(p_table text, p_column text, p_shard integer, p_after uuid, p_rows integer, OUT o_after uuid, OUT o_until uuid, OUT o_last uuid) returns record language plpgsql stable
function sweep_stretch_v1(p_pass bigint, p_place integer, p_shard integer, p_after uuid, p_until uuid, OUT o_left boolean) returns boolean language plpgsql volatile set enable_hashjoin=off; enable_mergejoin=off; enable_seqscan=off; search_path=pg_catalog, pg_temp
function sweep_v1(p_shard integer, p_rows integer, p_share integer, p_now bigint DEFAULT NULL::bigint) returns bigint language plpgsql volatile security definer set search_path=pg_catalog, pg_temp
function take_durable_v1(p_shard integer, p_generation bigint, p_policies integer[], p_keys uuid[], p_costs bigint[], p_counts integer[], p_now bigint DEFAULT NULL::bigint, OUT o_stale boolean, OUT o_now bigint, OUT o_element integer[], OUT o_admitted integer[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[]) returns record language plpgsql volatile security definer set enable_hashjoin=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function take_new_durable_v1(p_shard integer, p_generation bigint, p_policies integer[], p_keys uuid[], p_costs bigint[], p_counts integer[], p_hold text DEFAULT 'wait'::text, p_now bigint DEFAULT NULL::bigint, OUT o_stale boolean, OUT o_now bigint, OUT o_element integer[], OUT o_admitted integer[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[]) returns record language plpgsql volatile security definer set enable_hashjoin=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function take_new_v1(p_shard integer, p_generation bigint, p_policies integer[], p_keys uuid[], p_costs bigint[], p_counts integer[], p_hold text DEFAULT 'wait'::text, p_now bigint DEFAULT NULL::bigint, OUT o_stale boolean, OUT o_now bigint, OUT o_element integer[], OUT o_admitted integer[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[]) returns record language plpgsql volatile security definer set enable_hashjoin=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function take_v1(p_shard integer, p_generation bigint, p_policies integer[], p_keys uuid[], p_costs bigint[], p_counts integer[], p_now bigint DEFAULT NULL::bigint, OUT o_stale boolean, OUT o_now bigint, OUT o_element integer[], OUT o_admitted integer[], OUT o_remaining bigint[], OUT o_retry_after bigint[], OUT o_reset_after bigint[]) returns record language plpgsql volatile security definer set enable_hashjoin=off; enable_mergejoin=off; enable_seqscan=off; plan_cache_mode=force_generic_plan; search_path=pg_catalog, pg_temp
function use_test_clock_v1() returns void language sql volatile set search_path=pg_catalog, pg_temp
function wait_v1(p_units bigint, p_rate bigint, p_ahead bigint) returns bigint language sql immutable parallel safe
function window_at_v1(p_start bigint, p_current bigint, p_previous bigint, p_span bigint, p_now bigint) returns TABLE(start bigint, current bigint, previous bigint) language sql immutable parallel safe
function window_room_v1(p_sliding boolean, p_current bigint, p_previous bigint, p_elapsed bigint, p_span bigint, p_limit bigint) returns bigint language sql immutable parallel safe
function window_start_v1(p_at bigint, p_span bigint) returns bigint language sql immutable parallel safe
function window_wait_v1(p_sliding boolean, p_current bigint, p_previous bigint, p_span bigint, p_limit bigint, p_cost bigint) returns bigint language sql immutable parallel safe

-- grants
column token.created_at to ration_operator: SELECT
column token.created_by to ration_operator: SELECT
column token.expires_at to ration_operator: SELECT
column token.id to ration_operator: SELECT
column token.name to ration_operator: SELECT
column token.revoked_at to ration_operator: SELECT
column token.role to ration_operator: SELECT
column token.scope to ration_operator: SELECT
function audit_hash_v1(ration.audit) to ration_operator: EXECUTE
function audit_hash_v1(ration.audit) to ration_reader: EXECUTE
function audit_hash_v1(ration.audit) to ration_service: EXECUTE
function audit_verify_v1(bigint, bytea, integer) to ration_operator: EXECUTE
function audit_verify_v1(bigint, bytea, integer) to ration_reader: EXECUTE
function audit_verify_v1(bigint, bytea, integer) to ration_service: EXECUTE
function balance_at_v1(integer, integer, bigint, bigint, bigint) to ration_operator: EXECUTE
function balance_at_v1(integer, integer, bigint, bigint, bigint) to ration_reader: EXECUTE
function balance_at_v1(integer, integer, bigint, bigint, bigint) to ration_service: EXECUTE
function bucket_key(text, jsonb) to ration_operator: EXECUTE
function bucket_key(text, jsonb) to ration_reader: EXECUTE
function bucket_key(text, jsonb) to ration_service: EXECUTE
function canonical_target_v1(text) to ration_operator: EXECUTE
function canonical_target_v1(text) to ration_reader: EXECUTE
function canonical_target_v1(text) to ration_service: EXECUTE
function carry_v1(integer, integer, integer, bigint, bigint) to ration_operator: EXECUTE
function carry_v1(integer, integer, integer, bigint, bigint) to ration_reader: EXECUTE
function carry_v1(integer, integer, integer, bigint, bigint) to ration_service: EXECUTE
function clamped_v1(numeric, bigint) to ration_operator: EXECUTE
function clamped_v1(numeric, bigint) to ration_reader: EXECUTE
function clamped_v1(numeric, bigint) to ration_service: EXECUTE
function clean_instances_v1(bigint) to ration_operator: EXECUTE
function clean_instances_v1(bigint) to ration_service: EXECUTE
function clean_logs_v1(boolean, integer, uuid, integer, bigint) to ration_operator: EXECUTE
function clean_logs_v1(boolean, integer, uuid, integer, bigint) to ration_service: EXECUTE
function clean_operations_v1(integer, integer, bigint) to ration_operator: EXECUTE
function clean_operations_v1(integer, integer, bigint) to ration_service: EXECUTE
function clean_shadow_v1(bigint) to ration_operator: EXECUTE
function clean_shadow_v1(bigint) to ration_service: EXECUTE
function clean_slot_parents_v1(integer, uuid, integer, bigint) to ration_operator: EXECUTE
function clean_slot_parents_v1(integer, uuid, integer, bigint) to ration_service: EXECUTE
function clean_slots_v1(integer, uuid, integer, bigint) to ration_operator: EXECUTE
function clean_slots_v1(integer, uuid, integer, bigint) to ration_service: EXECUTE
function clean_v1(boolean, integer, uuid, integer, bigint) to ration_operator: EXECUTE
function clean_v1(boolean, integer, uuid, integer, bigint) to ration_service: EXECUTE
function clean_windows_v1(boolean, integer, uuid, integer, bigint) to ration_operator: EXECUTE
function clean_windows_v1(boolean, integer, uuid, integer, bigint) to ration_service: EXECUTE
function clock_v1(bigint) to ration_operator: EXECUTE
function clock_v1(bigint) to ration_reader: EXECUTE
function clock_v1(bigint) to ration_service: EXECUTE
function confirm_v1(uuid, text, text, bigint, bigint, bigint) to ration_service: EXECUTE
function converted_v1(text, bigint, bigint, bigint, bigint, bigint) to ration_operator: EXECUTE
function converted_v1(text, bigint, bigint, bigint, bigint, bigint) to ration_reader: EXECUTE
function converted_v1(text, bigint, bigint, bigint, bigint, bigint) to ration_service: EXECUTE
function decide_figures_v1(bigint, integer, bigint, bigint, bigint, bigint, bigint, bigint, boolean, bigint, bigint, bigint, bigint, ration.log_entries) to ration_operator: EXECUTE
function decide_figures_v1(bigint, integer, bigint, bigint, bigint, bigint, bigint, bigint, boolean, bigint, bigint, bigint, bigint, ration.log_entries) to ration_reader: EXECUTE
function decide_figures_v1(bigint, integer, bigint, bigint, bigint, bigint, bigint, bigint, boolean, bigint, bigint, bigint, bigint, ration.log_entries) to ration_service: EXECUTE
function decide_v1(integer, bigint, uuid[], uuid[], bigint[], boolean[], integer[], uuid[], integer[], integer[], bigint[], boolean[], bigint, text, bigint) to ration_service: EXECUTE
function delete_policy_v1(text, integer, text, text, text, text, bigint) to ration_service: EXECUTE
function dry_run_v1(integer, text, json, bigint, bigint, text, text, bigint, bigint) to ration_service: EXECUTE
function expire_v1(bigint) to ration_operator: EXECUTE
function expire_v1(bigint) to ration_service: EXECUTE
function floor_div_v1(numeric, numeric) to ration_operator: EXECUTE
function floor_div_v1(numeric, numeric) to ration_reader: EXECUTE
function floor_div_v1(numeric, numeric) to ration_service: EXECUTE
function fold_case_v1(text) to ration_operator: EXECUTE
function fold_case_v1(text) to ration_reader: EXECUTE
function fold_case_v1(text) to ration_service: EXECUTE
function instances_v1(bigint) to ration_operator: EXECUTE
function instances_v1(bigint) to ration_reader: EXECUTE
function instances_v1(bigint) to ration_service: EXECUTE
function instant_v1(bigint, bigint) to ration_operator: EXECUTE
function instant_v1(bigint, bigint) to ration_reader: EXECUTE
function instant_v1(bigint, bigint) to ration_service: EXECUTE
function key_address_v1(inet, integer, integer) to ration_operator: EXECUTE
function key_address_v1(inet, integer, integer) to ration_reader: EXECUTE
function key_address_v1(inet, integer, integer) to ration_service: EXECUTE
function key_field_v1(bytea) to ration_operator: EXECUTE
function key_field_v1(bytea) to ration_reader: EXECUTE
function key_field_v1(bytea) to ration_service: EXECUTE
function key_figures_v1(integer, integer[], uuid[], bigint) to ration_service: EXECUTE
function leave_v1(uuid) to ration_service: EXECUTE
function locate_key_v1(text, jsonb) to ration_service: EXECUTE
function log_live_v1(bigint[], bigint) to ration_operator: EXECUTE
function log_live_v1(bigint[], bigint) to ration_reader: EXECUTE
function log_live_v1(bigint[], bigint) to ration_service: EXECUTE
function log_wait_v1(bigint[], bigint, bigint, bigint) to ration_operator: EXECUTE
function log_wait_v1(bigint[], bigint, bigint, bigint) to ration_reader: EXECUTE
function log_wait_v1(bigint[], bigint, bigint, bigint) to ration_service: EXECUTE
function policy_keys_v1(integer, text, uuid, integer) to ration_service: EXECUTE
function put_kill_switch_v1(text, bigint, text, text, text, text, bigint) to ration_service: EXECUTE
function put_override_v1(text, jsonb, text, json, bigint, bigint, bigint, bigint, bigint, text, text, text, text, bigint) to ration_service: EXECUTE
function put_policy_v1(text, integer, json, bigint, bigint, bigint, text, text, text, text, text, text, bigint) to ration_service: EXECUTE
function rebase_v1(integer, integer, uuid, integer, text, text, text, text, bigint) to ration_service: EXECUTE
function recover_v1(bigint) to ration_operator: EXECUTE
function recover_v1(bigint) to ration_service: EXECUTE
function release_slot_v1(integer, uuid, bigint) to ration_service: EXECUTE
function remove_kill_switch_v1(text, text, text, text, text, bigint) to ration_service: EXECUTE
function remove_override_v1(text, jsonb, text, text, text, text, bigint) to ration_service: EXECUTE
function renew_slot_v1(integer, uuid, bigint) to ration_service: EXECUTE
function report_shadow_v1(integer, integer, bigint, bigint, bigint, bigint, uuid[], text[], bigint[], bigint[], bigint[]) to ration_service: EXECUTE
function reset_bucket_v1(integer, text, jsonb, text, boolean, text, text, text, text, bigint) to ration_service: EXECUTE
function revoke_token_v1(bigint, text, bigint) to ration_operator: EXECUTE
function settle_v1(integer, uuid, bigint, bigint) to ration_service: EXECUTE
function settled_v1(bigint, bigint, bigint, bigint, bigint) to ration_operator: EXECUTE
function settled_v1(bigint, bigint, bigint, bigint, bigint) to ration_reader: EXECUTE
function settled_v1(bigint, bigint, bigint, bigint, bigint) to ration_service: EXECUTE
function sweep_v1(integer, integer, integer, bigint) to ration_operator: EXECUTE
function sweep_v1(integer, integer, integer, bigint) to ration_service: EXECUTE
function take_durable_v1(integer, bigint, integer[], uuid[], bigint[], integer[], bigint) to ration_service: EXECUTE
function take_new_durable_v1(integer, bigint, integer[], uuid[], bigint[], integer[], text, bigint) to ration_service: EXECUTE
function take_new_v1(integer, bigint, integer[], uuid[], bigint[], integer[], text, bigint) to ration_service: EXECUTE
function take_v1(integer, bigint, integer[], uuid[], bigint[], integer[], bigint) to ration_service: EXECUTE
function wait_v1(bigint, bigint, bigint) to ration_operator: EXECUTE
function wait_v1(bigint, bigint, bigint) to ration_reader: EXECUTE
function wait_v1(bigint, bigint, bigint) to ration_service: EXECUTE
function window_at_v1(bigint, bigint, bigint, bigint, bigint) to ration_operator: EXECUTE
function window_at_v1(bigint, bigint, bigint, bigint, bigint) to ration_reader: EXECUTE
function window_at_v1(bigint, bigint, bigint, bigint, bigint) to ration_service: EXECUTE
function window_room_v1(boolean, bigint, bigint, bigint, bigint, bigint) to ration_operator: EXECUTE
function window_room_v1(boolean, bigint, bigint, bigint, bigint, bigint) to ration_reader: EXECUTE
function window_room_v1(boolean, bigint, bigint, bigint, bigint, bigint) to ration_service: EXECUTE
function window_start_v1(bigint, bigint) to ration_operator: EXECUTE
function window_start_v1(bigint, bigint) to ration_reader: EXECUTE
function window_start_v1(bigint, bigint) to ration_service: EXECUTE
function window_wait_v1(boolean, bigint, bigint, bigint, bigint, bigint) to ration_operator: EXECUTE
function window_wait_v1(boolean, bigint, bigint, bigint, bigint, bigint) to ration_reader: EXECUTE
function window_wait_v1(boolean, bigint, bigint, bigint, bigint, bigint) to ration_service: EXECUTE
relation audit to ration_operator: SELECT
relation audit to ration_reader: SELECT
relation audit to ration_service: SELECT
relation audit_head to ration_operator: SELECT
relation audit_head to ration_reader: SELECT
relation audit_head to ration_service: SELECT
relation bucket_now to ration_operator: SELECT
relation bucket_now to ration_reader: SELECT
relation bucket_now to ration_service: SELECT
relation kill_switch to ration_service: SELECT
relation log_now to ration_operator: SELECT
relation log_now to ration_reader: SELECT
relation log_now to ration_service: SELECT
relation operation to ration_service: SELECT
relation override to ration_service: SELECT
relation policy to ration_operator: SELECT
relation policy to ration_reader: SELECT
relation policy to ration_service: SELECT
relation policy_set to ration_operator: SELECT
relation policy_set to ration_reader: SELECT
relation policy_set to ration_service: SELECT
relation policy_version to ration_operator: SELECT
relation policy_version to ration_reader: SELECT
relation policy_version to ration_service: SELECT
relation schema_version to ration_operator: SELECT
relation schema_version to ration_reader: SELECT
relation schema_version to ration_service: SELECT
relation shadow_denial to ration_operator: SELECT
relation shadow_denial to ration_service: SELECT
relation shadow_total to ration_operator: SELECT
relation shadow_total to ration_service: SELECT
relation slot to ration_service: SELECT
relation slot_now to ration_operator: SELECT
relation slot_now to ration_reader: SELECT
relation slot_now to ration_service: SELECT
relation slot_parent to ration_service: SELECT
relation state_loss to ration_operator: SELECT
relation state_loss to ration_reader: SELECT
relation state_loss to ration_service: SELECT
relation token to ration_service: SELECT
relation window_now to ration_operator: SELECT
relation window_now to ration_reader: SELECT
relation window_now to ration_service: SELECT

-- roles
role ration_operator nologin
role ration_reader nologin
role ration_service login

-- settings in this database
ration_service: default_transaction_isolation=read committed
ration_service: idle_in_transaction_session_timeout=10s
ration_service: jit=off
ration_service: lock_timeout=40ms
ration_service: statement_timeout=40ms
