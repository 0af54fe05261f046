package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

// decodedDetail is what a gateway reads of a decision beside [decodedAnswer].
type decodedDetail struct {
	decodedAnswer

	OperationID *string
	Slots       []struct{ SlotID, Policy, ExpiresAt string }
	Policies    []decodedPart
}

// decodedPart is one policy's part as a gateway reads it.
type decodedPart struct {
	Policy           string
	Version          int
	Limit, Remaining int64
	RetryAfterMillis *int64
	Allowed          bool
	Mode             string
}

// FuzzAppendDetail compares the encoder with encoding/json's reading of what
// it wrote, and holds that what a caller may not read is never there.
func FuzzAppendDetail(f *testing.F) {
	f.Add("op-1", "report-create", int64(35), int64(0), true, true, true, false)
	f.Add("", "sign-in", int64(0), int64(59_000_001), false, false, true, false)
	f.Add("", "watched", int64(3), int64(1_000), false, false, true, true)
	f.Add("\"\\\n\x00\xff", "a\"b", int64(1)<<62, policy.Never, true, false, false, true)
	f.Fuzz(func(t *testing.T, operationID, id string, remaining, waitMicros int64, slot, second, discloses, shadow bool) {
		waitMicros = max(waitMicros, policy.Never)
		spec, mode := &policy.Spec{Limit: policy.Limit{Capacity: 40}, Disclose: discloses}, policy.Enforce
		if shadow {
			mode = policy.Shadow
		}
		part := policy.DecisionPart{
			Policy: &policy.Installed{ID: id, Version: 7, Spec: spec, Mode: mode}, Allowed: waitMicros == 0,
			Remaining: remaining, RetryAfterMicros: waitMicros,
		}
		if slot {
			part.Slot = policy.Slot{ID: policy.SlotID{1}, ExpiresAtMicros: 1_767_323_045_250_001}
		}
		d := policy.Decision{Policy: part.Policy, Allowed: true, Detail: &policy.Detail{OperationID: operationID, Parts: []policy.DecisionPart{part}}}
		if second {
			hidden := policy.DecisionPart{Policy: &policy.Installed{ID: "hidden", Spec: new(policy.Spec)}}
			d.Detail.Parts = append(d.Detail.Parts, hidden)
		}
		text := string(append(appendDecision([]byte("{"), &d, 0), '}'))
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		var got decodedDetail
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if (got.OperationID != nil) != (operationID != "") {
			t.Errorf("operation id %q: %s", operationID, text)
		}
		if (len(got.Slots) == 1) != slot || slot && (got.Slots[0].SlotID != part.Slot.ID.String() || got.Slots[0].ExpiresAt != "2026-01-02T03:04:05.250001Z") {
			t.Errorf("slot %v: %s", slot, text)
		}
		if shown := discloses && (second || shadow); (len(got.Policies) == 1) != shown || strings.Contains(text, `"hidden"`) && id != "hidden" {
			t.Errorf("the part is to be shown %v, and no other: %s", shown, text)
		}
		for _, p := range got.Policies {
			if p.Version != 7 || p.Limit != 40 || p.Remaining != remaining || p.Allowed != part.Allowed || p.Mode != mode.String() {
				t.Errorf("%s does not say %+v", text, part)
			}
			checkWait(t, p.RetryAfterMillis, waitMicros, microsPerMilli)
		}
	})
}
