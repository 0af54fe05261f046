package policy

import (
	"errors"
	"strings"
	"testing"
)

func TestGatewaysSpeakForTheirScope(t *testing.T) {
	t.Parallel()
	full := `{"operations":["report.*","search"],"regions":["eu-*"],"accounts":["acme","beta-*"]}`
	for _, c := range []struct{ scope, request, pointers string }{
		{`{}`, `{"user":"u","operation":"anything"}`, ""},
		{full, `{"verifiedAccount":"acme","region":"eu-west","operation":"search"}`, ""},
		{full, `{"verifiedAccount":"beta-1","region":"eu-","operation":"report.create"}`, ""},
		{full, `{"verifiedAccount":"acme2","region":"eu-west","operation":"search"}`, "/verifiedAccount"},
		{full, `{"verifiedAccount":"gamma","region":"us","operation":"searches"}`, "/verifiedAccount /region /operation"},
		{full, `{"user":"acme","operation":"search"}`, "/verifiedAccount /region"},
		{`{"accounts":["*"]}`, `{"verifiedAccount":"A","operation":"a"}`, ""},
		{`{"accounts":["*"]}`, `{"targetAccount":"A","operation":"a"}`, "/verifiedAccount"},
	} {
		scope, err := ParseGatewayScope([]byte(c.scope))
		if err != nil {
			t.Fatalf("%s: %v", c.scope, err)
		}
		if got := string(scope.JSON()); got != c.scope {
			t.Errorf("%s is written as %s", c.scope, got)
		}
		request, err := ParseRequest([]byte(c.request))
		if err != nil {
			t.Fatalf("%s: %v", c.request, err)
		}
		gateway := &Gateway{Name: "edge", Scope: scope}
		checkScope(t, c.scope+" "+c.request, gateway.Check(request), c.pointers)
	}
}

// checkScope wants gateway-scope with faults at the pointers, or no error
// where there are none.
func checkScope(t *testing.T, of string, err error, pointers string) {
	t.Helper()
	refused, _ := errors.AsType[*Error](err)
	var at []string
	if refused != nil && refused.Code == CodeForbidden && refused.Reason == ReasonGatewayScope {
		for _, fault := range refused.Faults {
			at = append(at, fault.Pointer)
		}
	}
	if got := strings.Join(at, " "); got != pointers || (err == nil) != (pointers == "") {
		t.Errorf("%s: %v, want faults at %q", of, err, pointers)
	}
}

func TestFaultyScopesAreRefused(t *testing.T) {
	t.Parallel()
	for scope, pointers := range map[string]string{
		`{"account":["a"]}`:                  "/account",
		`{"accounts":[]}`:                    "/accounts",
		`{"accounts":"a"}`:                   "/accounts",
		`{"accounts":["a","a"]}`:             "/accounts/1",
		`{"accounts":["a*b"],"regions":[7]}`: "/accounts/0 /regions/0",
		`{"operations":["Report"]}`:          "/operations/0",
	} {
		_, err := ParseGatewayScope([]byte(scope))
		checkPointers(t, scope, err, pointers)
	}
}

// A settlement is of an account that the gateway may speak for, and of an
// operation of its own.
func TestSettlementsStayInScope(t *testing.T) {
	t.Parallel()
	gateway := &Gateway{Name: "edge", Scope: GatewayScope{Account: {"a*"}}}
	settlement, err := ParseSettlement(gateway, "op", []byte(`{"verifiedAccount":"acme","actualCost":1}`))
	if err != nil || settlement.Operation != OperationKeyOf("edge", "acme", "op") {
		t.Errorf("%+v, %v", settlement, err)
	}
	for _, body := range []string{`{"verifiedAccount":"beta","actualCost":1}`, `{"actualCost":1}`} {
		_, err := ParseSettlement(gateway, "op", []byte(body))
		checkScope(t, body, err, "/verifiedAccount")
	}
}

func TestCallerNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"ann": true, "ann@example.org": true, "edge-1.eu_west": true,
		"": false, "@ann": false, "-a": false, "ann+x": false, "a b": false, "é": false,
		"a123456789012345678901234567890123456789012345678901234567890123":  true,
		"a1234567890123456789012345678901234567890123456789012345678901234": false,
	} {
		if ValidCallerName(name) != ok {
			t.Errorf("%q: %v, want %v", name, !ok, ok)
		}
	}
}
