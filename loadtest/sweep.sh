#!/usr/bin/env bash
# A reduction of a policy's limit on many live buckets under load: how long it takes to answer, what decisions take before it,
# while what it left is swept, and behind that, and whether the audit counts what SQL counts.
#
#   loadtest/sweep.sh [SECONDS]     a turn of the load; 20 by default, the smoke run takes 2
#
# ROWS buckets (1,000,000) of one policy are filled by SQL: half of them hold more than the new capacity, half less. CONNECTIONS
# (8) of wrk ask for one of these accounts at a time, all the while.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
connections=${CONNECTIONS:-8}
rows=${ROWS:-1000000}
export ACCOUNTS=$rows
for tool in wrk psql; do
  command -v "$tool" >/dev/null || { echo "$tool is not installed (Debian packages wrk, postgresql-client)"; exit 1; }
done

work=$(mktemp -d)
chmod 755 "$work"
service=
finish() {
  [[ -z $service ]] || kill -INT "$service" 2>/dev/null || true
  wait || true
  rm -rf "$work"
}
trap finish EXIT

go build -o "$work" ./cmd/ration
RATION_DEV_DIR=$work/dev RATION_HTTP_ADDR=127.0.0.1:0 RATION_ADMIN_ADDR=127.0.0.1:0 RATION_METRICS_ADDR=127.0.0.1:0 \
  "$work/ration" dev >"$work/service.log" 2>&1 &
service=$!
for _ in $(seq 300); do grep -q '^Ctrl-C' "$work/service.log" && break; sleep 0.2; done
grep -q '^ready' "$work/service.log" || { cat "$work/service.log"; exit 1; }
http=$(sed -n 's/^ready: decisions \([^,]*\),.*/\1/p' "$work/service.log")
admin=$(sed -n 's/^ready: .*administration \([^,]*\),.*/\1/p' "$work/service.log")
database=$(sed -n "s/^ *psql '\([^']*\)'.*/\1/p" "$work/service.log")
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$database" -c "$1"; }

# put CAPACITY HEADER [QUERY]: the policy of that capacity, which earns nothing to speak of
put() {
  curl -sS -f -X PUT "$admin/v1/policies/swept${3:-}" -H "$2" -H 'Content-Type: application/json' -w '\n%{time_total}' -d '{
    "match": {"operations": ["bench"]}, "per": ["account"],
    "limit": {"algorithm": "token_bucket", "capacity": '"$1"', "refillTokens": 1, "refillSeconds": 86400}}'
}

# turn NAME: a line of the table
turn() {
  local out
  out=$(wrk -t1 -c"$connections" -d"${seconds}s" --latency -s loadtest/wrk/ask.lua "$http")
  awk -v name="$1" '
    $1 == "Latency" && $2 != "Distribution" { longest = $4 }
    $1 == "50%" { p50 = $2 } $1 == "90%" { p90 = $2 } $1 == "99%" { p99 = $2 }
    $1 == "Requests/sec:" { rate = $2 } /Non-2xx/ { other = $NF }
    END { printf "%-8s %8.0f decisions/s   p50 %-9s p90 %-9s p99 %-9s max %-9s %d of another status\n", name, rate, p50, p90, p99, longest, other }
  ' <<<"$out"
}

put 1000 'If-None-Match: *' >/dev/null
echo "# $rows buckets, $connections connections, $seconds s a turn, $(nproc) cores with load generator, service and PostgreSQL on them"
sql "INSERT INTO ration.bucket_fast (balance, at, key, shard, policy, version, took)
     SELECT CASE WHEN i % 2 = 0 THEN 900 ELSE 400 END * p.d, p.idle_at, ration.bucket_key('swept', jsonb_build_object('account', 'a' || i)),
            0, p.number, 1, 0
     FROM ration.policy AS p, generate_series(1, $rows) AS i WHERE p.id = 'swept'"
sql "VACUUM ANALYZE ration.bucket_fast"
turn "" >/dev/null # warms up
turn before
want=$(sql "SELECT count(*) || ' settled, ' || count(*) FILTER (WHERE b.balance > 500 * p.d) || ' clamped'
            FROM ration.bucket_fast AS b JOIN ration.policy AS p ON p.number = b.policy WHERE p.id = 'swept'")
echo "dry run: $(put 500 'If-Match: "v1"' '?dryRun=true' | tr -d ' \n' | sed 's/.*"balances":\({[^}]*}\).*/\1/')"

swept="FROM ration.audit WHERE policy = 'swept' AND action = 'policy.swept'"
turn during >"$work/during" &
load=$!
sleep 1 # for wrk to connect
answer=$(put 500 'If-Match: "v1"')
echo "the reduction answered after ${answer##*$'\n'} s"
left=$(curl -sS -f --retry 9 "$http/internal/rate-decisions" -H 'Content-Type: application/json' -d '{"verifiedAccount":"a2","operation":"bench"}' |
  sed -n 's/.*"remaining": *\([0-9]*\).*/\1/p')
((left < 500)) || { echo "$left are left of 500 at once"; exit 1; }
wait "$load"
cat "$work/during"
until [[ $(sql "SELECT count(*) $swept") = 1 ]]; do turn during; done
got=$(sql "SELECT settled || ' settled, ' || clamped || ' clamped' $swept")
took=$(sql "SELECT (a.at - v.installed_at) / 1000000 FROM ration.policy_version AS v JOIN ration.policy AS p USING (number),
            (SELECT at $swept) AS a WHERE p.id = 'swept' AND v.version = 2")
older=$(sql "SELECT count(*) FROM ration.bucket_fast WHERE version < 2")
turn after
echo "swept within $took s; the audit says $got; SQL counted $want before, and $older of the older version are left"
[[ $got = "$want" && $older = 0 ]]
