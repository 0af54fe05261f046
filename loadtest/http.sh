#!/usr/bin/env bash
# Decisions over HTTP beside the same handler with the store left out, in turns of one run, by wrk with 64 connections.
#
#   loadtest/http.sh [SECONDS]      30 by default; the smoke run takes 2
#
# It starts `ration dev` and the floor on free loopback ports, installs a policy that always allows, warms the keys up and
# prints a table. The policy never denies, so an answer other than 200 is a decision that missed its deadline; it refills so
# slowly that no bucket is idle again within the run, and the cleaner takes none away between two turns.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
rounds=${ROUNDS:-3}
connections=${CONNECTIONS:-64}
command -v wrk >/dev/null || { echo "wrk is not installed (Debian package wrk)"; exit 1; }

work=$(mktemp -d)
chmod 755 "$work"
service= floor=
finish() {
  [[ -z $service ]] || kill -INT "$service" 2>/dev/null || true
  [[ -z $floor ]] || kill -INT "$floor" 2>/dev/null || true
  wait || true
  rm -rf "$work"
}
trap finish EXIT

go build -o "$work" ./cmd/ration ./internal/floor
RATION_DEV_DIR=$work/dev RATION_HTTP_ADDR=127.0.0.1:0 RATION_ADMIN_ADDR=127.0.0.1:0 RATION_METRICS_ADDR=127.0.0.1:0 \
  "$work/ration" dev >"$work/service.log" 2>&1 &
service=$!
"$work/floor" 127.0.0.1:0 >"$work/floor.log" 2>&1 &
floor=$!
for _ in $(seq 300); do grep -q '^ready' "$work/service.log" && [[ -s $work/floor.log ]] && break; sleep 0.2; done
grep -q '^ready' "$work/service.log" || { cat "$work/service.log"; exit 1; }
http=$(sed -n 's/^ready: decisions \([^,]*\),.*/\1/p' "$work/service.log")
admin=$(sed -n 's/^ready: .*administration \([^,]*\),.*/\1/p' "$work/service.log")
bare=$(head -n 1 "$work/floor.log")

curl -sf -X PUT "$admin/v1/policies/bench" -H 'If-None-Match: *' -H 'Content-Type: application/json' -d '{
  "match": {"operations": ["bench"]}, "per": ["account"],
  "limit": {"algorithm": "token_bucket", "capacity": 1000000, "refillTokens": 1, "refillSeconds": 60}}' >/dev/null

# run NAME URL SCRIPT PER_REQUEST: one line of the table, and the rate in $rate
run() {
  local out other
  out=$(wrk -t1 -c"$connections" -d"${seconds}s" --latency -s "loadtest/wrk/$3" "$2")
  other=$(awk '/Non-2xx/{n = $NF} END{print n + 0}' <<<"$out")
  rate=$(awk -v n="$4" '/Requests\/sec/{printf "%.0f", $2 * n}' <<<"$out")
  printf '%-36s %9s decisions/s   p50 %-9s p99 %-9s %s without a decision\n' "$1" "$rate" \
    "$(awk '$1=="50%"{print $2}' <<<"$out")" "$(awk '$1=="99%"{print $2}' <<<"$out")" "$other"
  # Errors must not pass for speed: at most one in a hundred may miss its deadline on a busy machine.
  if grep -q 'Socket errors' <<<"$out" || ((other * 100 > rate * seconds / $4)); then echo "$out"; exit 1; fi
}

export ACCOUNTS=${ACCOUNTS:-1000000}
echo "# $connections connections, $seconds s a turn, $ACCOUNTS accounts, $(nproc) cores with load generator, service and PostgreSQL on them"
wrk -t1 -c8 -d"$((seconds < 10 ? 2 : 20))s" -s loadtest/wrk/batch.lua "$http" >/dev/null # rows for most keys
single=0 floored=0
for _ in $(seq "$rounds"); do
  run "single decisions" "$http/internal/rate-decisions" decide.lua 1; single=$((single + rate))
  run "the same handler, store left out" "$bare/internal/rate-decisions" decide.lua 1; floored=$((floored + rate))
done
connections=8
run "batches of 100, 8 connections" "$http" batch.lua 100
awk -v a="$single" -v b="$floored" 'BEGIN{printf "single decisions against the floor: %.2f\n", a / b}'
