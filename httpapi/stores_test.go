package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubStore tells of itself, or why it cannot.
type stubStore struct {
	state policy.StoreState
	fault error
}

func (s stubStore) State(context.Context) (policy.StoreState, error) { return s.state, s.fault }

func TestStoreExchanges(t *testing.T) {
	t.Parallel()
	state := policy.StoreState{
		Database: "ration", ServerVersion: "16.4", Schema: "1.2", Generation: 7, Incarnation: "0c2b0f53-8d3a-4a55-9c50-2f6c7c2b9a11",
		Losses: []policy.StateLoss{{FoundAtMicros: nowMicros, PoliciesIdle: 3, PoliciesEmpty: 1}},
	}
	away := stubStore{policy.StoreState{Database: "ration"}, &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable}}
	faulty := stubStore{policy.StoreState{Database: "ration"}, &policy.Error{Code: policy.CodeInternal, Reason: policy.ReasonInternal, Detail: "A fault."}}
	for name, store := range map[string]stubStore{"up": {state: state}, "away": away, "faulty": faulty} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange{
				name: "stores-" + name, method: http.MethodGet, target: "/v1/stores",
				handler: httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Stores: store, Actor: "operator"}),
			}.check(t)
		})
	}
}
