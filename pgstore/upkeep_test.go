package pgstore_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

// An update that stays on its page needs no index entry. It takes room there,
// and no index on anything that a decision writes. It runs alone: long
// transactions in other databases keep the server from making room.
func TestDecisionsAreHeapOnlyUpdates(t *testing.T) { //nolint:paralleltest // see above
	b := newBench(t)
	indexed := scalar[string](b, `SELECT coalesce(string_agg(DISTINCT a.attname, ', '), '') FROM pg_index AS i
		JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
		WHERE i.indrelid IN ('ration.bucket_fast'::regclass, 'ration.bucket_durable'::regclass)
		  AND a.attname NOT IN ('shard', 'key')`)
	if indexed != "" {
		t.Errorf("what a decision writes is indexed: %s", indexed)
	}
	random := newRandom(t)
	const keys, calls, asks = 2000, 150, 64
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		table := fmt.Sprintf("ration.bucket_%s", durability)
		of := b.install(durability.String(), 0, shape{capacity: 100_000, durability: durability}, 0)
		b.exec(`INSERT INTO `+table+` (balance, at, key, shard, policy, version, took)
			SELECT p.capacity_units, $1, (lpad(to_hex(i), 16, '0') || lpad(to_hex(p.number), 16, '0'))::uuid, 0, p.number, 1, 0
			FROM ration.policy AS p, generate_series(0, $2::int - 1) AS i WHERE p.number = $3`, epochMicros, keys, of.Number)
		conn := b.service()
		for range calls {
			numbers := make([]uint64, asks)
			for i, number := range random.Perm(keys)[:asks] {
				numbers[i] = uint64(number)
			}
			batch := b.batch(of, numbers...)
			if _, err := conn.Exec(t.Context(), takeText(batch)); err != nil {
				t.Fatal(err)
			}
		}
		// A backend's figures are there for others once it has ended or says so.
		if _, err := conn.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		updates := scalar[int64](b, "SELECT pg_stat_get_tuples_updated($1::text::regclass)", table)
		hot := scalar[int64](b, "SELECT pg_stat_get_tuples_hot_updated($1::text::regclass)", table)
		t.Logf("%s: %d of %d updates were heap-only", durability, hot, updates)
		if updates < calls*asks || hot*100 < updates*95 {
			t.Errorf("%s: %d of %d updates were heap-only, want 95%%", durability, hot, updates)
		}
	}
}

// takeText is a batch's call of the fast path as text.
func takeText(batch *policy.Batch) string {
	function := map[policy.Durability]string{policy.Fast: "take_v1", policy.Durable: "take_durable_v1"}[batch.Durability]
	n := len(batch.Asks)
	keys := make([]string, n)
	for i, ask := range batch.Asks {
		keys[i] = hex.EncodeToString(ask.Key[:])
	}
	return fmt.Sprintf("SELECT ration.%s(0, %d, array_fill(%d, ARRAY[%d]), '{%s}', array_fill(1::bigint, ARRAY[%d]), array_fill(1, ARRAY[%d]), %d)",
		function, batch.Generation, batch.Asks[0].Policy, n, strings.Join(keys, ","), n, n, batch.NowMicros)
}

// Somebody who is denied costs no write: no transaction id, no WAL.
func TestDenialsWriteNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		of := b.install(durability.String(), 0, shape{capacity: 1, durability: durability}, 0)
		b.decide(session, b.batch(of, 1, 2, 3))
		before := b.stored()
		suffix := map[policy.Durability]string{policy.Fast: "_v1", policy.Durable: "_durable_v1"}[durability]
		present, absent := b.batch(of, 1).Asks[0].Key, b.batch(of, 9).Asks[0].Key
		ask := func(key policy.Key, cost, count int) string {
			return fmt.Sprintf("(0, %d, '{%d}', '{%x}', '{%d}', '{%d}', p_now => %d)", b.generation(), of.Number, key, cost, count, epochMicros+second)
		}
		conn := b.service()
		for _, call := range []string{
			"take" + suffix + ask(present, 1, 7), "take" + suffix + ask(present, 2, 1), "take" + suffix + ask(present, 1, 0),
			"take" + suffix + ask(absent, 1, 1), "take_new" + suffix + ask(absent, 2, 1), "take_new" + suffix + ask(absent, 1, 0),
		} {
			var admitted int
			var id *string
			err := conn.QueryRow(t.Context(), "SELECT coalesce((SELECT sum(a) FROM unnest(c.o_admitted) AS a), 0), pg_current_xact_id_if_assigned()::text FROM ration."+
				call+" AS c").Scan(&admitted, &id)
			if err != nil || admitted != 0 || id != nil {
				t.Errorf("%s: %d admitted, transaction id %v, %v", call, admitted, id, err)
			}
		}
		if after := b.stored(); after != before {
			t.Errorf("denials left\n%s\nbefore\n%s", after, before)
		}
	}
}

// The cleaner takes what is idle and nothing else, in stretches.
func TestCleanTakesIdleRowsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		of := b.install(durability.String(), 0, shape{capacity: 10, seconds: "1", durability: durability}, 0)
		var keys []uint64
		for key := range uint64(1200) {
			keys = append(keys, key)
		}
		for _, chunk := range [][]uint64{keys[:600], keys[600:]} {
			b.decide(session, b.batch(of, chunk...))
		}
		charged := b.batch(of, 5, 700)
		charged.Asks[0].Count, charged.Asks[1].Count = 5, 5
		b.decide(session, charged)
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second); err != nil || deleted != 0 {
			t.Errorf("%s, nothing is idle yet: %d deleted, %v", durability, deleted, err)
		}
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+2*second); err != nil || deleted != 1198 {
			t.Errorf("%s: %d deleted, %v, want all but the two that still earn", durability, deleted, err)
		}
		b.expect(session, of, 5, 2*second, 1, 4)
		if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+hour); err != nil || deleted != 2 {
			t.Errorf("%s: %d deleted, %v, want the last two", durability, deleted, err)
		}
	}
}
