package trace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/trace"
	"github.com/rationhq/ration/policy"
)

// Whatever a file holds, it is read to its end, and each request is one that
// can be matched.
func FuzzTrace(f *testing.F) {
	f.Add("time,ip,operation\n1,192.0.2.1,\"x\"\"\"\n")
	f.Add("192.0.2.1 - a [30/Nov/2026:07:00:00 +0100] \"POST http://h/login?x HTTP/1.1\" 200 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		form, err := trace.ParseTimeForm("seconds", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		csv, csvErr := trace.CSV(strings.NewReader(text), nil, form, trace.Defaults{})
		access, accessErr := trace.AccessLog(strings.NewReader(text), nil, trace.Defaults{})
		if csvErr == nil {
			checkRequests(t, csv)
		}
		if accessErr == nil {
			checkRequests(t, access)
		}
	})
}

func checkRequests(t *testing.T, reader *trace.Reader) {
	t.Helper()
	for {
		record, err := reader.Next()
		if err != nil {
			return // its end, or that of what is packed in it
		}
		if record.AtMicros < 0 || record.AtMicros > policy.InstantMicrosMax || record.Request.Values[policy.Operation] == "" {
			t.Errorf("%+v", record)
		}
		for attribute, value := range record.Request.Values {
			if value == "" {
				continue
			}
			if canonical, err := policy.CanonicalValue(policy.Attribute(attribute), value); err != nil || canonical != value {
				t.Errorf("%s %q is not canonical: %q, %v", policy.Attribute(attribute), value, canonical, err)
			}
		}
	}
}
