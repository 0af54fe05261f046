package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeyReset(t *testing.T) {
	t.Parallel()
	reset, err := ParseKeyReset([]byte(`{"policy":"login","ip":"::ffff:192.0.2.1","targetAccount":" ANN ","to":"empty","reason":"attack"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := KeyReset{PolicyID: "login", To: StartEmpty, Reason: "attack"}
	want.Values[IP], want.Values[TargetAccount] = "192.0.2.1", "ann"
	if diff := cmp.Diff(want, *reset); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for body, fault := range map[string]string{
		`{"to":"full","reason":"x"}`:                                  "/policy is required",
		`{"policy":"p","reason":"x"}`:                                 "/to is required",
		`{"policy":"p","to":"half","reason":"x"}`:                     "/to must be one of full, empty",
		`{"policy":"p","to":"full"}`:                                  "/reason is required",
		`{"policy":"p","to":"full","reason":""}`:                      "/reason must be 1 to 1000 bytes",
		`{"policy":"p","to":"full","reason":"x","account":"A"}`:       "/account is not a known member",
		`{"policy":"p","to":"full","reason":"x","ip":"here"}`:         "/ip ",
		`{"policy":"p","to":"full","reason":"x","releaseSlots":1}`:    "/releaseSlots must be true or false",
		`{"policy":"p","to":"full","reason":"x","user":"a","user":1}`: "/user occurs more than once",
	} {
		if _, err := ParseKeyReset([]byte(body)); !faulty(err, fault) {
			t.Errorf("%s: %v, want %s", body, err, fault)
		}
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	spec := &Spec{Per: []Attribute{Account, Operation}}
	values, err := ParseValues(map[string][]string{"verifiedAccount": {"A"}, "operation": {"report.create"}})
	if err != nil || spec.CheckKey(values) != nil {
		t.Errorf("%v, %v", err, spec.CheckKey(values))
	}
	values, err = ParseValues(map[string][]string{"verifiedAccount": {"A"}, "ip": {"192.0.2.1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{"/operation is required", "/ip is no part"} {
		if err := spec.CheckKey(values); !faulty(err, fault) {
			t.Errorf("%v, want %s", err, fault)
		}
	}
	for name, of := range map[string][]string{"account": {"A"}, "ip": {"here"}, "user": {"a", "b"}, "operation": {"No"}} {
		if _, err := ParseValues(map[string][]string{name: of}); !faulty(err, "/"+name+" ") {
			t.Errorf("%s=%v: %v", name, of, err)
		}
	}
}

// faulty says whether an error tells a fault, with its pointer in front.
func faulty(err error, fault string) bool {
	known, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(known.Error(), "; "+fault)
}
