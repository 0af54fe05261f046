package limiter_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

func TestEveryDecisionIsCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install(t, "op", 2, "")
		r := start(t, s)
		for range 5 {
			r.ask(request("op", "A", 1))
			synctest.Wait()
		}
		r.together("op", "B", "B", "C")
		first, resume := r.occupy(s, "op")
		for range 3 {
			r.ask(request("op", "D", 1))
		}
		synctest.Wait()
		resume()
		first.is(true, 1)
		synctest.Wait()
		decisions := func(outcome string) float64 {
			return r.counted("ration_decisions_total", "policy", "op", "outcome", outcome, "source", "store")
		}
		if allowed, denied := decisions("allowed"), decisions("denied"); allowed != 2+3+1+2 || denied != 3+1 {
			t.Errorf("%v allowed and %v denied, want 8 and 4", allowed, denied)
		}
		r.isCounted(12, "ration_decisions_total")
		r.isCounted(8, "ration_batch_size") // calls: five alone, two of the batch (two of B), one of the first, one of the three
		r.isCounted(8, "ration_batch_callers")
		r.isCounted(8, "ration_lane_wait_seconds")
		r.isCounted(8, "ration_store_call_duration_seconds", "function", "take")
	})
}

// There are at most 1,000 labels of policies and one for all others, whatever
// is installed, removed and asked.
func TestPolicyLabelsAreBounded(t *testing.T) {
	t.Parallel()
	const policies, labelled = 1500, 1000
	s := newStore()
	for i := range policies {
		s.install(t, fmt.Sprintf("op%04d", i), 10, "")
	}
	r := start(t, s, patient)
	for i := range policies {
		if _, err := r.Decide(t.Context(), request(fmt.Sprintf("op%04d", i), "A", 1)); err != nil {
			t.Fatal(err)
		}
		lacking := request(fmt.Sprintf("op%04d", i), "", 1)
		lacking.Values[policy.User] = "U"
		if _, err := r.Decide(t.Context(), lacking); err == nil {
			t.Fatal("decided without a key")
		}
	}
	for i := range policies {
		s.install(t, fmt.Sprintf("young%04d", i), 10, "")
	}
	r.Refresh()
	if _, err := r.Decide(t.Context(), request("op0000", "A", 1)); err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]bool{}
	for _, label := range r.labels() {
		if label.name == "policy" {
			if labels[label.metric] == nil {
				labels[label.metric] = map[string]bool{}
			}
			labels[label.metric][label.value] = true
		}
	}
	for metric, values := range labels {
		if len(values) > labelled+1 {
			t.Errorf("%s has %d policies", metric, len(values))
		}
	}
	r.isCounted(policies+1, "ration_decisions_total")
	r.isCounted(policies-labelled, "ration_decisions_total", "policy", "other")
	r.isCounted(policies, "ration_policy_skipped_total", "attribute", "account")
	r.isCounted(policies-labelled, "ration_policy_skipped_total", "policy", "other")
}

// label is one label of one metric.
type label struct{ metric, name, value string }

// labels gives every label there is.
func (r *running) labels() []label {
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatalf("gather metrics: %v", err)
	}
	var all []label
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				all = append(all, label{family.GetName(), pair.GetName(), pair.GetValue()})
			}
		}
	}
	return all
}

func TestNoLabelHoldsASubject(t *testing.T) {
	t.Parallel()
	s := newStore()
	s.install(t, "op", 1, "")
	r := start(t, s, patient)
	const secret = "zqx"
	var asked policy.Request
	for attribute := range asked.Values {
		asked.Values[attribute] = secret
	}
	asked.Values[policy.Operation], asked.Values[policy.IP] = "op", "192.0.2.77"
	for range 3 {
		if _, err := r.Decide(t.Context(), &asked); err != nil {
			t.Error(err)
		}
	}
	asked.Values[policy.Account] = ""
	if _, err := r.Decide(t.Context(), &asked); err == nil {
		t.Error("decided without a key")
	}
	all := r.labels()
	if len(all) == 0 {
		t.Fatal("there are no labels")
	}
	for _, label := range all {
		if strings.Contains(label.value, secret) || strings.Contains(label.value, asked.Values[policy.IP]) {
			t.Errorf("%s{%s=%q}", label.metric, label.name, label.value)
		}
		if names := []string{"policy", "outcome", "source", "class", "function", "attribute"}; !slices.Contains(names, label.name) {
			t.Errorf("%s has a label %s", label.metric, label.name)
		}
	}
}

// Requests are skipped and decided while sets are swapped: for the race
// detector.
func TestCountingWhilePoliciesChange(t *testing.T) {
	t.Parallel()
	s := newStore()
	s.install(t, "op", 1_000_000, "")
	r := start(t, s, patient)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				lacking := request("op", "", 1)
				lacking.Values[policy.User] = "U"
				if _, err := r.Decide(t.Context(), lacking); err == nil {
					t.Error("decided without a key")
				}
			}
		})
	}
	for i := range 20 {
		s.install(t, "op", 1_000_001+i, "")
		r.Refresh()
	}
	group.Wait()
	r.isCounted(800, "ration_policy_skipped_total", "policy", "op", "attribute", "account")
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	r := start(t, newStore())
	if _, err := limiter.NewMetrics(r.registry); err == nil {
		t.Error("the same names were registered twice")
	}
}
