package simulate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rationhq/ration/policy"
)

// Candidate is a policy that past traffic is tried on.
type Candidate struct {
	Name string
	Spec *policy.Spec
}

// trial is what a candidate has done so far.
type trial struct {
	Candidate

	set     *policy.Set
	matched policy.Matched
	keysMax int
	keys    map[policy.Key]*usage

	allowed, denied            int64
	unmatched, missing, faulty int64 // requests that it did not check
	worstWait                  int64 // microseconds; never
	timeline                   timeline
	second, inSecond           int64 // the second that the clock shows, and how many were allowed in it
	peak, peakSecond           int64
}

// usage is what one key asked and was given.
type usage struct {
	state           state
	name            string
	allowed, denied int64
	worstWait       int64 // microseconds; never
	firstDenied     int64 // instant in microseconds
}

func newTrial(candidate Candidate, keysMax int) (*trial, error) {
	if candidate.Spec.Limit.Algorithm == policy.Concurrency {
		return nil, fmt.Errorf("policy %s limits concurrency: a trace does not say when work ended, so slots cannot be simulated", candidate.Name)
	}
	// What it would do is asked, whatever mode it is for.
	enforced := &policy.Installed{ID: candidate.Name, Version: 1, Spec: candidate.Spec, Mode: policy.Enforce}
	return &trial{
		Candidate: candidate,
		set:       policy.Compile(0, []*policy.Installed{enforced}),
		keysMax:   keysMax, keys: map[policy.Key]*usage{},
	}, nil
}

// ask tries one request. clock is the latest second there was.
func (t *trial) ask(request *policy.Request, nowMicros, clock int64) error {
	if clock != t.second {
		t.second, t.inSecond = clock, 0
	}
	if err := t.set.Match(request, &t.matched); err != nil {
		t.passBy(err)
		t.timeline.add(nowMicros/microsPerSecond, count{})
		return nil
	}
	check := &t.matched.Checks[0]
	key, err := t.usageOf(check.Key, request)
	if err != nil {
		return err
	}
	wait := int64(never)
	if check.Cost <= t.Spec.Limit.Capacity {
		wait = key.state.ask(&t.Spec.Limit, check.Cost, nowMicros)
	}
	if wait != 0 {
		t.deny(key, wait, nowMicros)
		return nil
	}
	key.allowed++
	t.allowed++
	if t.inSecond++; t.inSecond > t.peak {
		t.peak, t.peakSecond = t.inSecond, clock
	}
	t.timeline.add(nowMicros/microsPerSecond, count{allowed: 1})
	return nil
}

func (t *trial) deny(key *usage, wait, nowMicros int64) {
	if key.denied++; key.denied == 1 {
		key.firstDenied = nowMicros
	}
	t.denied++
	key.worstWait, t.worstWait = max(key.worstWait, wait), max(t.worstWait, wait)
	t.timeline.add(nowMicros/microsPerSecond, count{denied: 1})
}

// passBy counts a request that the policy has nothing to say of.
func (t *trial) passBy(err error) {
	known, _ := errors.AsType[*policy.Error](err)
	switch {
	case len(t.matched.Skipped) > 0:
		t.missing++
	case known != nil && known.Reason == policy.ReasonNoPolicy:
		t.unmatched++
	default:
		t.faulty++
	}
}

// usageOf gives what a key has, and makes it when it is new.
func (t *trial) usageOf(key policy.Key, request *policy.Request) (*usage, error) {
	if known := t.keys[key]; known != nil {
		return known, nil
	}
	if len(t.keys) == t.keysMax {
		return nil, fmt.Errorf("policy %s has more than %d keys in this trace, which are kept in memory: allow more, or give it less of the trace", t.Name, t.keysMax)
	}
	made := &usage{state: newState(&t.Spec.Limit), name: keyName(t.Spec, &request.Values)}
	t.keys[key] = made
	return made, nil
}

// keyName writes a key for people.
func keyName(spec *policy.Spec, values *[policy.AttributeCount]string) string {
	var name strings.Builder
	for i, part := range spec.KeyValues(values) {
		if i > 0 {
			name.WriteByte(' ')
		}
		name.WriteString(part.Attribute.String() + "=" + part.Value)
	}
	if name.Len() == 0 {
		return "(all)"
	}
	return name.String()
}
