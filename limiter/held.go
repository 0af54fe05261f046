package limiter

import (
	"context"
	"time"

	"github.com/rationhq/ration/policy"
)

// heldQuiet is how long nobody asks the store for a key that was seen held:
// most holds are over sooner, and a hold by hand lasts longer than any caller
// waits.
const heldQuiet = 500 * time.Millisecond

// heldMemory is how long after it was last seen held a key is asked apart from
// its neighbours: well beyond heldQuiet, so that a key that is asked now and
// then is not discovered anew each time.
const heldMemory = 10 * time.Second

// heldKeysMax bounds what a lane remembers, to about 100 KiB: as many keys
// as the largest batch can find held at once.
const heldKeysMax = BatchAsksBound

// heldKey is what a lane remembers of a key.
type heldKey struct {
	quietUntil time.Time // until then its callers are answered without a call
	forgetAt   time.Time // until then it is asked apart
}

// heldKeys are the keys of a lane whose rows others hold, as far as it has
// seen. The zero value knows none.
type heldKeys struct {
	keys map[policy.Key]heldKey
}

// seen remembers a key that was found held. Where there is no room, the one
// that would be forgotten first makes some.
func (h *heldKeys) seen(key policy.Key, now time.Time) {
	if _, known := h.keys[key]; !known && len(h.keys) == heldKeysMax {
		h.makeRoom()
	}
	h.put(key, heldKey{quietUntil: now.Add(heldQuiet), forgetAt: now.Add(heldMemory)})
}

// suspect remembers a key of a batch that ran into its bound, when there was
// no time left to find out which of them it was. It is asked apart, and at
// once. What is known stays, and is not pushed out.
func (h *heldKeys) suspect(key policy.Key, now time.Time) {
	if _, known := h.keys[key]; !known && len(h.keys) < heldKeysMax {
		h.put(key, heldKey{quietUntil: now, forgetAt: now.Add(heldMemory)})
	}
}

func (h *heldKeys) put(key policy.Key, held heldKey) {
	if h.keys == nil {
		h.keys = make(map[policy.Key]heldKey)
	}
	h.keys[key] = held
}

// forget is for a key that was decided.
func (h *heldKeys) forget(key policy.Key) { delete(h.keys, key) }

// makeRoom forgets the key whose time is up first.
func (h *heldKeys) makeRoom() {
	var first policy.Key
	var at time.Time
	for key, held := range h.keys {
		if at.IsZero() || held.forgetAt.Before(at) {
			first, at = key, held.forgetAt
		}
	}
	delete(h.keys, first)
}

// look says whether a key has to be asked apart, and whether it is not to be
// asked at all yet.
func (h *heldKeys) look(key policy.Key, now time.Time) (apart, quiet bool) {
	held, known := h.keys[key]
	if !known {
		return false, false
	}
	if !now.Before(held.forgetAt) {
		delete(h.keys, key)
		return false, false
	}
	return true, now.Before(held.quietUntil)
}

// isApart says whether a group is asked apart from its neighbours: because its
// keys together were seen held, or one of them may be.
func (h *heldKeys) isApart(g *group, now time.Time) bool {
	apart, _ := h.look(g.name(), now)
	for key := range g.keys {
		held, _ := h.look(key, now)
		apart = apart || held
	}
	return apart
}

// setApart answers the callers of quiet keys, and gives the other groups: those
// of keys that may still be held apart from their neighbours. Peeks go with
// the neighbours, since they lock nothing.
func (l *lane) setApart(groups []group) (neighbours, held []group) {
	if len(l.held.keys) == 0 {
		return groups, nil
	}
	now := time.Now()
	neighbours, held = groups[:0], l.apart[:0]
	for i := range groups {
		_, quiet := l.held.look(groups[i].name(), now)
		switch {
		case !groups[i].charges() || !l.held.isApart(&groups[i], now):
			neighbours = append(neighbours, groups[i])
		case quiet:
			l.fail(groups[i:i+1], errHeld())
		default:
			held = append(held, groups[i])
		}
	}
	l.apart = held
	return neighbours, held
}

// decideHeld decides groups whose keys were seen held. It waits for at most one
// of them: those behind it that may be held as well are so for this time, and
// asked again by the next.
func (l *lane) decideHeld(ctx context.Context, groups []group) {
	rest := l.attempt(ctx, skippingHeld, groups)
	waited := false
	for i := range rest {
		if waited && l.held.isApart(&rest[i], time.Now()) {
			l.fail(rest[i:i+1], errHeld())
			continue
		}
		l.failHeld(l.attempt(ctx, alone, rest[i:i+1]))
		waited = waited || l.held.isApart(&rest[i], time.Now())
	}
}
