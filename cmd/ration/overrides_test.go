package main

import (
	"net/http"
	"testing"
	"time"
)

// An override is in force in the instance that was asked when it answers, in
// others a moment later, and ends in all by itself when the store's clock says
// so.
func TestOverridesReachEveryInstanceAndExpire(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	clock := newClock(t, db, time.Date(2026, time.November, 30, 6, 0, 0, 0, time.UTC))
	here, there := serve(t, db), serve(t, db)
	here.put(t, "p", slow("op", 2, ""), 0)
	does := func(method, path, body string, want int) {
		t.Helper()
		if status, _, content, err := here.call(method, here.admin+path, body); err != nil || status != want {
			t.Fatalf("%s %s: %d %s (%v)", method, path, status, content, err)
		}
	}
	const overrides = "/v1/policies/p/overrides?verifiedAccount="
	does(http.MethodPut, overrides+"A", `{"action":"blocked","reason":"why","expiresInSeconds":60}`, http.StatusCreated)
	does(http.MethodPut, overrides+"B", `{"action":"exempt","reason":"why"}`, http.StatusCreated)
	for range 3 {
		if a := here.mustAsk(t, request("op", "A")); a.Allowed || a.RetryAfterSeconds != nil || a.Header.Get("Retry-After") != "" {
			t.Errorf("blocked: %+v", a)
		}
		if a := here.mustAsk(t, request("op", "B")); !a.Allowed {
			t.Errorf("exempt: %+v", a)
		}
	}
	eventually(t, "the other instance blocks as well", func() bool {
		return !there.mustAsk(t, `{"verifiedAccount":"A","operation":"op","peek":true}`).Allowed
	})
	does(http.MethodPut, overrides+"B", `{"action":"blocked","reason":"why"}`, http.StatusOK)
	if here.mustAsk(t, request("op", "B")).Allowed {
		t.Error("an exemption that was replaced holds here")
	}
	does(http.MethodDelete, overrides+"B&reason=done", "", http.StatusNoContent)
	if a := here.mustAsk(t, request("op", "B")); !a.Allowed || a.Remaining != 1 {
		t.Errorf("no override any more: %+v", a)
	}
	does(http.MethodDelete, overrides+"B", "", http.StatusNotFound)
	clock.forward(time.Minute)
	for _, i := range []*instance{here, there} {
		eventually(t, "the override expires", func() bool {
			return i.mustAsk(t, `{"verifiedAccount":"A","operation":"op","peek":true}`).Allowed
		})
	}
}

// Under the kill switch nothing is denied, and what was used meanwhile counts
// when it is taken back.
func TestTheKillSwitchOverHTTP(t *testing.T) {
	t.Parallel()
	i := serve(t, newDatabase(t))
	i.put(t, "p", slow("op", 1, ""), 0)
	does := func(method, path, body string, want int) {
		t.Helper()
		if status, _, content, err := i.call(method, i.admin+path, body); err != nil || status != want {
			t.Fatalf("%s %s: %d %s (%v)", method, path, status, content, err)
		}
	}
	does(http.MethodPost, "/v1/kill-switch", `{"prefix":"p","forSeconds":600,"reason":"why"}`, http.StatusOK)
	for range 3 {
		if !i.mustAsk(t, request("op", "A")).Allowed {
			t.Error("denied under the kill switch")
		}
	}
	does(http.MethodDelete, "/v1/kill-switch?prefix=p", "", http.StatusNoContent)
	if i.mustAsk(t, request("op", "A")).Allowed {
		t.Error("what was used under the kill switch is forgotten")
	}
	does(http.MethodDelete, "/v1/kill-switch?prefix=p", "", http.StatusNotFound)
}
