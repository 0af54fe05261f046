package memstore

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/rationhq/ration/policy"
)

// ReleaseSlot ends a slot that is live at the instant, whatever has become of
// its policy. It says false of one that has expired or was never handed out.
func (s *Store) ReleaseSlot(_ context.Context, id policy.SlotID, nowMicros int64) (released bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	place, known := s.slots[id]
	if !known {
		return false, nil
	}
	if slots := s.slotsAt(place); slots[slots.slot(id)].mark <= nowMicros {
		return false, nil
	}
	s.dropSlot(id, place)
	return true, nil
}

// RenewSlot lets a slot that is live at the instant live its whole time again.
// It says false of one that has expired or was never handed out.
func (s *Store) RenewSlot(
	_ context.Context, id policy.SlotID, nowMicros int64,
) (expiresAtMicros int64, renewed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	place, known := s.slots[id]
	if !known {
		return 0, false, nil
	}
	slots := slices.Clone(s.slotsAt(place))
	slot := &slots[slots.slot(id)]
	if slot.mark <= nowMicros {
		return 0, false, nil
	}
	slot.mark = nowMicros + slot.ttl
	s.keep(place, slots)
	return slot.mark, true, nil
}

// ofSlots says whether a place is of slots, whatever its policy keeps now.
func (p place) ofSlots() bool { return p.shelf == &p.ledger.slots }

// acquire hands out a slot of cost units at a place.
func (s *Store) acquire(p place, before state, cost, nowMicros int64) (after state, slot policy.Slot) {
	var id policy.SlotID
	_, _ = rand.Read(id[:]) // never fails
	l := p.ledger.limit
	made := charge{mark: l.mark(nowMicros, 0), tokens: cost, slot: id, ttl: l.span}
	s.slots[id] = p
	return append(slices.Clone(before.(charges)), made), policy.Slot{ID: id, ExpiresAtMicros: made.mark} //nolint:forcetypeassert // slots are charges
}

// slotsAt gives the slots of a place.
func (s *Store) slotsAt(p place) charges {
	if p.overflow {
		return p.shelf.overflow.(charges) //nolint:forcetypeassert // slots are charges
	}
	return p.shelf.keys[p.key].(charges) //nolint:forcetypeassert // slots are charges
}

// dropSlot forgets a slot.
func (s *Store) dropSlot(id policy.SlotID, p place) {
	slots := slices.Clone(s.slotsAt(p))
	i := slots.slot(id)
	s.keep(p, slices.Delete(slots, i, i+1))
	delete(s.slots, id)
}

// slot finds a slot.
func (c charges) slot(id policy.SlotID) int {
	return slices.IndexFunc(c, func(each charge) bool { return each.slot == id })
}
