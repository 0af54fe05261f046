package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubKeys has two keys of report-create, one of them with an override, and a
// live slot of a concurrency policy.
type stubKeys struct {
	resets  []policy.KeyReset
	rebases []policy.Rebase
}

func (s *stubKeys) Key(_ context.Context, id string, values *[policy.AttributeCount]string) (*policy.KeyState, error) {
	of := reportCreate()
	switch id {
	case of.ID:
		if err := of.Spec.CheckKey(values); err != nil {
			return nil, err
		}
		return &policy.KeyState{
			Policy: of, Key: policy.Key{1}, Values: values, Limit: 40, Remaining: -3, AtMicros: nowMicros, ResetAfterMicros: 2_150_000,
			Stored: true, SettledVersion: 6, AheadMicros: 1_500,
		}, nil
	case "slots":
		of = window("slots", 2, 3)
		of.Spec.Limit.Algorithm = policy.Concurrency
		slot := policy.HeldSlot{Slot: policy.Slot{ID: policy.SlotID{7}, ExpiresAtMicros: nowMicros + 60_000_000}, Cost: 2}
		return &policy.KeyState{
			Policy: of, Key: policy.Key{2}, Values: values, Limit: 3, Remaining: 1, AtMicros: nowMicros, ResetAfterMicros: 60_000_000,
			Stored: true, Slots: []policy.HeldSlot{slot},
		}, nil
	}
	return nil, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy or version."}
}

func (s *stubKeys) Keys(_ context.Context, _ string, after policy.Key, limit int) ([]*policy.KeyState, policy.Key, bool, error) {
	of, override := reportCreate(), &policy.KeyOverride{Action: policy.OverrideLimit, Reason: "paid for more", Actor: "ann", ExpiresAtMicros: nowMicros + 1}
	all := []*policy.KeyState{
		{Policy: of, Key: policy.Key{1}, Limit: 40, Remaining: 40, AtMicros: nowMicros, Stored: true, SettledVersion: 7},
		{Policy: of, Key: policy.Key{2}, Limit: 90, Remaining: 80, AtMicros: nowMicros, ResetAfterMicros: 1, Stored: true, SettledVersion: 7, Override: override},
	}
	if after == (policy.Key{1}) {
		all = all[1:]
	}
	page := all[:min(limit, len(all))]
	return page, page[len(page)-1].Key, len(page) < len(all), nil
}

func (s *stubKeys) ResetKey(ctx context.Context, reset policy.KeyReset) (*policy.KeyState, error) {
	s.resets = append(s.resets, reset)
	if reset.PolicyID == "slots" && !reset.Release {
		return nil, &policy.Error{Code: policy.CodeConflict, Reason: policy.ReasonSlotsHeld, Detail: "The key has live slots."}
	}
	state, err := s.Key(ctx, reset.PolicyID, &reset.Values)
	if err == nil {
		state.Remaining, state.ResetAfterMicros, state.Slots, state.AheadMicros = state.Limit, 0, nil, 0
	}
	return state, err
}

func (s *stubKeys) Rebase(_ context.Context, rebase policy.Rebase) (int, *policy.RebasePlace, error) {
	s.rebases = append(s.rebases, rebase)
	if rebase.From.Table > 0 {
		return 2, nil, nil
	}
	return 5, &policy.RebasePlace{Table: 1, After: policy.Key{9}}, nil
}

func TestBucketExchanges(t *testing.T) {
	t.Parallel()
	const path, next = "/v1/buckets", `1-09000000000000000000000000000000`
	for _, e := range []exchange{
		{name: "get", method: http.MethodGet, target: path + "?policy=report-create&verifiedAccount=A&operation=report.create"},
		{name: "get-slots", method: http.MethodGet, target: path + "?policy=slots&verifiedAccount=A"},
		{name: "get-incomplete", method: http.MethodGet, target: path + "?policy=report-create&verifiedAccount=A&ip=192.0.2.1"},
		{name: "get-malformed", method: http.MethodGet, target: path + "?policy=report-create&ip=here&colour=red"},
		{name: "get-unknown", method: http.MethodGet, target: path + "?policy=none&verifiedAccount=A"},
		{name: "get-nothing", method: http.MethodGet, target: path},
		{name: "list", method: http.MethodGet, target: path + "?policy=report-create"},
		{name: "list-page", method: http.MethodGet, target: path + "?policy=report-create&limit=1"},
		{name: "list-next", method: http.MethodGet, target: path + "?policy=report-create&limit=1&after=01000000000000000000000000000000"},
		{name: "list-faulty", method: http.MethodGet, target: path + "?policy=report-create&after=x"},
		{name: "reset", target: path + "/reset", body: `{"policy":"report-create","verifiedAccount":"A","operation":"report.create","to":"full","reason":"a fault of ours"}`},
		{name: "reset-slots", target: path + "/reset", body: `{"policy":"slots","to":"full","reason":"x"}`},
		{name: "reset-faulty", target: path + "/reset", body: `{"policy":"report-create","to":"half"}`},
		{name: "rebase", target: path + "/rebase", body: `{"reason":"the clock stepped"}`},
		{name: "rebase-on", target: path + "/rebase", body: `{"reason":"the clock stepped","after":"` + next + `"}`},
		{name: "rebase-faulty", target: path + "/rebase", body: `{"after":"8-00"}`},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.name, e.handler = "bucket-"+e.name, httpapi.NewAdmin(httpapi.AdminConfig{Keys: new(stubKeys), Actor: "operator"})
			e.check(t)
		})
	}
}
