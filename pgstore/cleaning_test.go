package pgstore_test

import (
	"sync"
	"testing"

	"github.com/rationhq/ration/policy"
)

// Every window is one window, also where the cleaner takes its row the moment
// it is over, between the look at it and the charge.
func TestTheCleanerRacesTheEndOfWindows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	const windows, asks = 20, 20
	for name, algorithm := range map[string]policy.Algorithm{"fixed": policy.FixedWindow, "log": policy.SlidingWindowLog} {
		of := b.install(name, 0, shape{capacity: 5, seconds: "1", algorithm: algorithm}, 0)
		allowed, cleaned := 0, 0
		for turn := range int64(windows * asks) {
			now := turn * second / asks
			var cleaner sync.WaitGroup
			if turn%asks == 0 {
				cleaner.Go(func() {
					n, err := b.store.Clean(t.Context(), 0, epochMicros+now)
					if err != nil {
						t.Error(err)
					}
					cleaned += n
				})
			}
			if b.claim(session, now, claim(check(of, 1, 5)))[0].Allowed {
				allowed++
			}
			cleaner.Wait()
		}
		if allowed != windows {
			t.Errorf("%s: %d allowed in %d windows", name, allowed, windows)
		}
		if n := scalar[int](b, "SELECT count(*) FROM ration.window_fast WHERE policy = $1 AND start > $2", of.Number, epochMicros+windows*second); n != 0 {
			t.Errorf("%s: a row is of a window to come", name)
		}
		t.Logf("%s: %d rows were cleaned meanwhile", name, cleaned)
	}
}

// A round takes everything that no answer changes without, and nothing else.
func TestARoundOfCleaningCoversEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	const keys = 600 // more than one stretch
	var all []*policy.Installed
	for name, s := range algorithms(10) {
		if s.seconds != "" {
			s.seconds = "10"
		} else {
			s.tokens, s.seconds = "10", "10"
		}
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			all = append(all, b.install(name+"-"+s.durability.String(), 0, s, 0))
		}
	}
	for _, of := range all {
		claims := b.claims(second)
		for key := range uint64(keys) {
			claims.Claims = append(claims.Claims, claim(check(of, key, 1)))
		}
		claims.Claims[0] = operating(of.ID, claims.Claims[0].Checks...)
		if _, err := decideClaims(session, claims); err != nil {
			t.Fatal(err)
		}
	}
	before := b.stored()
	if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second); err != nil || deleted != 0 || b.stored() != before {
		t.Errorf("%d deleted while everything counts, %v", deleted, err)
	}
	// State is over before outcomes are: twelve policies' keys, of two of which slots stand beside their parents.
	if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+60*second); err != nil || deleted != 14*keys {
		t.Errorf("%d deleted, %v, want %d", deleted, err, 14*keys)
	}
	if n := scalar[int](b, "SELECT count(*) FROM ration.operation"); n != len(all) {
		t.Errorf("%d outcomes are left, want %d", n, len(all))
	}
	if deleted, err := b.store.Clean(t.Context(), 0, epochMicros+second+retention+1); err != nil || deleted != len(all) {
		t.Errorf("%d deleted, %v, want the %d outcomes", deleted, err, len(all))
	}
	if rows := b.stored(); rows != "" {
		t.Errorf("left: %s", rows)
	}
}
