package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// resetBucket makes one key's state full or empty, and answers what it is then.
func (a *admin) resetBucket(w http.ResponseWriter, r *http.Request) (int, error) {
	reset, err := readBody(r, policy.ParseKeyReset)
	if err != nil {
		return 0, err
	}
	reset.Author = authorOf(r)
	state, err := a.keys.ResetKey(r.Context(), *reset)
	if err != nil {
		return 0, err
	}
	return a.writeValue(w, r, bucketOf(state))
}

// rebased is the JSON of what a part of a rebase did. Whoever asked goes on with
// next as `after`, until there is none.
type rebased struct {
	Rebased int    `json:"rebased"` // rows that were ahead of the clock
	Next    string `json:"next,omitempty"`
}

// rebaseBuckets sets back a bounded part of what is ahead of the clock.
func (a *admin) rebaseBuckets(w http.ResponseWriter, r *http.Request) (int, error) {
	rebase, err := readBody(r, policy.ParseRebase)
	if err != nil {
		return 0, err
	}
	rebase.Author = authorOf(r)
	n, next, err := a.keys.Rebase(r.Context(), *rebase)
	if err != nil {
		return 0, err
	}
	answer := rebased{Rebased: n}
	if next != nil {
		answer.Next = next.String()
	}
	return a.writeValue(w, r, answer)
}
