package policy

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

func TestSettlementsAreOfOneOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body    string
		account string
		cost    int64
	}{
		{`{"verifiedAccount":"A","actualCost":3}`, "A", 3},
		{` {"actualCost": 0, "verifiedAccount": "A"} `, "A", 0},
		{`{"actualCost":` + strconv.FormatInt(CostMax, 10) + `}`, "", CostMax},
	} {
		got, err := ParseSettlement(&Gateway{Name: "gateway"}, "op-1", []byte(c.body))
		want := Settlement{Operation: OperationKeyOf("gateway", c.account, "op-1"), ActualCost: c.cost}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", c.body, got, err, want)
		}
	}
}

func TestFaultySettlementsAreRefused(t *testing.T) {
	t.Parallel()
	for body, pointers := range map[string]string{
		``:                                     "",
		`null`:                                 "",
		`{"actualCost":1}x`:                    "",
		`{}`:                                   "/actualCost",
		`{"actualCost":-1}`:                    "/actualCost",
		`{"actualCost":-0}`:                    "/actualCost",
		`{"actualCost":0.0}`:                   "/actualCost",
		`{"actualCost":1e2}`:                   "/actualCost",
		`{"actualCost":"0"}`:                   "/actualCost",
		`{"actualCost":null}`:                  "/actualCost",
		`{"actualCost":9223372036854775807}`:   "/actualCost",
		`{"actualCost":1,"actualCost":2}`:      "/actualCost",
		`{"verifiedAccount":"","cost":1}`:      "/verifiedAccount /cost /actualCost",
		`{"actualCost":1,"ActualCost":2}`:      "/ActualCost",
		`{"actualCost":1,"verifiedAccount":7}`: "/verifiedAccount",
	} {
		_, err := ParseSettlement(new(Gateway), "op-1", []byte(body))
		checkPointers(t, body, err, pointers)
	}
}

func TestEmptyBodies(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", " {\n} "} {
		if err := ParseEmpty([]byte(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	for body, pointers := range map[string]string{
		"null": "", "[]": "", "{}{}": "", " ": "", `{"a":1,"b":{}}`: "/a /b",
	} {
		checkPointers(t, body, ParseEmpty([]byte(body)), pointers)
	}
}

// checkPointers wants an invalid-request whose faults are at the pointers.
func checkPointers(t *testing.T, body string, err error, pointers string) {
	t.Helper()
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Reason != ReasonInvalidRequest {
		t.Errorf("%q: %v, want invalid-request", body, err)
		return
	}
	at := make([]string, len(refused.Faults))
	for i, fault := range refused.Faults {
		at[i] = fault.Pointer
	}
	if got := strings.Join(at, " "); got != pointers {
		t.Errorf("%q: faults at %q, want %q", body, got, pointers)
	}
}
