package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/internal/devpg"
	"github.com/rationhq/ration/internal/skip"
	"github.com/rationhq/ration/policy"
)

// appendAuditSQL does what every function that changes something does last.
const appendAuditSQL = "INSERT INTO ration.audit (policy, at, actor, action, after, reason, request_id) VALUES "

// audited is a bench whose audit has rows 1 to n.
func audited(t *testing.T, n int) *bench {
	t.Helper()
	b := newBench(t)
	for i := range n {
		b.exec(appendAuditSQL+"(NULL, $1, 'ana', 'test.done', '{\"n\": 1 }', 'because', '')", i)
	}
	return b
}

func (b *bench) verifyAudit() policy.AuditChain {
	b.Helper()
	chain, err := b.store.VerifyAudit(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return chain
}

// However many write to the audit at once, and whether or not they commit, its
// rows are one chain without gaps.
func TestTheAuditIsOneChain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const sessions, rounds = 8, 25
	seed := rand.Uint64()
	t.Log("seed", seed)
	var group sync.WaitGroup
	for session := range sessions {
		conn, random := b.connect(b.db.OwnerURL()), rand.New(rand.NewPCG(seed, uint64(session)))
		group.Go(func() {
			for round := range rounds {
				end := "COMMIT"
				if random.IntN(4) == 0 {
					end = "ROLLBACK"
				}
				rows := strings.Repeat(", (NULL, 1, 'ana', 'test.done', NULL, 'ä', '')", 1+random.IntN(3))
				if _, err := conn.Exec(b.Context(), "BEGIN; "+appendAuditSQL+rows[1:]+"; "+end); err != nil {
					t.Error(err)
				}
				put := policy.Put{ID: fmt.Sprintf("p-%d", session), Expected: round, Change: shape{capacity: int64(10 + round)}.change(t)}
				if _, _, err := b.store.Put(b.Context(), put); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	chain := b.verifyAudit()
	if chain.Fault != policy.AuditWhole || chain.Rows != chain.Last || chain.Rows < sessions*rounds {
		t.Errorf("%+v", chain)
	}
	if n := scalar[int64](b, "SELECT count(*) FROM ration.audit"); n != chain.Rows {
		t.Errorf("%d rows, %d verified", n, chain.Rows)
	}
}

// The hash is of every column: a change of any is found.
func TestAChangeOfAnyColumnIsFound(t *testing.T) {
	t.Parallel()
	b := audited(t, 3)
	b.exec("ALTER TABLE ration.audit DISABLE TRIGGER audit_refuse")
	const columns = `SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute AS a
		WHERE a.attrelid = 'ration.audit'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> 'id'`
	other := map[string]string{"before": `'{"n":1}'`, "after": `'{"n":1}'`, "previous": "'x'", "hash": "'x'"}
	for _, column := range scalar[[]string](b, columns) {
		value, known := other[column]
		if !known {
			value = "'77'" // of every other column's type
		}
		b.exec("CREATE TABLE kept AS TABLE ration.audit")
		b.exec(fmt.Sprintf("UPDATE ration.audit SET %s = %s WHERE id = 2", column, value))
		if chain := b.verifyAudit(); chain.Fault != policy.AuditChanged || chain.Row != 2 || chain.Rows != 1 {
			t.Errorf("%s: %+v", column, chain)
		}
		b.exec(fmt.Sprintf("UPDATE ration.audit AS a SET %s = k.%[1]s FROM kept AS k WHERE a.id = k.id AND a.id = 2", column))
		b.exec("DROP TABLE kept")
	}
	if chain := b.verifyAudit(); chain.Fault != policy.AuditWhole || chain.Rows != 3 {
		t.Errorf("put back: %+v", chain)
	}
}

// Whoever gets past the triggers is found, and where.
func TestTamperingIsFound(t *testing.T) {
	t.Parallel()
	b := audited(t, 6)
	const rehash = "; UPDATE ration.audit AS a SET hash = ration.audit_hash_v1(a) WHERE id = "
	for name, test := range map[string]struct {
		sql   string
		fault policy.AuditFault
		row   int64
	}{
		"nothing":                     {"", policy.AuditWhole, 0},
		"changed":                     {"UPDATE ration.audit SET reason = 'other' WHERE id = 4", policy.AuditChanged, 4},
		"changed and hashed anew":     {"UPDATE ration.audit SET reason = 'other' WHERE id = 4" + rehash + "4", policy.AuditChanged, 4},
		"the first":                   {"UPDATE ration.audit SET reason = 'other' WHERE id = 1" + rehash + "1", policy.AuditChanged, 1},
		"the newest, and hashed anew": {"UPDATE ration.audit SET reason = 'other' WHERE id = 6" + rehash + "6", policy.AuditChanged, 6},
		"two exchanged": {
			"UPDATE ration.audit SET id = -id WHERE id IN (3, 4); UPDATE ration.audit SET id = 7 + id WHERE id < 0",
			policy.AuditChanged, 3,
		},
		"one taken out":    {"DELETE FROM ration.audit WHERE id = 3", policy.AuditMissing, 3},
		"some taken out":   {"DELETE FROM ration.audit WHERE id IN (3, 4)", policy.AuditMissing, 3},
		"the first out":    {"DELETE FROM ration.audit WHERE id = 1", policy.AuditMissing, 1},
		"closed behind it": {"DELETE FROM ration.audit WHERE id = 3; UPDATE ration.audit SET id = id - 1 WHERE id > 3", policy.AuditChanged, 3},
		"tail cut":         {"DELETE FROM ration.audit WHERE id > 4", policy.AuditCut, 5},
		"emptied":          {"DELETE FROM ration.audit", policy.AuditCut, 1},
		"one put behind": {
			"INSERT INTO ration.audit (id, at, actor, action, reason, request_id, previous, hash) SELECT 7, a.at, a.actor, a.action, 'put', '', a.hash, '' FROM ration.audit AS a WHERE id = 6" +
				rehash + "7", policy.AuditAdded, 7,
		},
		"headless": {"DELETE FROM ration.audit_head", policy.AuditHeadless, 6},
	} {
		tx, err := b.owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var fault *policy.AuditFault
		var row *int64
		if _, err = tx.Exec(t.Context(), "ALTER TABLE ration.audit DISABLE TRIGGER ALL; ALTER TABLE ration.audit_head DISABLE TRIGGER ALL; "+test.sql); err == nil {
			err = tx.QueryRow(t.Context(), "SELECT o_fault, o_row FROM ration.audit_verify_v1(0, '', 1000)").Scan(&fault, &row)
		}
		if err := errors.Join(err, tx.Rollback(t.Context())); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if fault == nil {
			fault, row = new(policy.AuditWhole), new(int64(0))
		}
		if *fault != test.fault || *row != test.row {
			t.Errorf("%s: %s at row %d, want %s at %d", name, *fault, *row, test.fault, test.row)
		}
	}
}

// A fault is found wherever pieces of the walk meet.
func TestVerifyingGoesOnPieceByPiece(t *testing.T) {
	t.Parallel()
	b := audited(t, 5)
	walk := func(rows int) (pieces int, fault *string) {
		after, hash, done := int64(0), []byte{}, false
		for !done && fault == nil {
			if err := b.owner.QueryRow(b.Context(), "SELECT o_last, o_hash, o_done, o_fault FROM ration.audit_verify_v1($1, $2, $3)", after, hash, rows).
				Scan(&after, &hash, &done, &fault); err != nil {
				t.Fatal(err)
			}
			pieces++
		}
		return pieces, fault
	}
	for rows, want := range map[int]int{1: 6, 2: 3, 3: 2, 5: 2, 6: 1} {
		if pieces, fault := walk(rows); pieces != want || fault != nil {
			t.Errorf("in pieces of %d rows: %d pieces, want %d; %v", rows, pieces, want, fault)
		}
	}
	b.exec("ALTER TABLE ration.audit DISABLE TRIGGER ALL")
	b.exec("DELETE FROM ration.audit WHERE id = 3")
	for rows := 1; rows <= 5; rows++ {
		if _, fault := walk(rows); fault == nil || *fault != "missing" {
			t.Errorf("in pieces of %d rows a missing row is %v", rows, fault)
		}
	}
	for _, rows := range []any{0, 10001, nil} {
		if _, err := b.owner.Exec(b.Context(), "SELECT ration.audit_verify_v1(0, '', $1)", rows); sqlState(err) != "RN004" {
			t.Errorf("%v rows: %v", rows, err)
		}
	}
}

// The owner has every privilege, and still is refused.
func TestTheAuditIsOnlyAddedTo(t *testing.T) {
	t.Parallel()
	b := audited(t, 2)
	mayNot(b, b.connect(b.db.OwnerURL()), "the owner",
		"UPDATE ration.audit SET reason = 'other'", "UPDATE ration.audit SET reason = 'other' WHERE false",
		"DELETE FROM ration.audit", "DELETE FROM ration.audit WHERE id = 2", "TRUNCATE ration.audit",
		"DELETE FROM ration.audit_head", "TRUNCATE ration.audit_head",
		"INSERT INTO ration.audit (id, at, actor, action, reason, request_id) VALUES (2, 1, '', '', '', '') ON CONFLICT (id) DO UPDATE SET reason = ''")
	// What a statement says of id, previous and hash counts for nothing.
	b.exec("INSERT INTO ration.audit (id, at, actor, action, reason, request_id, previous, hash) VALUES (77, 1, '', '', '', '', 'x', 'y')")
	if chain := b.verifyAudit(); chain.Fault != policy.AuditWhole || chain.Last != 3 {
		t.Errorf("%+v", chain)
	}
}

func TestPagesOfTheAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i, who := range []string{"ana", "bob", "ana", "ana", "bob"} {
		b.exec(appendAuditSQL+"('p', $1, $2, 'test.'||$3, '{\"n\": 1 }', 'because', 'r')", i, who, []string{"even", "odd"}[i%2])
	}
	for _, test := range []struct {
		query policy.AuditQuery
		want  string
	}{
		{policy.AuditQuery{Limit: 3}, "[5 4 3]"},
		{policy.AuditQuery{Limit: 3, After: 3}, "[2 1]"},
		{policy.AuditQuery{Limit: 3, Oldest: true}, "[1 2 3]"},
		{policy.AuditQuery{Limit: 3, Oldest: true, After: 3}, "[4 5]"},
		{policy.AuditQuery{Limit: 9, Actor: "ana"}, "[4 3 1]"},
		{policy.AuditQuery{Limit: 9, Actor: "ana", Action: "test.even"}, "[3 1]"},
		{policy.AuditQuery{Limit: 9, Actor: "ana", Action: "test.even", Policy: "p", After: 3}, "[1]"},
		{policy.AuditQuery{Limit: 9, Policy: "q"}, "[]"},
		{policy.AuditQuery{Limit: 9, Actor: "'; DROP TABLE ration.audit"}, "[]"},
	} {
		rows, err := b.store.Audit(t.Context(), test.query)
		if err != nil {
			t.Fatal(err)
		}
		ids := []int64{}
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
		if got := fmt.Sprint(ids); got != test.want {
			t.Errorf("%+v: %s, want %s", test.query, got, test.want)
		}
	}
	rows, err := b.store.Audit(t.Context(), policy.AuditQuery{Limit: 1, Oldest: true})
	if err != nil {
		t.Fatal(err)
	}
	rows[0].Hash = nil
	want := policy.AuditRow{ID: 1, Actor: "ana", Action: "test.even", Policy: "p", After: []byte(`{"n": 1 }`), Reason: "because", RequestID: "r", Previous: []byte{}}
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Error(diff)
	}
}

// A dump and its restore keep the chain, and it goes on.
func TestADumpKeepsTheChain(t *testing.T) {
	t.Parallel()
	skip.WithoutBinaries(t)
	found, err := devpg.Find(t.Context(), os.Getenv("RATION_PG_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	b := audited(t, 3)
	if server := scalar[int](b, "SELECT current_setting('server_version_num')::int / 10000"); server > found[0].Major {
		t.Skipf("the pg_dump of PostgreSQL %d cannot read version %d", found[0].Major, server)
	}
	run := func(in []byte, program string, arguments ...string) []byte {
		t.Helper()
		command := exec.CommandContext(t.Context(), filepath.Join(found[0].Dir, program), arguments...)
		command.Stdin, command.Stderr = bytes.NewReader(in), t.Output()
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		return out
	}
	restored := dbtest.Empty(t)
	run(run(nil, "pg_dump", b.db.OwnerURL()), "psql", "--quiet", "--set", "ON_ERROR_STOP=1", restored.OwnerURL())
	other := &bench{TB: t, db: restored, owner: restored.Owner()}
	other.exec("SELECT ration.configure_roles_v1()")
	other.store = open(t, restored)
	other.exec(appendAuditSQL + "(NULL, 1, 'ana', 'test.done', NULL, '', '')")
	if chain := other.verifyAudit(); chain.Fault != policy.AuditWhole || chain.Rows != 4 {
		t.Errorf("%+v", chain)
	}
}
