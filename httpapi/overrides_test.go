package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubOverrides holds one override, of account A, and the kill switch of
// report, and is asked to change them.
type stubOverrides struct{}

func (stubOverrides) record() *policy.OverrideRecord {
	record := &policy.OverrideRecord{
		KeyOverride: policy.KeyOverride{Action: policy.OverrideLimit, Reason: "a large customer", Actor: "ana", ExpiresAtMicros: nowMicros + 60_000_000},
		Number:      7, PolicyID: "report-create", CreatedAtMicros: nowMicros,
		Limit: &policy.Limit{Algorithm: policy.FixedWindow, Capacity: 100, Span: minute(), SpanMicros: 60_000_000},
	}
	record.Values[policy.Account] = "A"
	return record
}

func minute() policy.Decimal {
	minute, err := policy.ParseDecimal("60")
	if err != nil {
		panic(err)
	}
	return minute
}

func (s stubOverrides) PutOverride(_ context.Context, put policy.OverridePut) (*policy.OverrideRecord, bool, error) {
	record := s.record()
	record.Values, record.Action, record.Limit, record.Reason, record.Actor = put.Values, put.Action, put.Limit, put.Reason, put.Actor
	record.ExpiresAtMicros = put.ExpiresAtMicros
	return record, put.Values[policy.Account] != "A", nil
}

func (stubOverrides) RemoveOverride(_ context.Context, removal policy.OverrideRemoval) error {
	if removal.Values[policy.Account] != "A" || removal.Reason != "done" {
		return &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no override for this key."}
	}
	return nil
}

func (s stubOverrides) Overrides(_ context.Context, _ string, after int64, limit int) ([]*policy.OverrideRecord, error) {
	var records []*policy.OverrideRecord
	for number := after + 1; len(records) < limit && number <= 3; number++ {
		record := s.record()
		record.Number = number
		records = append(records, record)
	}
	return records, nil
}

func (stubOverrides) ThrowKillSwitch(_ context.Context, throw policy.KillSwitchThrow) (*policy.KillSwitch, int, error) {
	return &policy.KillSwitch{
		Prefix: throw.Prefix, Actor: throw.Actor, Reason: throw.Reason, CreatedAtMicros: nowMicros, ExpiresAtMicros: nowMicros + throw.LastsMicros,
	}, 12, nil
}

func (stubOverrides) TakeBackKillSwitch(_ context.Context, taken policy.KillSwitchReturn) error {
	if taken.Prefix != "" {
		return &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "No kill switch lies over this prefix."}
	}
	return nil
}

func (stubOverrides) KillSwitches(context.Context) ([]*policy.KillSwitch, error) {
	return []*policy.KillSwitch{{Prefix: "report", Actor: "ana", Reason: "it denies too much", CreatedAtMicros: nowMicros, ExpiresAtMicros: nowMicros + 600_000_000}}, nil
}

func TestOverrideExchanges(t *testing.T) {
	t.Parallel()
	const overrides, killSwitch = "/v1/policies/report-create/overrides", "/v1/kill-switch"
	const limit = `{"action":"limit","limit":{"algorithm":"fixed_window","limit":100,"windowSeconds":60},"reason":"a large customer"}`
	const exempt = `{"action":"exempt","reason":"our own monitoring","expiresAt":"2030-01-02T03:04:05Z"}`
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Overrides: stubOverrides{}, KillSwitches: stubOverrides{}, Actor: "operator"})
	for _, e := range []exchange{
		{name: "override-set", method: http.MethodPut, target: overrides + "?verifiedAccount=B&operation=report.create", body: exempt},
		{name: "override-replace", method: http.MethodPut, target: overrides + "?verifiedAccount=A", body: limit},
		{name: "override-faulty", method: http.MethodPut, target: overrides + "?verifiedAccount=A", body: `{"action":"limit","expiresInSeconds":0}`},
		{name: "override-of-an-unknown-attribute", method: http.MethodPut, target: overrides + "?account=A", body: exempt},
		{name: "override-list", method: http.MethodGet, target: overrides + "?after=1&limit=1"},
		{name: "override-list-faulty", method: http.MethodGet, target: overrides + "?after=-1"},
		{name: "override-remove", method: http.MethodDelete, target: overrides + "?verifiedAccount=A&reason=done"},
		{name: "override-remove-none", method: http.MethodDelete, target: overrides + "?verifiedAccount=B"},
		{name: "kill-switch-throw", method: http.MethodPost, target: killSwitch, body: `{"prefix":"report","forSeconds":600,"reason":"it denies too much"}`},
		{name: "kill-switch-faulty", method: http.MethodPost, target: killSwitch, body: `{"prefix":"re port","forSeconds":86401}`},
		{name: "kill-switch-list", method: http.MethodGet, target: killSwitch},
		{name: "kill-switch-take-back", method: http.MethodDelete, target: killSwitch + "?prefix=&reason=calm+again"},
		{name: "kill-switch-take-back-none", method: http.MethodDelete, target: killSwitch + "?prefix=report"},
		{name: "kill-switch-take-back-faulty", method: http.MethodDelete, target: killSwitch},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.handler = handler
			e.check(t)
		})
	}
}
