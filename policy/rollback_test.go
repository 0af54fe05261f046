package policy

import "testing"

func TestRollback(t *testing.T) {
	t.Parallel()
	bucket := &Spec{Limit: Limit{Algorithm: TokenBucket, Capacity: 10}, Costs: Costs{Default: 1}}
	rollback, err := ParseRollback([]byte(`{"version":6,"balances":"scale"}`))
	if err != nil {
		t.Fatal(err)
	}
	change, err := rollback.Change(bucket)
	if err != nil || change.Spec != bucket || change.Balances != Scale || change.Reason != "rollback to version 6" {
		t.Errorf("%+v, %v", change, err)
	}
	window := &Spec{Limit: Limit{Algorithm: FixedWindow, Capacity: 10}, Costs: Costs{Default: 1}}
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
