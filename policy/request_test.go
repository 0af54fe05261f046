package policy

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequestReadsEveryMember(t *testing.T) {
	t.Parallel()
	body := []byte(" \n" + `{"operation":"report.create","verifiedAccount":"A","user":"ü\n","apiKey":"k","oauthToken":"o",
		"ip":"[2001:DB8:0::1]:443","targetAccount":" Victim@Example.org","plan":"standard","region":"eu",
		"cost":4611686018427387903,"policyVersion":7,"policy":"report-create","requirePolicyVersion":true,
		"operationId":"0190","peek":false,"deadlineMillis":20}` + " \r\n\t")
	got, err := ParseRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body) // a request must not keep the body's memory
	want := &Request{
		Values: [AttributeCount]string{
			Account: "A", User: "ü\n", APIKey: "k", OAuthToken: "o", IP: "2001:db8::1", TargetAccount: "victim@example.org",
			Plan: "standard", Region: "eu", Operation: "report.create",
		},
		Cost: CostMax, PolicyVersion: 7, Policy: "report-create", RequirePolicyVersion: true,
		OperationID: "0190", DeadlineMillis: 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRequestNamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := ParseRequest([]byte(`{"operation":"Report","verifiedAccount":"","user":7,"ip":"unknown","cost":1.5,"x/y~":1,
		"cost":2,"peek":"yes","policyVersion":0,"policy":"-","deadlineMillis":null,"requirePolicyVersion":1}`))
	wantFaults(t, err, ReasonInvalidRequest, "/operation", "/verifiedAccount", "/user", "/ip", "/cost", "/x~1y~0",
		"/cost", "/peek", "/policyVersion", "/policy", "/deadlineMillis", "/requirePolicyVersion")
}

func TestParseRequestNeedsOperationAndIdentity(t *testing.T) {
	t.Parallel()
	_, err := ParseRequest([]byte(`{}`))
	wantFaults(t, err, ReasonInvalidRequest, "/operation", "")
	_, err = ParseRequest([]byte(`{"operation":"a","plan":"p","region":"r","requirePolicyVersion":true}`))
	wantFaults(t, err, ReasonInvalidRequest, "", "/requirePolicyVersion")
	for _, identity := range identities {
		value := "192.0.2.1"
		if _, err := ParseRequest([]byte(`{"operation":"a","` + identity.RequestMember() + `":"` + value + `"}`)); err != nil {
			t.Errorf("%s alone: %v", identity, err)
		}
	}
}

func TestPeekHasNoOperationID(t *testing.T) {
	t.Parallel()
	for _, order := range []string{`"peek":true,"operationId":"0190"`, `"operationId":"0190","peek":true`} {
		_, err := ParseRequest([]byte(`{"operation":"a","user":"u",` + order + `}`))
		wantFaults(t, err, ReasonInvalidRequest, "/operationId")
	}
	if _, err := ParseRequest([]byte(`{"operation":"a","user":"u","operationId":"0190","peek":false}`)); err != nil {
		t.Error(err)
	}
	// Each told of once, when it is faulty itself.
	_, err := ParseRequest([]byte(`{"operation":"a","user":"u","operationId":"","peek":true}`))
	wantFaults(t, err, ReasonInvalidRequest, "/operationId")
}

func TestIN1DuplicateMembers(t *testing.T) {
	t.Parallel()
	for body, pointer := range map[string]string{
		`{"operation":"a","user":"u","cost":100,"cost":1}`:                 "/cost",
		`{"operation":"a","user":"u","cost":100,"c\u006fst":1}`:            "/cost",
		`{"operation":"a","user":"u","cost":1,"Cost":100}`:                 "/Cost",
		`{"operation":"a","user":"u","COST":1}`:                            "/COST",
		`{"operation":"a","user":"u","operationId":"1","operationId":"2"}`: "/operationId",
	} {
		_, err := ParseRequest([]byte(body))
		wantFaults(t, err, ReasonInvalidRequest, pointer)
	}
	_, err := ParseChange([]byte(`{"match":{},"match":{},"per":[],"limit":{"algorithm":"token_bucket","capacity":1,"capacity":2,` +
		`"refillTokens":1,"refillSeconds":1},"costs":{"operations":{"a":1,"a":2}}}`))
	wantFaults(t, err, ReasonInvalidRequest, "/match", "/limit/capacity", "/costs/operations/a")
}

func TestIN2NothingBeyondOneObject(t *testing.T) {
	t.Parallel()
	const object = `{"operation":"a","user":"u"}`
	if _, err := ParseRequest([]byte(object + "\n  ")); err != nil {
		t.Errorf("white space behind: %v", err)
	}
	for _, body := range []string{
		object + object, object + " x", object + ",", "null", "[]", `""`, "", " ", "1", "true", "\xef\xbb\xbf" + object,
		"\xff\xfe" + object, object[:10], "{", `{"operation"}`, `{"operation":"a",}`, `{'operation':"a"}`, object + "\x00",
		`[` + object + `]`, strings.Repeat("[", 20_000),
	} {
		_, err := ParseRequest([]byte(body))
		if pointers := pointersOf(t, err, ReasonInvalidRequest); len(pointers) != 1 {
			t.Errorf("%.40q: got faults at %q, want one", body, pointers)
		}
	}
	_, err := ParseRequest([]byte(`{"operation":"a","user":"u","costt":50}`))
	wantFaults(t, err, ReasonInvalidRequest, "/costt")
	_, err = ParseRequest([]byte(`{"costt":50,"operation":"a","costt":50,"user":"u","c\u006fstt":{}}`))
	wantFaults(t, err, ReasonInvalidRequest, "/costt")
	_, err = ParseRequest([]byte(`{"operation":null,"user":"u","cost":null}`))
	wantFaults(t, err, ReasonInvalidRequest, "/operation", "/cost")
	if failure, ok := errors.AsType[*Error](err); ok {
		for i, leaveOut := range []bool{false, true} { // what is required cannot be left out
			if fault := failure.Faults[i]; strings.Contains(fault.Detail, "leave it out") != leaveOut {
				t.Errorf("%s %s", fault.Pointer, fault.Detail)
			}
		}
	}
}

func TestParseRequestCosts(t *testing.T) {
	t.Parallel()
	details := make(map[string]string)
	for _, cost := range []string{"1.5", "0", `"1"`, "1e400", "null", "4611686018427387904", "true"} {
		_, err := ParseRequest([]byte(`{"operation":"a","user":"u","cost":` + cost + `}`))
		wantFaults(t, err, ReasonInvalidRequest, "/cost")
		if failure, ok := errors.AsType[*Error](err); ok {
			if other, taken := details[failure.Faults[0].Detail]; taken {
				t.Errorf("cost %s and %s are refused in the same words: %s", cost, other, failure.Faults[0].Detail)
			}
			details[failure.Faults[0].Detail] = cost
		}
	}
	for _, cost := range []string{"-1", "-0", "1e2", "1.0", "99999999999999999999", "-99999999999999999999", "[]", "{}", "[1]"} {
		_, err := ParseRequest([]byte(`{"operation":"a","user":"u","cost":` + cost + `}`))
		wantFaults(t, err, ReasonInvalidRequest, "/cost")
	}
	for _, cost := range []string{"01", "+1", ".5", "1.", "NaN", "0x1", "1_0"} { // not JSON
		_, err := ParseRequest([]byte(`{"operation":"a","user":"u","cost":` + cost + `}`))
		if got := pointersOf(t, err, ReasonInvalidRequest); len(got) != 1 {
			t.Errorf("cost %s: got faults at %q, want one", cost, got)
		}
	}
}

func TestKE7TextBounds(t *testing.T) {
	t.Parallel()
	for _, member := range []string{"verifiedAccount", "user", "apiKey", "oauthToken", "targetAccount", "plan", "region", "operationId"} {
		for bytesCount, ok := range map[int]bool{1: true, 255: true, 256: true, 257: false, 300: false, 3000: false, 65536: false} {
			_, err := ParseRequest([]byte(`{"operation":"a","ip":"::1","` + member + `":"` + strings.Repeat("x", bytesCount) + `"}`))
			if (err == nil) != ok {
				t.Errorf("%s of %d bytes: got error %v, want one: %t", member, bytesCount, err, !ok)
			}
		}
		for _, text := range []string{"", `\u0000`, `a\u0000b`, strings.Repeat("ü", 129)} {
			_, err := ParseRequest([]byte(`{"operation":"a","ip":"::1","` + member + `":"` + text + `"}`))
			wantFaults(t, err, ReasonInvalidRequest, "/"+member)
		}
		for _, text := range []string{"\x00", "\xff", "a\xc3", `\ud800`, "\xed\xa0\x80", "\n", `\x`} { // not JSON
			_, err := ParseRequest([]byte(`{"operation":"a","ip":"::1","` + member + `":"` + text + `"}`))
			if got := pointersOf(t, err, ReasonInvalidRequest); len(got) != 1 {
				t.Errorf("%s %q: got faults at %q, want one", member, text, got)
			}
		}
	}
}

func TestParseRequestOperations(t *testing.T) {
	t.Parallel()
	for operation, ok := range map[string]bool{
		"a": true, "0": true, "report.create": true, "a:/-_.9": true, strings.Repeat("a", 256): true,
		"": false, "A": false, ".a": false, "-": false, "a*": false, "a b": false, "ä": false, strings.Repeat("a", 257): false, `a\u0000`: false,
	} {
		_, err := ParseRequest([]byte(`{"user":"u","operation":"` + operation + `"}`))
		if (err == nil) != ok {
			t.Errorf("operation %.20q: got error %v, want one: %t", operation, err, !ok)
		}
	}
}

func TestParseBatch(t *testing.T) {
	t.Parallel()
	parsed, err := ParseBatch([]byte(`{"decisions": [ {"operation":"a","user":"u"} , {"operation":"a"},[], {"operation":"b","user":"],}"}]}`), 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed) != 4 || parsed[0].Err != nil || parsed[3].Err != nil || parsed[0].Request.Values[Operation] != "a" || parsed[3].Request.Values[User] != "],}" {
		t.Errorf("good items: got %+v", parsed)
	}
	wantFaults(t, parsed[1].Err, ReasonInvalidRequest, "")
	wantFaults(t, parsed[2].Err, ReasonInvalidRequest, "")

	for body, pointers := range map[string][]string{
		`{}`:                        {"/decisions"},
		`{"decisions":[]}`:          {"/decisions"},
		`{"decisions":{}}`:          {"/decisions"},
		`{"decisions":null}`:        {"/decisions"},
		`{"decisions":[1,2,3,4,5]}`: {"/decisions"},
		`{"decisions":[1],"decisions":[1],"x":{}}`: {"/decisions", "/x"},
		`[]`: {""},
	} {
		_, err := ParseBatch([]byte(body), 4)
		wantFaults(t, err, ReasonInvalidRequest, pointers...)
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		`{"verifiedAccount":"A","operation":"report.create","cost":5,"policyVersion":7}`,
		` {"operation":"a","ip":"[::1]:80","targetAccount":"\ufb01","x":{"y":["]}\\\"",{}]}} `,
		`{"cost":1e400,"cost":-1,"c\u006fst":"1"}`, `{"a":[],"b":{},"c":tru}`, "\xef\xbb\xbf{}", `{"operation":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		request, err := ParseRequest(body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was written to")
		}
		if err != nil {
			if len(pointersOf(t, err, ReasonInvalidRequest)) == 0 {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		checkCanonical(t, request)
		// As an item of a batch it must read the same, whatever surrounds it.
		parsed, err := ParseBatch([]byte(`{"decisions":[{"x":[{}]},`+string(body)+`,{"y":"]"}]}`), 3)
		if err != nil || len(parsed) != 3 {
			t.Fatalf("in a batch: %v", err)
		}
		if diff := cmp.Diff(request, parsed[1].Request); diff != "" {
			t.Fatalf("in a batch (-alone +batch):\n%s", diff)
		}
	})
}

// checkCanonical checks what everyone else relies on in a parsed request.
func checkCanonical(t *testing.T, request *Request) {
	t.Helper()
	identified := false
	for _, identity := range identities {
		identified = identified || request.Values[identity] != ""
	}
	if !identified || !isOperation(request.Values[Operation]) {
		t.Fatalf("accepted without identity or operation: %+v", request)
	}
	for attribute, value := range request.Values {
		if len(value) > TextBytesMax || strings.ContainsRune(value, 0) || strings.ToValidUTF8(value, "") != value {
			t.Fatalf("%s is %q", Attribute(attribute), value)
		}
	}
	if request.Peek && request.OperationID != "" {
		t.Fatalf("accepted a peek with an operation id: %+v", request)
	}
	if request.Cost < 0 || request.Cost > CostMax || request.PolicyVersion < 0 || request.DeadlineMillis < 0 {
		t.Fatalf("figures out of bounds: %+v", request)
	}
}
