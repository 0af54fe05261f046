package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rationhq/ration/policy"
)

// install makes the next version of a slot's policy, or tries to: with a
// version that is not the current one, or with a change that would have to say
// that what is kept begins anew.
type install struct {
	slot         int
	shape        shape
	balances     policy.Balances
	start        policy.Start
	wrongVersion bool
}

func (i install) String() string {
	if i.wrongVersion {
		return fmt.Sprintf("install policy %d with a wrong version", i.slot)
	}
	return fmt.Sprintf("install policy %d by %s %s: %s", i.slot, i.balances, i.start, i.shape)
}

func (i install) play(g *game) *difference {
	change, err := i.shape.change()
	if err != nil {
		return g.differ("the policy package refuses %s: %v", i.shape, err)
	}
	change.Balances, change.Start = i.balances, i.start
	expected := g.version(i.slot)
	if i.wrongVersion {
		expected++
	}
	id := g.policyID(i.slot)
	want, wantErr := g.model.Install(g.context, id, change, expected, g.nowMicros)
	got, gotErr := g.subject.Install(g.context, id, change, expected, g.nowMicros)
	refusal, known := refusalOf(wantErr)
	switch refused, knownToo := refusalOf(gotErr); {
	case !known || !knownToo || !slices.Equal(refusal, refused) || i.wrongVersion != isConflict(wantErr):
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	case wantErr != nil:
		return nil
	case got.Version != want.Version || got.InstalledAtMicros != want.InstalledAtMicros:
		return g.differ("version %d at %d, want version %d at %d",
			got.Version, got.InstalledAtMicros, want.Version, want.InstalledAtMicros)
	}
	g.policies[i.slot] = pair[*policy.Installed]{model: want, subject: got}
	g.deleted[i.slot] = false
	return g.reload()
}

func (i install) simpler() []step { return nil }

// refusalOf is what a store refuses a change for: nothing, its version, or the
// members at fault. Any other error is not known.
func refusalOf(err error) (refusal []string, known bool) {
	var refused *policy.Error
	switch {
	case err == nil:
		return nil, true
	case isConflict(err):
		return []string{"version"}, true
	case !errors.As(err, &refused) || refused.Reason != policy.ReasonPolicyInvalid:
		return nil, false
	}
	for _, fault := range refused.Faults {
		refusal = append(refusal, fault.Pointer)
	}
	return refusal, true
}

// remove deletes a slot's policy, or tries to with a version that is not the
// current one.
type remove struct {
	slot         int
	wrongVersion bool
}

func (r remove) String() string {
	if r.wrongVersion {
		return fmt.Sprintf("delete policy %d with a wrong version", r.slot)
	}
	return fmt.Sprintf("delete policy %d", r.slot)
}

func (r remove) play(g *game) *difference {
	expected := g.version(r.slot)
	conflicts := r.wrongVersion || expected == 0
	if r.wrongVersion {
		expected++
	}
	id := g.policyID(r.slot)
	wantErr := g.model.Delete(g.context, id, expected, g.nowMicros)
	gotErr := g.subject.Delete(g.context, id, expected, g.nowMicros)
	switch {
	case conflicts && isConflict(wantErr) && isConflict(gotErr):
		return nil
	case conflicts || wantErr != nil || gotErr != nil:
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	}
	g.deleted[r.slot] = true
	return g.reload()
}

func (r remove) simpler() []step { return nil }
