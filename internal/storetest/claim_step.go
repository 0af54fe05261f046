package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rationhq/ration/policy"
)

// retentionMicros is how long the outcomes of operation ids are kept: short
// enough for some to be cleaned while a history still asks for them.
const retentionMicros = 6 * 3600 * second

// claim is one request of a call of the general path.
type claim struct {
	operation int // the number of its operation id, from 1; 0: it has none
	content   int
	stated    int64 // 0: no cost is stated
	peek      bool
	checks    []passed // ascending by slot
}

// passed is one policy that a claim has to pass.
type passed struct {
	slot, key int
	cost      int64
	priced    bool
}

func (c claim) String() string {
	var b strings.Builder
	if c.peek {
		b.WriteString("peek ")
	}
	if c.operation > 0 {
		fmt.Fprintf(&b, "operation %d content %d ", c.operation, c.content)
	}
	if c.stated > 0 {
		fmt.Fprintf(&b, "stating %d ", c.stated)
	}
	b.WriteString("(")
	for i, check := range c.checks {
		if i > 0 {
			b.WriteString(" + ")
		}
		fmt.Fprintf(&b, "policy %d key %d: %d", check.slot, check.key, check.cost)
		if check.priced {
			b.WriteString(" priced")
		}
	}
	b.WriteString(")")
	return b.String()
}

// call is one call of the general path, on the right generation or on a stale
// one.
type call struct {
	claims []claim
	stale  bool
}

func (c call) String() string {
	claims := make([]string, len(c.claims))
	for i, one := range c.claims {
		claims[i] = one.String()
	}
	name := "claim "
	if c.stale {
		name = "claim on a stale generation "
	}
	return name + strings.Join(claims, ", ")
}

func (c call) play(g *game) *difference {
	claims := g.playable(c.claims)
	if len(claims) == 0 {
		return nil
	}
	want, wantErr := c.claim(g, claims, g.model, modelOf, g.generations.model)
	got, gotErr := c.claim(g, claims, g.subject, subjectOf, g.generations.subject)
	switch {
	case wantErr != nil || gotErr != nil:
		return g.differ("the model says %v, the subject %v", wantErr, gotErr)
	case want.Stale != c.stale || got.Stale != c.stale:
		return g.differ("want stale %t, the model says %t, the subject %t", c.stale, want.Stale, got.Stale)
	case c.stale:
		return nil
	case len(got.Verdicts) != len(claims):
		return g.differ("%d verdicts on %d claims", len(got.Verdicts), len(claims))
	}
	for i, one := range claims {
		if !g.alike(&want.Verdicts[i], &got.Verdicts[i]) {
			return g.differ("%s\n   model %+v\n subject %+v", one, want.Verdicts[i], got.Verdicts[i])
		}
		for _, part := range want.Verdicts[i].Parts {
			g.advise(part.RetryAfterMicros)
		}
	}
	g.answers += len(claims)
	return nil
}

// claim makes the call of one store, by its own versions of the policies.
func (c call) claim(
	g *game, claims []claim, store Store, of func(pair[*policy.Installed]) *policy.Installed, generation int64,
) (policy.Verdicts, error) {
	asked := policy.Claims{Generation: generation, NowMicros: g.nowMicros, RetentionMicros: retentionMicros}
	if c.stale {
		asked.Generation--
	}
	for _, one := range claims {
		made := policy.Claim{Stated: one.stated, Peek: one.peek}
		if one.operation > 0 {
			made.Operation = g.operation(one.operation)
			made.Content = keyOf("content", strconv.Itoa(one.content))
		}
		for _, check := range one.checks {
			made.Checks = append(made.Checks, policy.Check{
				Policy: of(g.policies[check.slot]), Key: g.key(check.slot, check.key), Cost: check.cost, Priced: check.priced,
			})
		}
		asked.Claims = append(asked.Claims, made)
	}
	var verdicts policy.Verdicts
	err := store.DecideClaims(g.context, &asked, &verdicts)
	return verdicts, err
}

// simpler leaves out one claim, or one check of a claim.
func (c call) simpler() []step {
	var variants []step
	for i, one := range c.claims {
		if len(c.claims) > 1 {
			variants = append(variants, call{claims: slices.Delete(slices.Clone(c.claims), i, i+1), stale: c.stale})
		}
		for j := range one.checks {
			if len(one.checks) > 1 {
				fewer := slices.Clone(c.claims)
				fewer[i].checks = slices.Delete(slices.Clone(one.checks), j, j+1)
				variants = append(variants, call{claims: fewer, stale: c.stale})
			}
		}
	}
	return variants
}

// playable is the claims without policies that a cut-down history no longer
// installs, as far as something is left of them.
func (g *game) playable(claims []claim) []claim {
	var playable []claim
	for _, c := range claims {
		c.checks = slices.DeleteFunc(slices.Clone(c.checks), func(check passed) bool { return !g.installed(check.slot) })
		if len(c.checks) > 0 || c.operation > 0 {
			playable = append(playable, c)
		}
	}
	return playable
}

// operation is the key of an operation id. No two games share one.
func (g *game) operation(number int) policy.Key {
	return keyOf(g.policyID(slotsMax), strconv.Itoa(number))
}

// alike compares verdicts, and takes over the slots that were handed out: each
// store makes up its own ids.
func (g *game) alike(want, got *policy.Verdict) bool {
	if want.Status != got.Status {
		return false
	}
	if want.Status != policy.ClaimDecided && want.Status != policy.ClaimReplayed {
		return true // there is nothing but the status
	}
	if want.Allowed != got.Allowed || want.AtMicros != got.AtMicros || len(want.Parts) != len(got.Parts) {
		return false
	}
	for i, part := range want.Parts {
		slots := pair[policy.SlotID]{model: part.Slot.ID, subject: got.Parts[i].Slot.ID}
		if !g.sameSlot(slots, want.Status == policy.ClaimDecided, part.Slot.ExpiresAtMicros) {
			return false
		}
		part.Slot.ID = slots.subject
		if g.slotOf(part.Policy, modelOf) == g.slotOf(got.Parts[i].Policy, subjectOf) {
			part.Policy = got.Parts[i].Policy
		}
		if part != got.Parts[i] {
			return false
		}
	}
	return true
}

// sameSlot says whether both stores mean the same slot, or none. A decision
// hands out new ones only.
func (g *game) sameSlot(ids pair[policy.SlotID], decided bool, expiresAtMicros int64) bool {
	none := pair[policy.SlotID]{}
	if ids == none {
		return true
	}
	if !decided {
		return slices.ContainsFunc(g.handedOut, func(h handedOut) bool { return h.ids == ids })
	}
	if ids.model == none.model || ids.subject == none.subject ||
		slices.ContainsFunc(g.handedOut, func(h handedOut) bool { return h.ids.subject == ids.subject }) {
		return false
	}
	g.handedOut = append(g.handedOut, handedOut{ids, expiresAtMicros})
	return true
}
