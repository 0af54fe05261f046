package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// putSQL is a call of put_policy_v1 with what a test wants to spoil. The
// content is of 40 tokens and 20 each second.
func putSQL(change map[string]string) string {
	arguments := map[string]string{
		"p_id": "'p'", "p_expected": "0", "p_n": "1", "p_d": "50000", "p_capacity": "40", "p_balances": "'keep'",
		"p_start": "NULL", "p_actor": "'ann'", "p_role": "'operator'", "p_reason": "'why'", "p_request_id": "'r1'", "p_now": "1704067200000000",
		"p_content": `'{"durability": "fast", "limit": {"capacity": 40, "refillTokens": 20, "refillSeconds": 1}}'`,
	}
	maps.Copy(arguments, change)
	var named []string
	for name, value := range arguments {
		named = append(named, name+" => "+value)
	}
	return "SELECT o_outcome FROM ration.put_policy_v1(" + strings.Join(named, ", ") + ")"
}

func limitJSON(capacity, tokens, seconds string) string {
	return fmt.Sprintf(`'{"durability": "fast", "limit": {"capacity": %s, "refillTokens": %s, "refillSeconds": %s}}'`, capacity, tokens, seconds)
}

func TestImpossiblePoliciesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn := b.service()
	for name, c := range map[string]struct {
		state  string
		change map[string]string
	}{
		"n not the content's":        {"RN005", map[string]string{"p_n": "2"}},
		"d not the content's":        {"RN005", map[string]string{"p_d": "50001"}},
		"capacity not the content's": {"RN005", map[string]string{"p_capacity": "41"}},
		"no n":                       {"RN005", map[string]string{"p_n": "NULL"}},
		"no d":                       {"RN005", map[string]string{"p_d": "NULL"}},
		"no capacity":                {"RN005", map[string]string{"p_capacity": "NULL"}},
		"no content":                 {"RN005", map[string]string{"p_content": "NULL"}},
		"no limit":                   {"RN005", map[string]string{"p_content": `'{"durability": "fast"}'`}},
		"no refill":                  {"RN005", map[string]string{"p_content": `'{"durability": "fast", "limit": {"capacity": 40}}'`}},
		"a refill of nothing":        {"RN005", map[string]string{"p_content": limitJSON("40", "0", "0")}},
		"figures not in lowest terms": {
			"23514",
			map[string]string{"p_n": "2", "p_d": "100000"},
		},
		"capacity of 2^62 units": {
			"RN005",
			map[string]string{"p_capacity": "92233720368548", "p_content": limitJSON("92233720368548", "20", "1")},
		},
		"capacity beyond 64 bits of units": {
			"RN005",
			map[string]string{"p_capacity": "9223372036854775807", "p_content": limitJSON("9223372036854775807", "20", "1")},
		},
		"n of 2^62": {
			"23514",
			map[string]string{"p_n": "4611686018427387904", "p_d": "1", "p_content": limitJSON("40", "4611686018427387904000000", "1")},
		},
		"no capacity at all": {"23514", map[string]string{"p_capacity": "0", "p_content": limitJSON("0", "20", "1")}},
		"another rule":       {"RN005", map[string]string{"p_balances": "'halve'"}},
		"no beginning":       {"RN005", map[string]string{"p_balances": "'restart'"}},
		"half a beginning":   {"RN005", map[string]string{"p_balances": "'restart'", "p_start": "'half'"}},
		"too much beginning": {"RN005", map[string]string{"p_start": "'full'"}},
		"an id with a space": {"23514", map[string]string{"p_id": "'a b'"}},
		"an override's id":   {"RN005", map[string]string{"p_id": "'p!1'"}},
		"an empty id":        {"23514", map[string]string{"p_id": "''"}},
		"a long id":          {"23514", map[string]string{"p_id": "'" + strings.Repeat("x", 65) + "'"}},
		"no id":              {"23502", map[string]string{"p_id": "NULL"}},
		"no actor":           {"23502", map[string]string{"p_actor": "NULL"}},
		"no durability": {"23502", map[string]string{
			"p_content": `'{"limit": {"capacity": 40, "refillTokens": 20, "refillSeconds": 1}}'`,
		}},
	} {
		refused(b, conn, c.state, name, putSQL(c.change))
	}
	if n := scalar[int](b, `SELECT (SELECT count(*) FROM ration.policy) + (SELECT count(*) FROM ration.policy_version)
		+ (SELECT count(*) FROM ration.audit) + (SELECT generation - 1 FROM ration.policy_set)`); n != 0 {
		t.Errorf("refused policies left %d traces", n)
	}
	if _, err := conn.Exec(t.Context(), putSQL(nil)); err != nil {
		t.Errorf("the policy that the others are spoilt from: %v", err)
	}
}

// audits lists the audit as text.
func (b *bench) audits() string {
	b.Helper()
	return scalar[string](b, `SELECT coalesce(string_agg(format('%s %s %s %s-%s %s %s %s %s', a.actor, a.action, a.policy, a.version_before,
		a.version_after, (a.before #>> '{limit,capacity}'), (a.after #>> '{limit,capacity}'), a.reason, a.request_id), '; ' ORDER BY a.id), '')
		FROM ration.audit AS a`)
}

func TestPutIsOneTransactionWithItsAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	put := func(expected int, capacity int64) (*policy.Installed, bool, error) {
		change := shape{capacity: capacity}.change(t)
		change.Reason = "why"
		return b.store.PutAt(t.Context(), policy.Put{ID: "p", Expected: expected, Change: change, Author: policy.Author{Actor: "ann", RequestID: "r1"}}, epochMicros)
	}
	before := b.generation()
	if installed, changed, err := put(0, 40); err != nil || !changed || installed.Version != 1 {
		t.Fatalf("%+v, %t, %v", installed, changed, err)
	}
	// The same content is no change, and a version that is not in force is a conflict: neither leaves anything.
	if installed, changed, err := put(1, 40); err != nil || changed || installed.Version != 1 {
		t.Errorf("the same content: %+v, %t, %v", installed, changed, err)
	}
	for _, expected := range []int{0, 2} {
		var known *policy.Error
		if _, _, err := put(expected, 50); !errors.As(err, &known) || known.Reason != policy.ReasonVersionConflict {
			t.Errorf("after version %d: %v", expected, err)
		}
	}
	if after := b.generation(); after != before+1 {
		t.Errorf("generation %d, then %d", before, after)
	}
	const created = "ann policy.created p -1  40 why r1"
	if got := b.audits(); got != created {
		t.Errorf("audit: %s", got)
	}
	// A change that is rolled back leaves neither a version nor an audit row.
	begun(b, b.service(), "READ COMMITTED", func(conn *pgx.Conn) {
		if _, err := conn.Exec(t.Context(), putSQL(map[string]string{"p_expected": "1"})); err != nil {
			t.Fatal(err)
		}
	})
	if got := b.audits(); got != created || b.generation() != before+1 {
		t.Errorf("after a rollback: %s, generation %d", got, b.generation())
	}
	if installed, changed, err := put(1, 50); err != nil || !changed || installed.Version != 2 {
		t.Errorf("%+v, %t, %v", installed, changed, err)
	}
	if got := b.audits(); got != created+"; ann policy.changed p 1-2 40 50 why r1" {
		t.Errorf("audit: %s", got)
	}
}

func TestConcurrentPutsOfOneVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("p", 0, shape{capacity: 1}, 0)
	const operators = 8
	outcomes := make(chan error, operators)
	for i := range operators {
		change := shape{capacity: int64(10 + i)}.change(t)
		go func() {
			_, _, err := b.store.PutAt(t.Context(), policy.Put{ID: "p", Expected: 1, Change: change, Author: policy.Author{Actor: "test"}}, epochMicros)
			outcomes <- err
		}()
	}
	won := 0
	for range operators {
		err := <-outcomes
		var known *policy.Error
		switch {
		case err == nil:
			won++
		case !errors.As(err, &known) || known.Reason != policy.ReasonVersionConflict:
			t.Errorf("neither installed nor a conflict: %v", err)
		}
	}
	if won != 1 || b.generation() != 3 || scalar[int](b, "SELECT max(version) FROM ration.policy_version") != 2 {
		t.Errorf("%d won, generation %d", won, b.generation())
	}
}

func TestInstalledAtNeverMovesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for version, at := range []int64{10 * second, 5 * second, 11 * second, 11*second - 1} {
		installed := b.install("p", version, shape{capacity: int64(version + 1)}, at)
		want := []int64{10 * second, 10 * second, 11 * second, 11 * second}[version]
		if got := installed.InstalledAtMicros - epochMicros; got != want {
			t.Errorf("version %d of a clock at %d is installed at %d, want %d", version+1, at, got, want)
		}
	}
}

// changeMax bounds the wait for a word of a change.
const changeMax = 30 * time.Second

func TestListenHearsChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), changeMax)
	defer cancel()
	changed := make(chan struct{}, 100)
	hear := func(of string) {
		t.Helper()
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("nobody was told of %s", of)
		}
	}
	ended := make(chan error, 1)
	var log bytes.Buffer // read when Listen has ended
	go func() {
		ended <- b.store.Listen(ctx, slog.New(slog.NewTextHandler(&log, nil)), func() { changed <- struct{}{} }, func() {})
	}()
	hear("the beginning")
	b.install("p", 0, shape{capacity: 1}, 0)
	hear("the first version")
	b.install("p", 1, shape{capacity: 1}, 0) // the same content: nobody is told
	b.install("p", 1, shape{capacity: 2}, 0)
	hear("the second version")
	// The connection breaks: what changed meanwhile is asked for when it is made again.
	b.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN ration_policy%'")
	hear("the new connection")
	b.install("p", 2, shape{capacity: 3}, 0)
	hear("the third version")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("its end by the context is no error: %v", err)
	}
	if len(changed) > 0 {
		t.Error("a change that was none was told of")
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || strings.Count(text, "level=INFO") != 1 {
		t.Errorf("want one line when it broke off and one when it works again, got\n%s", text)
	}
}

// TestAChangeOfStateIsRefused: what decides which state a policy keeps cannot
// change under its balances. Every such member is named, and nothing changes.
func TestAChangeOfStateIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	put := func(expected int, members string) error {
		change, err := policy.ParseChange([]byte(`{"match": {}, "limit": {"algorithm": "token_bucket", "capacity": 10,
			"refillTokens": 1, "refillSeconds": 1}, ` + members + `}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = b.store.Put(ctx, policy.Put{ID: "p", Expected: expected, Change: change, Author: policy.Author{Actor: "ann"}})
		return err
	}
	if err := put(0, `"per": ["account", "ip"]`); err != nil {
		t.Fatal(err)
	}
	before := b.generation()
	for members, want := range map[string][]string{
		`"per": ["ip"]`: {"/per"},
		`"per": ["account", "ip"], "durability": "durable"`:              {"/durability"},
		`"per": ["account", "ip"], "ipPrefix": {"v4": 24}`:               {"/ipPrefix"},
		`"per": ["ip"], "durability": "durable", "ipPrefix": {"v6": 48}`: {"/per", "/ipPrefix", "/durability"},
	} {
		var refused *policy.Error
		if err := put(1, members); !errors.As(err, &refused) || refused.Reason != policy.ReasonPolicyInvalid {
			t.Errorf("%s: %v, want policy-invalid", members, err)
			continue
		}
		var pointers []string
		for _, fault := range refused.Faults {
			pointers = append(pointers, fault.Pointer)
		}
		if diff := cmp.Diff(want, pointers); diff != "" {
			t.Errorf("%s: %s", members, diff)
		}
	}
	if b.generation() != before {
		t.Error("a refused change raised the generation")
	}
	if err := put(1, `"per": ["ip", "account"], "description": "the same state"`); err != nil {
		t.Errorf("the same attributes in another order: %v", err)
	}
}
