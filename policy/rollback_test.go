package policy

import (
	"slices"
	"testing"
)

func TestRollback(t *testing.T) {
	t.Parallel()
	bucket := parsedSpec(t, withMembers(""))
	rollback, err := ParseRollback([]byte(`{"version":6,"balances":"scale"}`))
	if err != nil {
		t.Fatal(err)
	}
	change, err := rollback.Change(bucket)
	if err != nil || !change.Spec.Equal(bucket) || change.Balances != Scale || change.Reason != "rollback to version 6" {
		t.Errorf("%+v, %v", change, err)
	}
	window := parsedSpec(t, []byte(`{"match":{},"per":[],"limit":{"algorithm":"fixed_window","limit":10,"windowSeconds":1}}`))
	if _, err := rollback.Change(window); !faulty(err, "/balances cannot be scale") {
		t.Errorf("a window's fraction: %v", err)
	}
	for body, fault := range map[string]string{
		`{}`:                            "/version is required",
		`{"version":0}`:                 "/version must be at least 1",
		`{"version":1,"balances":"no"}`: "/balances must be one of",
		`{"version":1,"to":"x"}`:        "/to is not a known member",
	} {
		if _, err := ParseRollback([]byte(body)); !faulty(err, fault) {
			t.Errorf("%s: %v, want %s", body, err, fault)
		}
	}
}

func parsedSpec(t *testing.T, body []byte) *Spec {
	t.Helper()
	change, err := ParseChange(body)
	if err != nil {
		t.Fatal(err)
	}
	return change.Spec
}

func TestRollbackWarnsAsAPutDoes(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{
		withMembers(`"onStoreDown":{"mode":"open","maxSeconds":7200},`),
		withMembers(`"costs":{"default":41,"operations":{"a":42},"max":43},`),
		[]byte(`{"match":{"operations":["login"]},"per":["targetAccount"],"limit":{"algorithm":"sliding_window_log","limit":500,"windowSeconds":60}}`),
	} {
		put, err := ParseChange(body)
		if err != nil {
			t.Fatal(err)
		}
		if len(put.Warnings) == 0 {
			t.Errorf("%s warns of nothing: there is nothing to compare", body)
		}
		change, err := (&Rollback{Version: 1}).Change(put.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(change.Warnings, put.Warnings) {
			t.Errorf("%s: a rollback warns of %v, a put of %v", body, change.Warnings, put.Warnings)
		}
	}
}
