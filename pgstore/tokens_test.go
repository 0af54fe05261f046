package pgstore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// tokenOf is a token that is still to be made.
func tokenOf(caller policy.Caller) policy.Token {
	return policy.Token{Caller: caller, Hash: sha256.Sum256([]byte(caller.Name))}
}

// openOwner opens the store as the command line does, as the owner.
func openOwner(t *testing.T, db *dbtest.DB) *pgstore.Store {
	t.Helper()
	store, err := pgstore.Open(t.Context(), pgstore.Config{URL: db.OwnerURL(), CallTimeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func TestTokensLetInUntilTheyEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	owner, ctx := openOwner(t, b.db), t.Context()
	create := func(caller policy.Caller, life time.Duration) policy.Token {
		t.Helper()
		token, err := owner.CreateToken(ctx, tokenOf(caller), life, "why")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	gateway := &policy.Gateway{Name: "edge", Scope: policy.GatewayScope{policy.Account: {"acme", "b-*"}}}
	admin := create(policy.Caller{Name: "ann", Role: policy.Admin}, 0)
	edge := create(policy.Caller{Name: "edge", Gateway: gateway}, time.Hour)
	brief := create(policy.Caller{Name: "brief", Role: policy.Viewer}, time.Microsecond)
	revoked := create(policy.Caller{Name: "gone", Role: policy.Viewer}, 0)
	if done, err := owner.RevokeToken(ctx, revoked.ID, "lost"); !done || err != nil {
		t.Errorf("revoked: %v, %v", done, err)
	}
	if done, err := owner.RevokeToken(ctx, revoked.ID, "lost"); done || err != nil {
		t.Errorf("revoked again: %v, %v", done, err)
	}
	_, err := owner.RevokeToken(ctx, 4711, "")
	if missing, ok := errors.AsType[*policy.Error](err); !ok || missing.Code != policy.CodeNotFound {
		t.Errorf("a token that is none: %v", err)
	}

	usable, now, err := b.store.Tokens(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policy.Token{admin, edge}, usable); diff != "" {
		t.Errorf("what lets in (-want +got):\n%s", diff)
	}
	if edge.ExpiresAtMicros != edge.CreatedAtMicros+time.Hour.Microseconds() || now < edge.CreatedAtMicros || admin.ExpiresAtMicros != 0 {
		t.Errorf("at %d: %+v %+v", now, admin, edge)
	}
	all, err := owner.ListTokens(ctx)
	if err != nil || len(all) != 4 || all[2].ID != brief.ID || all[3].RevokedAtMicros == 0 || all[0].Hash != [32]byte{} {
		t.Errorf("all there were: %+v, %v", all, err)
	}
	var actions []string
	rows, err := b.owner.Query(ctx, `SELECT a.action || ' ' || (coalesce(a.after, a.before) ->> 'name') || ' ' || a.reason
		FROM ration.audit AS a WHERE a.actor = session_user ORDER BY a.id`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var action string
		if err := rows.Scan(&action); err != nil {
			t.Fatal(err)
		}
		actions = append(actions, action)
	}
	want := []string{"token.created ann why", "token.created edge why", "token.created brief why", "token.created gone why", "token.revoked gone lost"}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
}

func TestTokensAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(`INSERT INTO ration.token (name, role, secret, created_at, created_by)
		SELECT 'n', 'viewer', sha256(i::text::bytea), 1, 'x' FROM generate_series(1, 10000) AS i`)
	_, err := openOwner(t, b.db).CreateToken(t.Context(), tokenOf(policy.Caller{Name: "n", Role: policy.Viewer}), 0, "")
	if full, ok := errors.AsType[*policy.Error](err); !ok || full.Reason != policy.ReasonOverloaded {
		t.Errorf("one more: %v", err)
	}
}

// A scope that was made by hand and cannot be read allows nothing, and keeps
// nobody else out.
func TestAnUnreadableScopeAllowsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(`SELECT ration.create_token_v1('edge', NULL, '{"accounts": "all"}', sha256('a'), NULL, 'x', '')`)
	b.exec(`SELECT ration.create_token_v1('ann', 'admin', NULL, sha256('b'), NULL, 'x', '')`)
	tokens, _, err := b.store.Tokens(t.Context())
	if err != nil || len(tokens) != 2 || tokens[0].Caller != (policy.Caller{Name: "edge"}) || tokens[1].Caller.Role != policy.Admin {
		t.Errorf("%+v, %v", tokens, err)
	}
}

func TestTokensAreTheOwnersToMake(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const create = `SELECT ration.create_token_v1('ann', 'admin', NULL, sha256('a'), NULL, 'x', '')`
	const revoke, list = `SELECT ration.revoke_token_v1(1, '')`, `SELECT id, name, revoked_at FROM ration.token`
	const secrets, write = `SELECT secret FROM ration.token`, `UPDATE ration.token SET revoked_at = NULL`
	mayNot(b, b.service(), "ration_service", create, revoke, write)
	may(b, b.service(), "ration_service", secrets)
	mayNot(b, b.as("ration_operator"), "ration_operator", create, secrets, write)
	may(b, b.as("ration_operator"), "ration_operator", revoke, list)
	mayNot(b, b.as("ration_reader"), "ration_reader", create, revoke, list)

	// Who tries is told whose it is.
	_, createErr := b.store.CreateToken(t.Context(), tokenOf(policy.Caller{Name: "ann", Role: policy.Admin}), 0, "")
	_, revokeErr := b.store.RevokeToken(t.Context(), 1, "")
	for _, err := range []error{createErr, revokeErr} {
		if refused, ok := errors.AsType[*policy.Error](err); !ok || refused.Code != policy.CodeForbidden || !strings.Contains(refused.Detail, "schema's owner") {
			t.Errorf("the service's role: %v", err)
		}
	}
}

// Every instance is told of a token at once.
func TestTokensAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), changeMax)
	defer cancel()
	told, ended := make(chan struct{}, 10), make(chan error, 1)
	go func() {
		ended <- b.store.Listen(ctx, slog.New(slog.DiscardHandler), func() {}, func() { told <- struct{}{} })
	}()
	hear := func(of string) {
		t.Helper()
		select {
		case <-told:
		case <-ctx.Done():
			t.Fatalf("nobody was told of %s", of)
		}
	}
	hear("the beginning")
	owner := openOwner(t, b.db)
	token, err := owner.CreateToken(ctx, tokenOf(policy.Caller{Name: "ann", Role: policy.Admin}), 0, "")
	if err != nil {
		t.Fatal(err)
	}
	hear("a new token")
	if _, err := owner.RevokeToken(ctx, token.ID, ""); err != nil {
		t.Fatal(err)
	}
	hear("its end")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
