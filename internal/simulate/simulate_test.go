package simulate_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rationhq/ration/internal/simulate"
	"github.com/rationhq/ration/internal/trace"
	"github.com/rationhq/ration/policy"
)

// run tries policies, given by name and body, on lines of time, account,
// operation and cost.
func run(t *testing.T, keysMax int, lines string, policies ...[2]string) (*simulate.Report, error) {
	t.Helper()
	var candidates []simulate.Candidate
	for _, named := range policies {
		change, err := policy.ParseChange([]byte(named[1]))
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, simulate.Candidate{Name: named[0], Spec: change.Spec})
	}
	simulation, err := simulate.New(candidates, keysMax)
	if err != nil {
		return nil, err
	}
	form, err := trace.ParseTimeForm("seconds", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var defaults trace.Defaults
	if err := defaults.Set("ip", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	reader, err := trace.CSV(strings.NewReader("time,account,operation,cost\n"+lines), nil, form, defaults)
	if err != nil {
		t.Fatal(err)
	}
	if err := simulation.Run(reader); err != nil {
		return nil, err
	}
	return simulation.Report(reader, 4), nil
}

const pair = `{"match": {"operations": ["read"]}, "per": ["account"], "mode": "disabled", "costs": {"max": 9},
	"limit": {"algorithm": "token_bucket", "capacity": 2, "refillTokens": 1, "refillSeconds": 10}}`

// Figures worked by hand: a disabled policy is tried as if enforced, a request
// out of order is asked at its own time and counted in the second that the
// clock shows, and what a policy does not check is told apart.
func TestReport(t *testing.T) {
	t.Parallel()
	report, err := run(t, 10, `100,A,read,
100,A,read,
101.0005,A,read,
103,A,read,
102,B,read,
98,B,read,
102,C,read,
104,B,read,2
104,C,read,3
104,D,read,
104,D,read,
104,E,read,2
105,E,read,
105,D,read,
106,,read,
106,A,write,
106,A,read,10
nonsense
110,A,read,
`, [2]string{"pair", pair})
	if err != nil {
		t.Fatal(err)
	}
	at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
	want := &simulate.Report{
		Trace: simulate.Trace{
			Lines: 20, Requests: 18, From: at(98), To: at(110), OutOfOrder: 3, BadLines: 1,
			FirstBad: []simulate.BadLine{{Line: 19, Reason: "has 1 columns, and the first line 4"}},
		},
		Policies: []simulate.Outcome{{
			Policy: "pair", Limit: "2 at once, 1 every 10 s",
			Checked: 15, Allowed: 9, Denied: 6, DeniedShare: 0.4, Unmatched: 1, Missing: 1, Refused: 1,
			Keys: 5, KeysDenied: 5, WorstWait: simulate.Wait{Never: true},
			Peak: simulate.Peak{Allowed: 3, At: at(103)},
			WorstKeys: []simulate.Key{
				{Key: "account=A", Allowed: 3, Denied: 2, WorstWait: simulate.Wait{Millis: 9000}, FirstDenied: at(101).Add(500 * time.Microsecond)},
				{Key: "account=C", Allowed: 1, Denied: 1, WorstWait: simulate.Wait{Never: true}, FirstDenied: at(104)},
				{Key: "account=B", Allowed: 2, Denied: 1, WorstWait: simulate.Wait{Millis: 18000}, FirstDenied: at(104)},
				{Key: "account=D", Allowed: 2, Denied: 1, WorstWait: simulate.Wait{Millis: 9000}, FirstDenied: at(105)},
			},
		}},
	}
	if diff := cmp.Diff(want, report, cmpopts.IgnoreUnexported(simulate.Outcome{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestImpossibleSimulations(t *testing.T) {
	t.Parallel()
	slots := strings.Replace(pair, `"token_bucket", "capacity": 2, "refillTokens": 1, "refillSeconds": 10`, `"concurrency", "limit": 2, "ttlSeconds": 10`, 1)
	if _, err := run(t, 10, "100,A,read,\n", [2]string{"slots", slots}); err == nil || !strings.Contains(err.Error(), "slots cannot be simulated") {
		t.Errorf("slots: %v", err)
	}
	if _, err := run(t, 1, "100,A,read,\n100,B,read,\n", [2]string{"pair", pair}); err == nil || !strings.Contains(err.Error(), "policy pair has more than 1 keys") {
		t.Errorf("a key too many: %v", err)
	}
}

// The picture is well-formed whatever a policy is called, and small however
// long the traffic is.
func TestPicture(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for _, at := range []string{"0", "1", "2", "100000000", "99999999", "253402300799"} {
		lines.WriteString(at + ",A,read,2\n" + at + ",A,read,2\n")
	}
	report, err := run(t, 10, lines.String(), [2]string{`<&"'>`, pair}, [2]string{"b", strings.Replace(pair, "read", "write", 1)})
	if err != nil {
		t.Fatal(err)
	}
	var drawn bytes.Buffer
	if err := report.WriteSVG(&drawn); err != nil {
		t.Fatal(err)
	}
	if drawn.Len() > 20<<10 {
		t.Errorf("%d bytes", drawn.Len())
	}
	for decoder := xml.NewDecoder(&drawn); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for number, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := simulate.Grouped(number); got != want {
			t.Errorf("%d is written %s, want %s", number, got, want)
		}
	}
	for share, want := range map[float64]string{0: "0.0%", 0.0001: "< 0.1%", 0.0496: "5.0%", 1: "100.0%"} {
		if got := simulate.Percent(share); got != want {
			t.Errorf("%g is written %s, want %s", share, got, want)
		}
	}
}
