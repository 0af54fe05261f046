package limiter

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/policy"
)

// policyLabelsMax caps the policies that have a label of their own in metrics;
// the rest count together as "other".
const policyLabelsMax = 1000

// otherPolicy is the label of policies beyond the cap.
const otherPolicy = "other"

// Metrics are the limiter's. No label ever holds a subject, key or address.
// They belong to one [Limiter].
type Metrics struct {
	decisions    *prometheus.CounterVec
	uncertain    *prometheus.CounterVec
	skipped      *prometheus.CounterVec
	versions     *prometheus.GaugeVec
	generation   prometheus.Gauge
	batchSize    prometheus.Observer
	batchCallers prometheus.Observer
	laneWait     prometheus.Observer
	callSeconds  [functionCount]prometheus.Observer
	storeErrors  map[policy.StoreFault]prometheus.Counter
	late         map[string]prometheus.Counter

	labels map[string]*policyCounters // by label; the follower's own
	other  func() *policyCounters     // of policies beyond the cap, and of those that are gone
}

// function is a function of the store as ration_store_call_duration_seconds
// names it.
type function uint8

const (
	takeFunction function = iota
	takeNewFunction
	decideFunction

	functionCount = int(decideFunction) + 1
)

// String gives the function's label.
func (f function) String() string { return [functionCount]string{"take", "take_new", "decide"}[f] }

// policyCounters are the counters of one policy, those of every day resolved
// once.
type policyCounters struct {
	label           string
	decisions       *prometheus.CounterVec
	allowed, denied [2]prometheus.Counter // by policy.Source: FromStore, FromPolicy
	uncertain       [2]prometheus.Counter // as a decision's outcome, and on its own
	skipped         [policy.AttributeCount]prometheus.Counter
}

// latencyBuckets reach from a local round trip to the longest timeout.
func latencyBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
}

// NewMetrics registers the limiter's metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	r := registrar{registerer: registerer}
	calls := r.histogram("ration_store_call_duration_seconds", "Time of one call of the store, by function.", latencyBuckets(), "function")
	storeErrors := r.counter("ration_store_errors_total", "Calls of the store that ended without an answer, by class.", "class")
	late := r.counter("ration_late_results_total", "Answers of the store that came after their caller had left, by outcome.", "outcome")
	m := &Metrics{
		decisions: r.counter("ration_decisions_total", "Decisions of each policy, by its own outcome and by source.", "policy", "outcome", "source"),
		uncertain: r.counter("ration_uncertain_total", "Requests whose charge is not known, by each policy that they ask.", "policy"),
		skipped: r.counter("ration_policy_skipped_total",
			"Requests a matching policy skipped because they lack an attribute of its key.", "policy", "attribute"),
		versions:   r.gauge("ration_policy_version", "Version of each policy in force in this instance.", "policy"),
		generation: r.gauge("ration_policy_generation", "Generation of the policy set in force in this instance.").WithLabelValues(),
		batchSize: r.histogram("ration_batch_size", "Keys in one call of the store, on the general path of each claim.",
			prometheus.ExponentialBuckets(1, 2, 10)).WithLabelValues(),
		batchCallers: r.histogram("ration_batch_callers", "Requests answered by one call of the store.",
			prometheus.ExponentialBuckets(1, 2, 13)).WithLabelValues(),
		laneWait: r.histogram("ration_lane_wait_seconds", "Time the first request of a batch waited in its lane.",
			latencyBuckets()).WithLabelValues(),
		storeErrors: make(map[policy.StoreFault]prometheus.Counter),
		late:        make(map[string]prometheus.Counter),
		labels:      make(map[string]*policyCounters),
	}
	m.other = sync.OnceValue(func() *policyCounters { return m.newCounters(otherPolicy) })
	for f := range m.callSeconds {
		m.callSeconds[f] = calls.WithLabelValues(function(f).String())
	}
	for _, fault := range policy.StoreFaults() {
		m.storeErrors[fault] = storeErrors.WithLabelValues(fault.String())
	}
	for _, outcome := range []string{"allowed", "denied", "undecided"} {
		m.late[outcome] = late.WithLabelValues(outcome)
	}
	return m, errors.Join(r.errs...)
}

// counters gives the counters of a label, made at its first use.
func (m *Metrics) counters(label string) *policyCounters {
	if known, ok := m.labels[label]; ok {
		return known
	}
	if len(m.labels) >= policyLabelsMax {
		return m.other()
	}
	c := m.newCounters(label)
	m.labels[label] = c
	return c
}

func (m *Metrics) newCounters(label string) *policyCounters {
	c := &policyCounters{label: label, decisions: m.decisions, uncertain: [...]prometheus.Counter{
		m.decisions.WithLabelValues(label, "uncertain", policy.FromStore.String()), m.uncertain.WithLabelValues(label),
	}}
	for _, source := range []policy.Source{policy.FromStore, policy.FromPolicy} {
		c.allowed[source] = m.decisions.WithLabelValues(label, "allowed", source.String())
		c.denied[source] = m.decisions.WithLabelValues(label, "denied", source.String())
	}
	return c
}

// installed notes the policies of a set in force and gives their counters.
func (m *Metrics) installed(set *policy.Set) map[*policy.Installed]*policyCounters {
	counters := make(map[*policy.Installed]*policyCounters, len(set.Policies()))
	for _, installed := range set.Policies() {
		c := m.counters(installed.ID)
		for _, attribute := range installed.Spec.Per {
			if c.skipped[attribute] != nil {
				continue // requests under the set before may be reading it
			}
			c.skipped[attribute] = m.skipped.WithLabelValues(c.label, attribute.String())
		}
		counters[installed] = c
		for _, override := range installed.Overrides {
			if override.Limited != nil {
				counters[override.Limited] = c
			}
		}
		if c.label != otherPolicy {
			m.versions.WithLabelValues(c.label).Set(float64(installed.Version))
		}
	}
	for label := range m.labels {
		if _, found := set.Lookup(label); !found {
			m.versions.DeleteLabelValues(label)
		}
	}
	m.generation.Set(float64(set.Generation()))
	return counters
}

// batchSent notes a batch on its way.
func (m *Metrics) batchSent(groups []group) {
	keys, callers, oldest := 0, 0, groups[0].first.queuedAt
	for i := range groups {
		keys += groups[i].keyCount()
		callers += groups[i].callers
		if at := groups[i].first.queuedAt; at.Before(oldest) {
			oldest = at
		}
	}
	m.batchSize.Observe(float64(keys))
	m.batchCallers.Observe(float64(callers))
	m.laneWait.Observe(time.Since(oldest).Seconds())
}

// called notes a call of the store and how it ended.
func (m *Metrics) called(f function, took time.Duration, err error) {
	m.callSeconds[f].Observe(took.Seconds())
	if store, ok := errors.AsType[*policy.StoreError](err); ok {
		m.storeErrors[store.Fault].Inc()
	}
}

// cameLate notes a result whose caller had left.
func (m *Metrics) cameLate(c *call) {
	switch allowed, decided := c.allowed(); {
	case !decided:
		m.late["undecided"].Inc()
	case allowed:
		m.late["allowed"].Inc()
	default:
		m.late["denied"].Inc()
	}
}

// unsure notes a request whose charge is not known.
func (c *policyCounters) unsure() {
	for _, counter := range c.uncertain {
		counter.Inc()
	}
}

// decided notes a decision that a caller was given.
func (c *policyCounters) decided(decision *policy.Decision) {
	if decision.Allowed {
		c.allowed[decision.Source].Inc()
	} else {
		c.denied[decision.Source].Inc()
	}
}

// decidedPart notes one policy's part of a decision that a caller was given.
func (c *policyCounters) decidedPart(part *policy.DecisionPart, source policy.Source) {
	outcome := "denied"
	if part.Allowed {
		outcome = "allowed"
	}
	switch shadow := part.Policy.Mode == policy.Shadow; {
	case shadow:
		c.decisions.WithLabelValues(c.label, "shadow_"+outcome, source.String()).Inc()
	case source == policy.FromReplay:
		c.decisions.WithLabelValues(c.label, outcome, source.String()).Inc()
	case part.Allowed:
		c.allowed[source].Inc()
	default:
		c.denied[source].Inc()
	}
}
