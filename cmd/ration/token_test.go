package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
)

// serveKnown runs `ration serve` as it is by default: callers say who they are.
func serveKnown(t *testing.T, db *dbtest.DB) *instance {
	t.Helper()
	return start(t, append(patient(), "RATION_DATABASE_URL="+db.ServiceURL()), "serve")
}

// makeToken gives a new token of a database.
func makeToken(t *testing.T, db *dbtest.DB, arguments ...string) string {
	t.Helper()
	code, out, errs := command(t, []string{"RATION_DATABASE_URL=" + db.OwnerURL()}, "", append([]string{"token", "create"}, arguments...)...)
	if code != exitDone || !strings.HasPrefix(out, "rat_") || strings.Count(out, "\n") != 1 {
		t.Fatalf("token create %v: %d %q %s", arguments, code, out, errs)
	}
	return strings.TrimSpace(out)
}

// as makes a call with a bearer token and gives its status.
func (i *instance) as(t *testing.T, token, method, url, body string, headers ...string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Content-Type", "application/json")
	for n := 0; n < len(headers); n += 2 {
		request.Header.Set(headers[n], headers[n+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// The whole way: tokens are made while the service runs, let in to what they
// are for, and are revoked.
func TestTokensOpenTheDoor(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := serveKnown(t, db)
	decide := i.decisions + "/internal/rate-decisions"
	expect := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	expect("nobody on the admin listener", i.as(t, "", http.MethodGet, i.admin+"/v1/policies", ""), http.StatusUnauthorized)
	expect("nobody on the decision listener", i.as(t, "", http.MethodPost, decide, request("a", "A")), http.StatusUnauthorized)

	admin, viewer := makeToken(t, db, "ann", "--role", "admin"), makeToken(t, db, "vera", "--role", "viewer")
	gateway := makeToken(t, db, "edge", "--gateway", "--operation", "a", "--account", "A*")
	eventually(t, "the admin is known", func() bool {
		return i.as(t, admin, http.MethodGet, i.admin+"/v1/policies", "") == http.StatusOK
	})
	eventually(t, "the gateway is known", func() bool {
		return i.as(t, gateway, http.MethodPost, decide, request("a", "A")) != http.StatusUnauthorized
	})
	put := func(token string) int {
		return i.as(t, token, http.MethodPut, i.admin+"/v1/policies/p", slow("a", 10, ""), "If-None-Match", "*")
	}
	expect("a viewer changes a policy", put(viewer), http.StatusForbidden)
	expect("a gateway changes a policy", put(gateway), http.StatusForbidden)
	expect("an admin changes a policy", put(admin), http.StatusCreated)
	expect("a gateway within its scope", i.as(t, gateway, http.MethodPost, decide, request("a", "A1")), http.StatusOK)
	expect("a gateway beyond it", i.as(t, gateway, http.MethodPost, decide, request("a", "B")), http.StatusForbidden)
	expect("an admin on the decision listener", i.as(t, admin, http.MethodPost, decide, request("a", "A")), http.StatusForbidden)

	var actor, role string
	if err := db.Owner().QueryRow(t.Context(), `SELECT a.actor, a.role FROM ration.audit AS a WHERE a.action = 'policy.created'`).
		Scan(&actor, &role); err != nil || actor != "ann" || role != "admin" {
		t.Errorf("the audit says %q %q (%v)", actor, role, err)
	}

	code, out, errs := command(t, []string{"RATION_DATABASE_URL=" + db.OwnerURL()}, "", "token", "revoke", strings.Split(admin, "_")[1], "--reason", "lost")
	if code != exitDone {
		t.Fatalf("revoke: %d %s %s", code, out, errs)
	}
	eventually(t, "the admin is known no more", func() bool {
		return i.as(t, admin, http.MethodGet, i.admin+"/v1/policies", "") == http.StatusUnauthorized
	})
	expect("another one", i.as(t, viewer, http.MethodGet, i.admin+"/v1/policies", ""), http.StatusOK)
}

func TestTokenCommands(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	environ := []string{"RATION_DATABASE_URL=" + db.OwnerURL()}
	for arguments, want := range map[string]string{
		"ann":                             "--role",
		"ann --role admin --gateway":      "--role",
		"ann --role root":                 "viewer, operator or admin",
		"ann --role admin --account A":    "a gateway's",
		"a/n --role admin":                "not a name",
		"ann --role admin --expires-in 1": "expires-in",
		"edge --gateway --account a*b":    "/accounts/0",
		"ann --role viewer -o yaml":       "text or json",
	} {
		code, out, errs := command(t, environ, "", append([]string{"token", "create"}, strings.Fields(arguments)...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("token create %s: %d %q %s", arguments, code, out, errs)
		}
	}
	secret := makeToken(t, db, "ann", "--role", "operator", "--expires-in", "1h")
	makeToken(t, db, "edge", "--gateway", "--region", "eu")
	_, text, _ := command(t, environ, "", "token", "list")
	for _, want := range []string{"ann", "operator", "until 20", "gateway, regions eu", "until revoked"} {
		if !strings.Contains(text, want) {
			t.Errorf("token list does not say %q:\n%s", want, text)
		}
	}
	_, all, _ := command(t, environ, "", "token", "list", "-o", "json")
	var listed struct{ Tokens []tokenRow }
	if err := json.Unmarshal([]byte(all), &listed); err != nil || len(listed.Tokens) != 2 || listed.Tokens[1].Gateway == nil {
		t.Errorf("%s (%v)", all, err)
	}
	if strings.Contains(text+all, strings.Split(secret, "_")[2]) {
		t.Error("a secret is shown twice")
	}
	for _, again := range []string{"revoked\n", "before\n"} {
		if _, out, errs := command(t, environ, "", "token", "revoke", "1"); !strings.HasSuffix(out, again) {
			t.Errorf("revoke: %q %s", out, errs)
		}
	}
	if code, _, errs := command(t, environ, "", "token", "revoke", "4711"); code != exitFailed || !strings.Contains(errs, "no such token") {
		t.Errorf("revoke none: %d %s", code, errs)
	}
	if code, _, _ := command(t, environ, "", "token", "revoke", secret); code != exitUsage {
		t.Errorf("revoke by the secret: %d", code)
	}
}
