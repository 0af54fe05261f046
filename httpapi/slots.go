package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// releaseSlot ends a slot: 204, or 404 when it is not live. Whose it is shows
// in that its id, which is random, is known.
func (d *decisions) releaseSlot(w http.ResponseWriter, r *http.Request, _ *policy.Gateway) (int, error) {
	id, err := readSlotID(r)
	if err != nil {
		return 0, err
	}
	released, err := d.operations.ReleaseSlot(r.Context(), id)
	if err != nil {
		return 0, err
	}
	if !released {
		return 0, slotNotLive()
	}
	ensureRequestID(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return http.StatusNoContent, nil
}

// renewSlot has a slot live as long again from now on: 200 with its new
// expiry, or 404 when it is not live any more and may be another's.
func (d *decisions) renewSlot(w http.ResponseWriter, r *http.Request, _ *policy.Gateway) (int, error) {
	id, err := readSlotID(r)
	if err != nil {
		return 0, err
	}
	if err := readEmpty(r); err != nil {
		return 0, err
	}
	expiresAtMicros, renewed, err := d.operations.RenewSlot(r.Context(), id)
	if err != nil {
		return 0, err
	}
	if !renewed {
		return 0, slotNotLive()
	}
	answer := append([]byte(`{"slotId":"`), id.String()...)
	answer = append(answer, `","expiresAt":`...)
	answer = appendInstant(answer, expiresAtMicros)
	return d.writeJSON(w, r, append(answer, "}\n"...)), nil
}

// readSlotID reads a request's slot. A text that cannot name one names none.
func readSlotID(r *http.Request) (policy.SlotID, error) {
	if _, err := readQuery(r); err != nil {
		return policy.SlotID{}, err
	}
	id, err := policy.ParseSlotID(pathText(r, "slotId"))
	if err != nil {
		return policy.SlotID{}, slotNotLive()
	}
	return id, nil
}

// readEmpty reads a body that has nothing to say: none, or {}.
func readEmpty(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := readJSON(r, nil, decisionBytesMax)
	if err != nil {
		return err
	}
	return policy.ParseEmpty(body)
}

func slotNotLive() error {
	return notFound("There is no such slot: it never was, is released, or has expired.")
}
