package storetest

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"strconv"
	"testing"

	"github.com/rationhq/ration/policy"
)

//go:embed testdata/web-access.csv
var webAccess []byte

// visit is one line of the traffic.
type visit struct {
	second int64 // from the first line
	ip     string
}

// ReplayWebAccess asks a store for every request of a web site's log, in the
// log's own time, under a policy per address of 10 tokens and one more each 5
// seconds. Every answer has to be the one that a reading by hand gives.
func ReplayWebAccess(tb testing.TB, store Store) {
	tb.Helper()
	s := newScene(tb, func(testing.TB) Store { return store }, policy.Fast)
	s.install(0, 10, "1", "5")
	addresses := map[string]*fifths{}
	denied := 0
	for line, v := range visits(tb) {
		address := addresses[v.ip]
		if address == nil {
			address = &fifths{held: 50}
			addresses[v.ip] = address
		}
		want := address.visit(v.second)
		if got := s.ask(v.second*second, v.ip, 1, 1); got != want {
			tb.Fatalf("request %d, %s at %d s: %+v, want %+v", line+1, v.ip, v.second, got, want)
		}
		denied += int(1 - want.Admitted)
	}
	tb.Logf("%d addresses, %d requests denied", len(addresses), denied)
}

// fifths is the naive reading of that one policy: a full bucket is 50 fifths
// of a token, a second earns one of them and a request costs five.
type fifths struct{ held, second int64 }

func (f *fifths) visit(now int64) policy.Answer {
	for ; f.second < now && f.held < 50; f.second++ {
		f.held++
	}
	f.second = now
	var answer policy.Answer
	if f.held >= 5 {
		f.held -= 5
		answer.Admitted = 1
	}
	answer.Remaining = f.held / 5
	answer.ResetAfterMicros = (50 - f.held) * second
	if f.held < 5 {
		answer.RetryAfterMicros = (5 - f.held) * second
	}
	return answer
}

// visits reads the log.
func visits(tb testing.TB) []visit {
	tb.Helper()
	var all []visit
	eachLine(tb, webAccess, func(offset int64, line []string) {
		all = append(all, visit{second: offset, ip: line[1]}) // offset_s, ip, method, operation
	})
	return all
}

// eachLine reads a log whose first column is seconds from its beginning.
func eachLine(tb testing.TB, log []byte, read func(offset int64, line []string)) {
	tb.Helper()
	lines, err := csv.NewReader(bytes.NewReader(log)).ReadAll()
	if err != nil {
		tb.Fatalf("read the log: %v", err)
	}
	for _, line := range lines[1:] {
		offset, err := strconv.ParseInt(line[0], 10, 64)
		if err != nil {
			tb.Fatalf("read the log: %v", err)
		}
		read(offset, line)
	}
}
