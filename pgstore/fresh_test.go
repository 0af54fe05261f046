package pgstore_test

import (
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/policy"
)

// TestFiguresOfAFreshKeyAreOfTheInstantThatDecided: a new key's row is
// inserted at one instant and the call goes on; at a fast refill the bucket
// would be full again by the time the answer is put together. On the
// database's own clock, since a test's would stand still.
func TestFiguresOfAFreshKeyAreOfTheInstantThatDecided(t *testing.T) {
	t.Parallel()
	b := benchOn(t, dbtest.New(t))
	change, err := policy.ParseChange([]byte(`{"match": {}, "per": ["account"],
		"limit": {"algorithm": "token_bucket", "capacity": 10, "refillTokens": 1000000, "refillSeconds": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	installed, _, err := b.store.Put(t.Context(), policy.Put{ID: "p", Change: change, Author: policy.Author{Actor: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	session := b.session()
	for key := range uint64(20) {
		batch := b.batch(installed, key)
		batch.NowMicros = 0
		batch.Asks[0].Count = 50
		var answers policy.Answers
		if err := session.TakeNew(t.Context(), policy.HoldWait, batch, &answers); err != nil {
			t.Fatal(err)
		}
		answer := answers.Asks[0]
		if answer.Admitted != 10 || answer.Remaining != 0 || answer.RetryAfterMicros != 1 || answer.ResetAfterMicros != 10 {
			t.Fatalf("50 callers of a fresh key of 10: %+v, want 10 admitted, nothing left, 1 µs to the next and 10 µs until full", answer)
		}
	}
}
