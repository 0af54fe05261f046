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
	guessed    bool      // nobody was seen to hold it: a call with it took too long
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

// suspect remembers a key of several of which one was found held. It is asked
// apart, and at once.
func (h *heldKeys) suspect(key policy.Key, now time.Time) {
	h.add(key, heldKey{quietUntil: now, forgetAt: now.Add(heldMemory)})
}

// guess remembers a key of a batch that ran into its bound, when there was no
// time left to find out whether any was held. It is asked as a suspect is.
func (h *heldKeys) guess(key policy.Key, now time.Time) {
	h.add(key, heldKey{quietUntil: now, forgetAt: now.Add(heldMemory), guessed: true})
}

// add remembers a key where there is room. What is known stays.
func (h *heldKeys) add(key policy.Key, held heldKey) {
	before, known := h.keys[key]
	if known && before.guessed || !known && len(h.keys) < heldKeysMax {
		h.put(key, held)
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

// forgetGuess is for a key of a claim that was decided without its row.
func (h *heldKeys) forgetGuess(key policy.Key) {
	if h.keys[key].guessed {
		delete(h.keys, key)
	}
}

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

// isQuiet says whether a group's keys together were seen held just now.
func (h *heldKeys) isQuiet(g *group, now time.Time) bool {
	_, quiet := h.look(g.name(), now)
	return quiet
}

// setApart answers the callers of quiet keys, and gives the other groups: those
// of keys that may still be held apart from their neighbours. Peeks go with
// the neighbours, since they lock nothing. What has an operation id is asked
// also of quiet keys: a repeat needs none of their rows to be replayed.
func (l *lane) setApart(groups []group) (neighbours, held []group) {
	if len(l.held.keys) == 0 {
		return groups, nil
	}
	now := time.Now()
	neighbours, held = groups[:0], l.apart[:0]
	for i := range groups {
		switch {
		case !groups[i].charges() || !l.held.isApart(&groups[i], now):
			neighbours = append(neighbours, groups[i])
		case l.held.isQuiet(&groups[i], now) && !groups[i].mayRepeat():
			l.fail(groups[i:i+1], errHeld())
		default:
			held = append(held, groups[i])
		}
	}
	l.apart = held
	return neighbours, held
}

// decideHeld decides groups whose keys were seen held. It waits for at most one
// of them, and for none of quiet keys: those behind it that may be held as well
// are so for this time, and asked again by the next.
func (l *lane) decideHeld(ctx context.Context, groups []group) {
	rest := l.skipHeld(ctx, groups)
	waited := false
	for i := range rest {
		now := time.Now()
		if l.held.isQuiet(&rest[i], now) || waited && l.held.isApart(&rest[i], now) {
			l.fail(rest[i:i+1], errHeld())
			continue
		}
		l.failHeld(l.attempt(ctx, alone, rest[i:i+1]))
		waited = waited || l.held.isQuiet(&rest[i], time.Now())
	}
}
