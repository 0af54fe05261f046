package main

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// limits are one of each algorithm. The clock stands still, so that none of
// them gives anything back.
var limits = map[string]string{
	"bucket":  `{"algorithm":"token_bucket","capacity":%d,"refillTokens":1,"refillSeconds":1}`,
	"fixed":   `{"algorithm":"fixed_window","limit":%d,"windowSeconds":60}`,
	"counter": `{"algorithm":"sliding_window_counter","limit":%d,"windowSeconds":60}`,
	"strict":  `{"algorithm":"sliding_window_counter","limit":%d,"windowSeconds":60,"strict":true}`,
	"log":     `{"algorithm":"sliding_window_log","limit":%d,"windowSeconds":60}`,
	"slots":   `{"algorithm":"concurrency","limit":%d,"ttlSeconds":60}`,
}

// Crowds ask through two instances at once, with operation ids and without:
// exactly the limit is allowed, of whatever algorithm. A request of several
// policies gets what the least of them allows, and takes no more than that
// from the others.
func TestCrowdsThroughTwoInstances(t *testing.T) {
	t.Parallel()
	const limit, roomy = 7, 20
	db := newDatabase(t)
	newClock(t, db, time.Date(2026, time.November, 30, 6, 0, 0, 0, time.UTC))
	instances := []*instance{serve(t, db), serve(t, db)}
	put := func(id, operation, limit string) {
		instances[0].put(t, id, fmt.Sprintf(`{"match":{"operations":[%q]},"per":["account"],"limit":%s}`, operation, limit), 0)
	}
	operations, left := []string{"all"}, map[string]int64{"least": 0}
	for name, form := range limits {
		operations = append(operations, name)
		put(name, name, fmt.Sprintf(form, limit))
		put("all-"+name, "all", fmt.Sprintf(form, roomy))
		left[name], left["all-"+name] = 0, roomy-limit
	}
	put("least", "all", fmt.Sprintf(limits["bucket"], limit))
	eventually(t, "both instances have the policies", func() bool {
		return instances[1].metric(t, `ration_policy_version{policy="least"}`) == "1"
	})

	bodies := map[string]func(operation string, caller int) string{ // by account
		"plain": func(operation string, _ int) string { return request(operation, "plain") },
		"named": func(operation string, caller int) string {
			return fmt.Sprintf(`{"verifiedAccount":"named","operation":%q,"operationId":"%s-%d"}`, operation, operation, caller)
		},
	}
	var crowds sync.WaitGroup
	for account, body := range bodies {
		for _, operation := range operations {
			crowds.Go(func() {
				allowed := crowd(t, instances, func(caller int) string { return body(operation, caller) })
				if allowed != limit {
					t.Errorf("%d of the crowd of %s, %s, are allowed; the limit is %d", allowed, operation, account, limit)
				}
			})
		}
	}
	crowds.Wait()
	for account := range bodies {
		if got := remaining(t, instances[1].client, account); !maps.Equal(got, left) {
			t.Errorf("%s has %v left, want %v", account, got, left)
		}
	}
}

// crowd asks at once through all instances, and gives how many are allowed.
func crowd(t *testing.T, instances []*instance, body func(caller int) string) int32 {
	t.Helper()
	const callers = 30
	var allowed atomic.Int32
	var asking sync.WaitGroup
	for caller := range callers {
		asking.Go(func() {
			a, err := instances[caller%len(instances)].ask(body(caller))
			switch {
			case err != nil:
				t.Error(err)
			case a.Status == http.StatusOK:
				allowed.Add(1)
			case a.Status != http.StatusTooManyRequests:
				t.Errorf("%s: %d %s %s", body(caller), a.Status, a.Type, a.Detail)
			}
		})
	}
	asking.Wait()
	return allowed.Load()
}
