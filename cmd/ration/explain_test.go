package main

import (
	"encoding/json"
	"net/http"
	"testing"
)

// explanation is what a test reads of one.
type explanation struct {
	Allowed  bool
	Policies []struct {
		Policy, Standing, Key string
		Remaining             int64
		AllowedAt             string
	}
	NotMatching []struct{ Policy, Field, Value string }
}

// What is explained is what is decided: the key is the one that SQL gives, the
// balance the one that a decision has left, an override is told of, and nothing
// is taken by asking.
func TestExplainThroughHTTP(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	i := serve(t, db)
	put := func(path, body string) {
		t.Helper()
		if status, _, content, err := i.call(http.MethodPut, i.admin+path, body, "If-None-Match", "*"); err != nil || status/100 != 2 {
			t.Fatalf("put %s: %d %s %v", path, status, content, err)
		}
	}
	const limit = `"limit":{"algorithm":"token_bucket","capacity":10,"refillTokens":1,"refillSeconds":86400}}`
	put("/v1/policies/reports", `{"match":{"operations":["report.*"]},"per":["account"],`+limit)
	put("/v1/policies/searches", `{"match":{"operations":["search.*"]},"per":["account"],`+limit)
	const request = `{"verifiedAccount":"A","operation":"report.read"}`
	explain := func() explanation {
		t.Helper()
		status, _, content, err := i.call(http.MethodPost, i.admin+"/v1/explain", request)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, content, err)
		}
		var e explanation
		if err := json.Unmarshal(content, &e); err != nil || len(e.Policies) != 1 || len(e.NotMatching) != 1 {
			t.Fatalf("%v: %s", err, content)
		}
		return e
	}
	for left := int64(9); left >= 8; left-- {
		if got := i.mustAsk(t, request); !got.Allowed || got.Remaining != left {
			t.Fatalf("decided %+v", got)
		}
		for range 2 {
			e := explain()
			if p := e.Policies[0]; !e.Allowed || p.Policy != "reports" || p.Standing != "checked" || p.Remaining != left || p.AllowedAt == "" {
				t.Errorf("explained %+v, want %d left", e, left)
			}
			if o := e.NotMatching[0]; o.Policy != "searches" || o.Field != "operations" || o.Value != "report.read" {
				t.Errorf("does not match: %+v", o)
			}
		}
	}
	var key string
	if err := db.Owner().QueryRow(t.Context(), `SELECT replace(ration.bucket_key('reports', '{"account":"A"}')::text, '-', '')`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	if got := explain().Policies[0].Key; got != key {
		t.Errorf("key %s, in SQL %s", got, key)
	}

	put("/v1/policies/reports/overrides?verifiedAccount=A", `{"action":"blocked","reason":"test"}`)
	if e := explain(); e.Allowed || e.Policies[0].Standing != "blocked" {
		t.Errorf("explained %+v, want it blocked", e)
	}
	if got := i.mustAsk(t, request); got.Allowed {
		t.Error("a blocked key was allowed")
	}
}
