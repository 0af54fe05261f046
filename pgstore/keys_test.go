package pgstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rationhq/ration/policy"
)

// account is the value of the key of a bench's policies.
func account(name string) *[policy.AttributeCount]string {
	values := new([policy.AttributeCount]string)
	values[policy.Account] = name
	return values
}

// ofAccount asks cost tokens of an account.
func ofAccount(of *policy.Installed, name string, cost int64) policy.Check {
	return policy.Check{Policy: of, Key: policy.KeyOf(of.ID, of.Spec, account(name)), Cost: cost, Priced: true}
}

// key looks at an account's state.
func (b *bench) key(id, name string, atMicros int64) *policy.KeyState {
	b.Helper()
	state, err := b.store.KeyAt(b.Context(), id, account(name), epochMicros+atMicros)
	if err != nil {
		b.Fatal(err)
	}
	return state
}

// resetKey sets an account's state.
func (b *bench) resetKey(id, name string, to policy.Start, release bool, atMicros int64) (*policy.KeyState, error) {
	b.Helper()
	return b.store.ResetKeyAt(b.Context(), policy.KeyReset{
		Author: policy.Author{Actor: "ann", Role: policy.Operator, RequestID: "r1"}, PolicyID: id, Values: *account(name), To: to, Release: release, Reason: "why",
	}, epochMicros+atMicros)
}

// A look at a key tells what the next decision finds, of every algorithm.
func TestAKeyIsSeenAsDecisionsFindIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for name, s := range algorithms(10) {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			id := name + "-" + s.durability.String()
			of := b.install(id, 0, s, 0)
			if state := b.key(id, "A", second); state.Stored || state.Remaining != 10 || state.ResetAfterMicros != 0 || state.SettledVersion != 0 {
				t.Errorf("%s: an absent key is %+v", id, state)
			}
			b.claim(session, second, claim(ofAccount(of, "A", 3)))
			peeked := b.claim(session, 2*second, policy.Claim{Peek: true, Checks: []policy.Check{ofAccount(of, "A", 1)}})[0].Parts[0]
			state := b.key(id, "A", 2*second)
			if !state.Stored || state.Remaining != 7 || state.Remaining != peeked.Remaining || state.ResetAfterMicros != peeked.ResetAfterMicros ||
				state.Limit != 10 || state.AheadMicros != 0 || state.AtMicros != epochMicros+2*second || state.Override != nil {
				t.Errorf("%s: seen %+v, a peek finds %+v", id, state, peeked)
			}
			wantVersion, wantSlots := 1, 0
			if s.algorithm == policy.Concurrency {
				wantVersion, wantSlots = 0, 1
			}
			if state.SettledVersion != wantVersion || len(state.Slots) != wantSlots {
				t.Errorf("%s: settled under version %d, %d slots", id, state.SettledVersion, len(state.Slots))
			}
		}
	}
	more := account("A")
	more[policy.User] = "u"
	for name, values := range map[string]*[policy.AttributeCount]string{"nothing": new([policy.AttributeCount]string), "more": more} {
		var known *policy.Error
		if _, err := b.store.KeyAt(t.Context(), "token_bucket-fast", values, epochMicros); !errors.As(err, &known) || known.Reason != policy.ReasonInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	var known *policy.Error
	if _, err := b.store.KeyAt(t.Context(), "unknown", account("A"), epochMicros); !errors.As(err, &known) || known.Reason != policy.ReasonNotFound {
		t.Errorf("an unknown policy: %v", err)
	}
}

// A reset makes a key full or empty, whether it is stored or not, and the next
// decision finds it so.
func TestAKeyIsResetFullOrEmpty(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	for name, s := range algorithms(10) {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			if s.algorithm == policy.Concurrency {
				continue
			}
			id := name + "-" + s.durability.String()
			of := b.install(id, 0, s, 0)
			for _, caller := range []string{"stored", "absent"} {
				if caller == "stored" {
					b.claim(session, second, claim(ofAccount(of, caller, 4)))
				}
				for i, to := range []policy.Start{policy.StartEmpty, policy.StartFull} {
					at, want := int64(3+i)*second, int64(10*i)
					state, err := b.resetKey(id, caller, to, false, at)
					if err != nil || state.Remaining != want || !state.Stored || (state.ResetAfterMicros == 0) != (want == 10) {
						t.Errorf("%s, %s: reset to %s: %+v, %v", id, caller, to, state, err)
					}
					peeked := b.claim(session, at, policy.Claim{Peek: true, Checks: []policy.Check{ofAccount(of, caller, 1)}})[0].Parts[0]
					if peeked.Remaining != want || peeked.Allowed != (want > 0) {
						t.Errorf("%s, %s: reset to %s, a peek finds %+v", id, caller, to, peeked)
					}
				}
			}
		}
	}
	const want = `ann operator bucket.reset {"attributes":{"account":"stored"},"remaining":6}`
	got := scalar[string](b, `SELECT format('%s %s %s %s', a.actor, a.role, a.action, replace(a.before::text, ' ', '')) FROM ration.audit AS a
		WHERE a.action = 'bucket.reset' AND a.policy = 'token_bucket-fast' AND (a.before ->> 'remaining') = '6'`)
	if got != want {
		t.Errorf("audit: %s, want %s", got, want)
	}
}

// Live slots are ended by explicit word only, and then their key is free.
func TestSlotsAreReleasedByExplicitWord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("slots", 0, shape{capacity: 3, seconds: "60", algorithm: policy.Concurrency}, 0)
	b.claim(session, second, claim(ofAccount(of, "A", 2)))
	before := b.stored()
	for _, to := range []policy.Start{policy.StartFull, policy.StartEmpty} {
		var known *policy.Error
		_, err := b.resetKey("slots", "A", to, false, 2*second)
		if !errors.As(err, &known) || to == policy.StartFull && known.Reason != policy.ReasonSlotsHeld || to == policy.StartEmpty && known.Code != policy.CodeInvalid {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if after := b.stored(); after != before {
		t.Errorf("a refused reset changed\n%s\nto\n%s", before, after)
	}
	state, err := b.resetKey("slots", "A", policy.StartFull, true, 2*second)
	if err != nil || state.Remaining != 3 || len(state.Slots) != 0 {
		t.Errorf("%+v, %v", state, err)
	}
	if n := scalar[int](b, `SELECT (a.after ->> 'released')::int FROM ration.audit AS a WHERE a.action = 'bucket.reset'`); n != 1 {
		t.Errorf("the audit says that %d slots were released", n)
	}
}

// Of a reset and calls that meet in one row nothing is lost: after them the key
// holds what it was set to, less what was admitted behind it.
func TestAResetAndCallsMeetInOneRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	of := b.install("p", 0, shape{capacity: 1000}, 0)
	session := b.session()
	done := make(chan int64)
	go func() {
		var admitted int64
		for range 50 {
			if b.claim(session, second, claim(ofAccount(of, "A", 1)))[0].Allowed {
				admitted++
			}
		}
		done <- admitted
	}()
	for range 10 {
		if _, err := b.resetKey("p", "A", policy.StartFull, false, second); err != nil {
			t.Error(err)
		}
	}
	if admitted := <-done; admitted != 50 {
		t.Errorf("%d of 50 were admitted", admitted)
	}
	if left := b.key("p", "A", second).Remaining; left < 950 || left > 1000 {
		t.Errorf("%d are left", left)
	}
}

// All keys of a policy are listed once, page after page.
func TestKeysAreListedInPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	const keys = 7
	for name, s := range algorithms(10) {
		of, other := b.install(name, 0, s, 0), b.install("other-"+name, 0, s, 0)
		for n := range keys {
			b.claim(session, second, claim(ofAccount(of, fmt.Sprint(n), 1)), claim(ofAccount(other, fmt.Sprint(n), 1)))
		}
		seen := map[policy.Key]bool{}
		var after policy.Key
		for more := true; more; {
			var page []*policy.KeyState
			var err error
			page, after, more, err = b.store.Keys(t.Context(), name, after, 3)
			if err != nil || len(page) > 3 {
				t.Fatalf("%s: %d keys, %v", name, len(page), err)
			}
			for _, state := range page {
				if seen[state.Key] || !state.Stored {
					t.Errorf("%s: %+v", name, state)
				}
				seen[state.Key] = true
			}
		}
		for n := range keys {
			if !seen[policy.KeyOf(of.ID, of.Spec, account(fmt.Sprint(n)))] {
				t.Errorf("%s: key %d is not listed", name, n)
			}
		}
		if len(seen) != keys {
			t.Errorf("%s: %d keys are listed", name, len(seen))
		}
	}
}

// What a clock left ahead is set to now, in all tables and in the policies, and
// nothing else is touched.
func TestWhatIsAheadOfTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	const ahead = 100 * 24 * hour
	shapes := algorithms(10)
	shapes["token_bucket"] = shape{capacity: 10, tokens: "1", seconds: "1"}
	for name, s := range shapes {
		for _, s.durability = range []policy.Durability{policy.Fast, policy.Durable} {
			of := b.install(name+"-"+s.durability.String(), 0, s, 0)
			b.claim(session, second, claim(ofAccount(of, "now", 4)))
			b.claim(session, ahead, claim(ofAccount(of, "ahead", 4)))
		}
	}
	b.install("late", 0, shape{capacity: 5}, ahead)
	rebase := policy.Rebase{Author: policy.Author{Actor: "ann", Role: policy.Operator}, Reason: "the clock stepped"}
	n, next, err := b.store.RebaseAt(t.Context(), rebase, epochMicros+2*second)
	if err != nil || next != nil || n != len(shapes)*2+1 {
		t.Errorf("%d were set back, next %v, %v", n, next, err)
	}
	for name, s := range shapes {
		for _, durability := range []policy.Durability{policy.Fast, policy.Durable} {
			id := name + "-" + durability.String()
			state := b.key(id, "ahead", 2*second)
			if state.AheadMicros != 0 || state.Remaining != 6 {
				t.Errorf("%s: %+v", id, state)
			}
			if state := b.key(id, "ahead", 4*second); s.algorithm == policy.TokenBucket && state.Remaining != 8 {
				t.Errorf("%s: two seconds later %+v", id, state)
			}
		}
	}
	if n, _, err := b.store.RebaseAt(t.Context(), rebase, epochMicros+2*second); n != 0 || err != nil {
		t.Errorf("again: %d were set back, %v", n, err)
	}
	if rows := scalar[int](b, `SELECT sum((a.after ->> 'rows')::int) FROM ration.audit AS a WHERE a.action = 'bucket.rebased'`); rows != n {
		t.Errorf("the audit tells of %d rows, want %d", rows, n)
	}
}
