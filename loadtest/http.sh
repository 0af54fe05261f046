#!/usr/bin/env bash
# Decisions over HTTP, of one policy and otherwise, in turns of one run, by wrk with 64 connections.
#
#   loadtest/http.sh [SECONDS]      a turn; 30 by default, the smoke run takes 2
#
# It starts `ration dev` and the floor (the same handler with the store left out) on free loopback ports, installs policies
# that always allow and one that always denies, warms the keys up, and prints a table and the ratios to single decisions.
# Nothing is refilled fast enough for a bucket to be idle again within the run, so the cleaner takes none away.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
rounds=${ROUNDS:-3}
connections=${CONNECTIONS:-64}
export ACCOUNTS=${ACCOUNTS:-1000000}
few=1000 # accounts that have spent all they had, after a moment
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
metrics=$(sed -n 's/^ready: .*metrics \([^ ]*\) .*/\1/p' "$work/service.log")
bare=$(head -n 1 "$work/floor.log")

# policy ID OPERATION KEY CAPACITY
policy() {
  curl -sf -X PUT "$admin/v1/policies/$1" -H 'If-None-Match: *' -H 'Content-Type: application/json' -d '{
    "match": {"operations": ["'"$2"'"]}, "per": ["'"$3"'"],
    "limit": {"algorithm": "token_bucket", "capacity": '"$4"', "refillTokens": 1, "refillSeconds": 86400}}' >/dev/null
}
policy bench bench account 1000000
policy several-account several account 1000000
policy several-address several ip 1000000
policy several-key several apiKey 1000000
policy spent spent account 1

# denied: how many single requests the service has denied so far
denied() {
  curl -sf "$metrics/metrics" | awk '/^ration_http_requests_total{code="429",.*rate-decisions"/ { n += $NF } END { print n + 0 }'
}

# ask CONNECTIONS SECONDS URL [VARIABLE=value…]: what wrk says of a turn
ask() { env "${@:4}" wrk -t1 -c"$1" -d"$2s" --latency -s loadtest/wrk/ask.lua "$3"; }

# run NAME URL [VARIABLE=value…]: one line of the table, and the decisions a second in $rate
within=100
run() {
  local name=$1 url=$2 each=1 variable before out requests other missed
  for variable in "${@:3}"; do [[ $variable != ITEMS=* ]] || each=${variable#*=}; done
  before=$(denied)
  out=$(ask "$connections" "$seconds" "$url" "${@:3}")
  requests=$(awk '/requests in/{print $1}' <<<"$out")
  other=$(awk '/Non-2xx/{n = $NF} END{print n + 0}' <<<"$out")
  missed=$((other - $(denied) + before))
  ((missed >= 0)) || missed=0 # denials that wrk did not wait for
  rate=$(awk -v n="$each" -v all="$requests" -v no="$missed" '/Requests\/sec/{printf "%.0f", $2 * n * (1 - no / all)}' <<<"$out")
  printf '%-34s %8s decisions/s   p50 %-9s p99 %-9s %s denied, %s without a decision\n' "$name" "$rate" \
    "$(awk '$1=="50%"{print $2}' <<<"$out")" "$(awk '$1=="99%"{print $2}' <<<"$out")" "$((other - missed))" "$missed"
  # What missed its deadline is not in the rate. At most one in a hundred may; of the general path, whose batches take a good
  # part of the deadline on two cores, one in ten: beyond that the machine is too busy to measure on.
  if grep -q 'Socket errors' <<<"$out" || ((missed * within > requests)); then echo "$out"; exit 1; fi
}

echo "# $connections connections, $seconds s a turn, $ACCOUNTS accounts, $(nproc) cores with load generator, service and PostgreSQL on them"
warming=$((seconds < 10 ? 2 : 20)) # rows for most keys
ask 8 "$warming" "$http" ITEMS=100 >/dev/null
ask 8 "$warming" "$http" ITEMS=100 OPERATION=several >/dev/null
ask 8 2 "$http" ITEMS=100 OPERATION=spent ACCOUNTS="$few" >/dev/null

declare -A sum
turn() { run "$@"; sum[$1]=$((${sum[$1]:-0} + rate)); }
for _ in $(seq "$rounds"); do
  turn "single decisions" "$http"
  turn "the same handler, store left out" "$bare"
  within=10
  turn "of three policies" "$http" OPERATION=several
  turn "with operation ids" "$http" IDS=1
  within=100
  turn "denied, $few accounts" "$http" OPERATION=spent ACCOUNTS="$few"
  turn "allowed, $few accounts" "$http" ACCOUNTS="$few"
done
connections=8
run "batches of 100, 8 connections" "$http" ITEMS=100

# ratio NAME NAME: the one's rate by the other's
ratio() { awk -v a="${sum[$1]}" -v b="${sum[$2]}" -v name="$1 / $2" 'BEGIN { printf "%s: %.2f\n", name, a / b }'; }
ratio "single decisions" "the same handler, store left out"
ratio "of three policies" "single decisions"
ratio "with operation ids" "single decisions"
ratio "denied, $few accounts" "allowed, $few accounts"
