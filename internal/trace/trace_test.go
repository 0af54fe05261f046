package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/internal/trace"
	"github.com/rationhq/ration/policy"
)

// told is a record in short.
type told struct {
	at, ip, user, operation string
	cost                    int64
}

// readAll reads a trace to its end.
func readAll(t *testing.T, reader *trace.Reader, err error) []told {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var all []told
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		values := &record.Request.Values
		all = append(all, told{
			at: time.UnixMicro(record.AtMicros).UTC().Format(time.RFC3339Nano), cost: record.Request.Cost,
			ip: values[policy.IP], user: values[policy.User], operation: values[policy.Operation],
		})
	}
}

func form(t *testing.T, name string, since time.Time) trace.TimeForm {
	t.Helper()
	form, err := trace.ParseTimeForm(name, since)
	if err != nil {
		t.Fatal(err)
	}
	return form
}

var epoch = time.Unix(0, 0)

func TestCSV(t *testing.T) {
	t.Parallel()
	const text = "\xef\xbb\xbfwhen,ip,\"who, really\",operation,cost,other\r\n" +
		"2026-11-30T06:00:00Z,::ffff:192.0.2.1,\"a \"\"b\"\", c\",report.read,5,x\r\n" +
		"\n" +
		"2026-11-30T07:00:00.5+01:00,2001:db8::1,,,,\n" +
		"2026-11-30 06:00:00,192.0.2.1,,report.read,,\n" +
		"2026-11-30T06:00:00Z,nowhere,,report.read,,\n" +
		"2026-11-30T06:00:00Z,,,report.read,,\n" +
		"2026-11-30T06:00:00Z,192.0.2.1,,REPORT,,\n" +
		"2026-11-30T06:00:00Z,192.0.2.1,,report.read,-1,\n" +
		",192.0.2.1,,report.read,,\n" +
		"short\n" +
		"2026-11-30T06:00:00Z,\"192.0.2.1,,report.read,,\n"
	var defaults trace.Defaults
	if err := defaults.Set("operation", "unknown"); err != nil {
		t.Fatal(err)
	}
	reader, err := trace.CSV(strings.NewReader(text), map[string]string{"when": "time", "who, really": "user"}, form(t, "rfc3339", epoch), defaults)
	want := []told{
		{at: "2026-11-30T06:00:00Z", ip: "192.0.2.1", user: `a "b", c`, operation: "report.read", cost: 5},
		{at: "2026-11-30T06:00:00.5Z", ip: "2001:db8::1", operation: "unknown"},
	}
	if got := readAll(t, reader, err); !cmp.Equal(want, got, cmp.AllowUnexported(told{})) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	wantFaults := trace.Faults{Count: 8, First: []trace.Fault{
		{Line: 5, Reason: `has the time "2026-11-30 06:00:00", which is not of the form 2006-01-02T15:04:05Z`},
		{Line: 6, Reason: `has the ip "nowhere", which must be an IP address`},
		{Line: 7, Reason: "says nothing of who the request is from"},
		{Line: 8, Reason: `has the operation "REPORT", which must match [a-z0-9][a-z0-9._:/-]* in 1 to 256 bytes`},
		{Line: 9, Reason: `has the cost "-1", which is no whole number from 1`},
	}}
	if diff := cmp.Diff(wantFaults, reader.Faults); diff != "" {
		t.Errorf("bad lines (-want +got):\n%s", diff)
	}
	if reader.Lines() != 12 {
		t.Errorf("%d lines, want 12", reader.Lines())
	}
}

func TestImpossibleCSV(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header  string
		columns map[string]string
		fault   string
	}{
		{header: "", fault: "is empty"},
		{header: "when,ip", fault: "no column is the time"},
		{header: "time,ip", columns: map[string]string{"address": "ip"}, fault: `no column "address"`},
		{header: "time,ip", columns: map[string]string{"ip": "colour"}, fault: `cannot be "colour"`},
		{header: "time,verifiedAccount,account", fault: "both account"},
		{header: `time,"ip`, fault: "does not end on it"},
	} {
		_, err := trace.CSV(strings.NewReader(c.header), c.columns, form(t, "rfc3339", epoch), trace.Defaults{})
		if err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %v, want %q in it", c.header, err, c.fault)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	since := time.Date(2015, time.May, 17, 10, 5, 3, 0, time.UTC)
	for _, c := range []struct {
		form  string
		since time.Time
		text  string
		want  string // "": none
	}{
		{"seconds", epoch, "1796018400", "2026-11-30T06:00:00Z"},
		{"seconds", epoch, "1796018400.1234567", "2026-11-30T06:00:00.123456Z"},
		{"seconds", since, "61", "2015-05-17T10:06:04Z"},
		{"millis", epoch, "1796018400123", "2026-11-30T06:00:00.123Z"},
		{"micros", epoch, "1796018400123456", "2026-11-30T06:00:00.123456Z"},
		{"seconds", epoch, "1796018400123", ""},
		{"seconds", epoch, "-1", ""},
		{"seconds", epoch, "1e3", ""},
		{"micros", since, "9223372036854775807", ""},
		{"rfc3339", epoch, "1796018400", ""},
		{"rfc3339", epoch, "1969-12-31T23:59:59Z", ""},
	} {
		reader, err := trace.CSV(strings.NewReader("time,ip,operation\n"+c.text+",192.0.2.1,x\n"), nil, form(t, c.form, c.since), trace.Defaults{})
		got := readAll(t, reader, err)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].at != c.want) {
			t.Errorf("%s %q is %+v, want %q", c.form, c.text, got, c.want)
		}
	}
	if _, err := trace.ParseTimeForm("minutes", epoch); err == nil {
		t.Error("minutes are a form of time")
	}
}

const mapped = `
# method path operation
POST /login       auth.login   # the form
GET  /reports/*   report.read
*    /reports/**  report.change
`

func TestAccessLog(t *testing.T) {
	t.Parallel()
	operations, err := trace.ParseOperations(strings.NewReader(mapped))
	if err != nil {
		t.Fatal(err)
	}
	const text = `192.0.2.1 - - [30/Nov/2026:07:00:00 +0100] "POST /login?next=/reports/7 HTTP/1.1" 200 2326
2001:db8::7 - alice [30/Nov/2026:06:00:01 +0000] "GET /reports/7 HTTP/2.0" 200 12 "https://example.org/" "Mozilla/5.0 (\"x\")"
192.0.2.1 - - [30/Nov/2026:06:00:01 +0000] "GET /reports HTTP/1.1" 301 -
192.0.2.1 - - [30/Nov/2026:06:00:01 +0000] "DELETE http://example.org/reports/7/lines/8 HTTP/1.1" 204 -
192.0.2.1 - - [30/Nov/2026:06:00:01 +0000] "GET /login HTTP/1.1" 200 1
192.0.2.1 - - [30/Nov/2026:06:00:02 +0000] "\x16\x03\x01" 400 226
192.0.2.1 - - [30/Nov/2026:06:00:02 +0000] "-" 408 -
host.example.org - - [30/Nov/2026:06:00:02 +0000] "GET / HTTP/1.1" 200 1
192.0.2.1 - - [31/Nov/2026:06:00:02 +0000] "GET / HTTP/1.1" 200 1
nonsense
`
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	_, _ = packer.Write([]byte(text))
	_ = packer.Close()
	want := []told{
		{at: "2026-11-30T06:00:00Z", ip: "192.0.2.1", operation: "auth.login"},
		{at: "2026-11-30T06:00:01Z", ip: "2001:db8::7", user: "alice", operation: "report.read"},
		{at: "2026-11-30T06:00:01Z", ip: "192.0.2.1", operation: "report.change"},
		{at: "2026-11-30T06:00:01Z", ip: "192.0.2.1", operation: "report.change"},
		{at: "2026-11-30T06:00:01Z", ip: "192.0.2.1", operation: "http.get"},
	}
	for name, input := range map[string]io.Reader{"plain": strings.NewReader(text), "gzip": &packed} {
		reader, err := trace.AccessLog(input, operations, trace.Defaults{})
		if got := readAll(t, reader, err); !cmp.Equal(want, got, cmp.AllowUnexported(told{})) {
			t.Errorf("%s: read %+v, want %+v", name, got, want)
		}
		if reader.Faults.Count != 5 || reader.Faults.First[4].Line != 10 {
			t.Errorf("%s: bad lines %+v, want 5", name, reader.Faults)
		}
	}
}

func TestImpossibleMappings(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]string{
		"GET /x":                         "2 words",
		"\nget /x x":                     "line 2",
		"GET x x":                        "begin with /",
		"GET /a*/b x":                    "whole segment",
		"GET /**/b x":                    "last one",
		"GET /x X":                       "must match",
		strings.Repeat("* /x x\n", 1001): "more than 1000",
	} {
		if _, err := trace.ParseOperations(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%.20q: %v, want %q in it", text, err, fault)
		}
	}
}

// A line of any length takes no more memory than the longest there can be, and
// a trace that breaks off is told of.
func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	text := "time,ip,operation\n1," + strings.Repeat("9", 200<<10) + ",x\n2,192.0.2.1,x"
	reader, err := trace.CSV(strings.NewReader(text), nil, form(t, "seconds", epoch), trace.Defaults{})
	if got := readAll(t, reader, err); len(got) != 1 || reader.Faults.Count != 1 || reader.Faults.First[0].Line != 2 {
		t.Errorf("read %+v with bad lines %+v", got, reader.Faults)
	}
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	_, _ = packer.Write([]byte(text))
	_ = packer.Close()
	broken := bytes.NewReader(packed.Bytes()[:packed.Len()/2])
	reader, err = trace.CSV(broken, nil, form(t, "seconds", epoch), trace.Defaults{})
	for err == nil {
		_, err = reader.Next()
	}
	if errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "read the trace: unexpected EOF") {
		t.Errorf("a file that breaks off ends with %v", err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	var defaults trace.Defaults
	for _, c := range [][2]string{{"colour", "red"}, {"ip", "here"}, {"operation", "X"}} {
		if err := defaults.Set(c[0], c[1]); err == nil {
			t.Errorf("%s can be %q", c[0], c[1])
		}
	}
	if err := defaults.Set("verifiedAccount", "A"); err != nil || defaults[policy.Account] != "A" {
		t.Errorf("%v, %q", err, defaults[policy.Account])
	}
}
