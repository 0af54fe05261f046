package limiter

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rationhq/ration/policy"
)

func TestHeldKeysAreBoundedAndForgotten(t *testing.T) {
	t.Parallel()
	key := func(n uint64) (k policy.Key) {
		binary.BigEndian.PutUint64(k[:], n)
		return k
	}
	var h heldKeys
	now := time.Unix(1_000_000, 0)
	is := func(n uint64, at time.Time, apart, quiet bool) {
		t.Helper()
		if gotApart, gotQuiet := h.look(key(n), at); gotApart != apart || gotQuiet != quiet {
			t.Errorf("key %d: apart %t, quiet %t; want %t, %t", n, gotApart, gotQuiet, apart, quiet)
		}
	}
	is(0, now, false, false)
	h.seen(key(0), now)
	h.suspect(key(0), now) // known better already
	is(0, now.Add(heldQuiet-1), true, true)
	is(0, now.Add(heldQuiet), true, false)
	is(0, now.Add(heldMemory-1), true, false)
	is(0, now.Add(heldMemory), false, false)
	if len(h.keys) != 0 {
		t.Error("a key whose time is up stays")
	}
	h.suspect(key(1), now)
	is(1, now, true, false)
	h.forget(key(1))
	is(1, now, false, false)
	for n := range uint64(2 * heldKeysMax) {
		h.seen(key(n), now.Add(time.Duration(n)))
		h.suspect(key(n+heldKeysMax*10), now)
	}
	if len(h.keys) != heldKeysMax {
		t.Errorf("%d keys are remembered, want %d", len(h.keys), heldKeysMax)
	}
	is(heldKeysMax-1, now, false, false) // the oldest ones made room
	is(2*heldKeysMax-1, now, true, true)
}
