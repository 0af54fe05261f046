package policy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pointersOf gives where an error's faults are, in the order they were found.
func pointersOf(t *testing.T, err error, want Reason) []string {
	t.Helper()
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *Error of reason %s", err, want)
	}
	if failure.Reason != want {
		t.Fatalf("got reason %s (%v), want %s", failure.Reason, failure, want)
	}
	var pointers []string
	for _, fault := range failure.Faults {
		if fault.Detail == "" {
			t.Errorf("the fault at %q says nothing", fault.Pointer)
		}
		pointers = append(pointers, fault.Pointer)
	}
	return pointers
}

// wantFaults checks an error's reason and the places of its faults.
func wantFaults(t *testing.T, err error, reason Reason, pointers ...string) {
	t.Helper()
	if diff := cmp.Diff(pointers, pointersOf(t, err, reason)); diff != "" {
		t.Errorf("pointers of faults (-want +got):\n%s%v", diff, err)
	}
}
