package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// Stores tells of the store that this instance decides on.
type Stores interface {
	// State gives what the store tells of itself. Errors are *policy.Error or
	// the context's; the database's name is given with any of them.
	State(ctx context.Context) (policy.StoreState, error)
}

// listStores answers the state of every store there is: of one.
func (a *admin) listStores(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, err := readQuery(r); err != nil {
		return 0, err
	}
	state, err := a.stores.State(r.Context())
	if known, ok := errors.AsType[*policy.Error](err); err != nil && (!ok || known.Code != policy.CodeUnavailable) {
		return 0, err
	}
	body := appendStore([]byte(`{"stores":[`), &state, err == nil)
	return a.writeJSON(w, r, http.StatusOK, append(body, "]}\n"...)), nil
}

// appendStore appends the JSON of a store. One that gives no answer tells
// nothing.
func appendStore(dst []byte, state *policy.StoreState, reachable bool) []byte {
	dst = append(dst, `{"database":`...)
	dst = appendString(dst, state.Database)
	dst = append(dst, `,"reachable":`...)
	dst = strconv.AppendBool(dst, reachable)
	if !reachable {
		return append(dst, '}')
	}
	dst = append(dst, `,"serverVersion":`...)
	dst = appendString(dst, state.ServerVersion)
	dst = append(dst, `,"schemaVersion":`...)
	dst = appendString(dst, state.Schema)
	dst = append(dst, `,"inRecovery":`...)
	dst = strconv.AppendBool(dst, state.InRecovery)
	dst = append(dst, `,"generation":`...)
	dst = strconv.AppendInt(dst, state.Generation, 10)
	dst = append(dst, `,"incarnation":`...)
	dst = appendString(dst, state.Incarnation)
	dst = append(dst, `,"losses":[`...)
	for _, loss := range state.Losses {
		dst = append(separate(dst), `{"foundAt":`...)
		dst = appendInstant(dst, loss.FoundAtMicros)
		dst = append(dst, `,"policiesIdle":`...)
		dst = strconv.AppendInt(dst, int64(loss.PoliciesIdle), 10)
		dst = append(dst, `,"policiesEmpty":`...)
		dst = strconv.AppendInt(dst, int64(loss.PoliciesEmpty), 10)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
