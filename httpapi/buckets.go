package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/rationhq/ration/policy"
)

// Keys is the state that is kept of single keys. Errors are *policy.Error or
// the context's.
type Keys interface {
	// Key gives the state of the key that values name; not-found when there is no
	// such policy, invalid-request when they name no key of it.
	Key(ctx context.Context, id string, values *[policy.AttributeCount]string) (*policy.KeyState, error)

	// Keys gives at most limit stored keys of a policy, ascending, those behind
	// the key after (the zero Key begins). A page may be empty and not the last:
	// more says whether to go on behind next.
	Keys(ctx context.Context, id string, after policy.Key, limit int) (states []*policy.KeyState, next policy.Key, more bool, err error)

	// ResetKey makes one key full or empty and gives what it is then. Beside the
	// errors of Key: slots-held.
	ResetKey(ctx context.Context, reset policy.KeyReset) (*policy.KeyState, error)

	// Rebase sets to now what is ahead of the clock, from a place on; next is nil
	// when all of it is done.
	Rebase(ctx context.Context, rebase policy.Rebase) (rebased int, next *policy.RebasePlace, err error)
}

// getBuckets answers the state of one key, by the attributes of its policy's
// `per`, or where the policy alone is named a page of its stored keys.
func (a *admin) getBuckets(w http.ResponseWriter, r *http.Request) (int, error) {
	query, err := parseQuery(r)
	if err != nil {
		return 0, err
	}
	ids := query["policy"]
	if len(ids) != 1 || policy.ValidID(ids[0]) != nil {
		return 0, badRequest(`The query parameter "policy" must be a policy's id, once.`)
	}
	delete(query, "policy")
	if isPage(query) {
		return a.listBuckets(w, r, ids[0])
	}
	values, err := policy.ParseValues(query)
	if err != nil {
		return 0, err
	}
	state, err := a.keys.Key(r.Context(), ids[0], values)
	if err != nil {
		return 0, err
	}
	return a.writeValue(w, r, bucketOf(state))
}

// isPage says whether parameters name no attribute.
func isPage(query url.Values) bool {
	for name := range query {
		if name != "after" && name != "limit" {
			return false
		}
	}
	return true
}

// listBuckets answers a page of a policy's stored keys.
func (a *admin) listBuckets(w http.ResponseWriter, r *http.Request, id string) (int, error) {
	query, err := readQuery(r, "policy", "after", "limit")
	if err != nil {
		return 0, err
	}
	limit, err := queryInt(query, "limit", pageDefault, 1, pageMax)
	if err != nil {
		return 0, err
	}
	var after policy.Key
	if query.Has("after") {
		if after, err = policy.ParseKey(query.Get("after")); err != nil {
			return 0, badRequest(`The query parameter "after" must be a key, as an answer gives it.`)
		}
	}
	states, next, more, err := a.keys.Keys(r.Context(), id, after, limit)
	if err != nil {
		return 0, err
	}
	page := struct {
		Buckets []bucket `json:"buckets"`
	}{make([]bucket, len(states))}
	for i, state := range states {
		page.Buckets[i] = bucketOf(state)
	}
	if more {
		linkNext(w, "/v1/buckets", query, next.Hex(), limit)
	}
	return a.writeValue(w, r, page)
}

// bucket is the JSON of one key's state.
type bucket struct {
	Policy         string            `json:"policy"`
	PolicyVersion  int               `json:"policyVersion"` // in force
	Algorithm      string            `json:"algorithm"`
	Key            string            `json:"key"`
	Attributes     map[string]string `json:"attributes,omitempty"` // absent where the key alone is known
	Limit          int64             `json:"limit"`                // the override's, where it has one
	Remaining      int64             `json:"remaining"`
	Owed           int64             `json:"owed,omitempty"` // tokens used beyond the limit
	At             string            `json:"at"`             // the instant that this is told of
	ResetAt        string            `json:"resetAt"`        // when nothing is spent any more
	Stored         bool              `json:"stored"`         // false: never used, or idle again
	SettledVersion int               `json:"settledVersion,omitempty"`
	AheadMillis    int64             `json:"aheadMillis,omitempty"` // of the clock
	Slots          []heldSlot        `json:"slots,omitempty"`
	Override       *bucketOverride   `json:"override,omitempty"`
}

type heldSlot struct {
	SlotID    string `json:"slotId"`
	Cost      int64  `json:"cost"`
	ExpiresAt string `json:"expiresAt"`
}

type bucketOverride struct {
	Action    string `json:"action"`
	Reason    string `json:"reason"`
	Actor     string `json:"actor"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

// bucketOf gives the JSON of a state.
func bucketOf(state *policy.KeyState) bucket {
	b := bucket{
		Policy: state.Policy.ID, PolicyVersion: state.Policy.Version, Algorithm: state.Policy.Spec.Limit.Algorithm.String(),
		Key: state.Key.Hex(), Limit: state.Limit, Remaining: max(0, state.Remaining), Owed: max(0, -state.Remaining),
		At: instantText(state.AtMicros), ResetAt: instantText(policy.InstantAfter(state.AtMicros, state.ResetAfterMicros)),
		Stored: state.Stored, SettledVersion: state.SettledVersion, AheadMillis: ceilDiv(state.AheadMicros, microsPerMilli),
	}
	if state.Values != nil {
		b.Attributes = make(map[string]string)
		for _, attribute := range state.Policy.Spec.Per {
			b.Attributes[attribute.RequestMember()] = state.Values[attribute]
		}
	}
	for _, slot := range state.Slots {
		b.Slots = append(b.Slots, heldSlot{SlotID: slot.ID.String(), Cost: slot.Cost, ExpiresAt: instantText(slot.ExpiresAtMicros)})
	}
	if o := state.Override; o != nil {
		b.Override = &bucketOverride{Action: o.Action.String(), Reason: o.Reason, Actor: o.Actor}
		if o.ExpiresAtMicros > 0 {
			b.Override.ExpiresAt = instantText(o.ExpiresAtMicros)
		}
	}
	return b
}

// instantText is an exact instant.
func instantText(micros int64) string { return time.UnixMicro(micros).UTC().Format(instantLayout) }
