package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/rationhq/ration/internal/trace"
)

// Report is what a simulation came to.
type Report struct {
	Trace    Trace     `json:"trace"`
	Policies []Outcome `json:"policies"`
}

// Trace is what there was to try policies on.
type Trace struct {
	Lines      int       `json:"lines"`
	Requests   int64     `json:"requests"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	OutOfOrder int64     `json:"outOfOrder"` // requests with an earlier time than one before them
	BadLines   int       `json:"badLines"`
	FirstBad   []BadLine `json:"firstBad,omitempty"`
}

// BadLine is a line that is no request.
type BadLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Outcome is what one policy would have done.
type Outcome struct {
	Policy      string  `json:"policy"`
	Limit       string  `json:"limit"` // in words
	Checked     int64   `json:"checked"`
	Allowed     int64   `json:"allowed"`
	Denied      int64   `json:"denied"`
	DeniedShare float64 `json:"deniedShare"` // of what was checked, 0 to 1
	Unmatched   int64   `json:"unmatched"`   // requests that it does not speak of
	Missing     int64   `json:"missing"`     // that lack an attribute of its key, and pass it
	Refused     int64   `json:"refused"`     // that would be refused as faulty: a missing attribute, a stated cost
	Keys        int     `json:"keys"`
	KeysDenied  int     `json:"keysDenied"`
	WorstWait   Wait    `json:"worstWait"`
	Peak        Peak    `json:"peakSecond"`
	WorstKeys   []Key   `json:"worstKeys"`

	timeline timeline
}

// Wait is the longest wait that a denial advised.
type Wait struct {
	Millis int64 `json:"millis"` // rounded up; 0: none
	Never  bool  `json:"never"`  // a cost was above the limit
}

// Peak is the second in which most requests were allowed.
type Peak struct {
	Allowed int64     `json:"allowed"`
	At      time.Time `json:"at"`
}

// Key is what one key asked and was given.
type Key struct {
	Key         string    `json:"key"`
	Allowed     int64     `json:"allowed"`
	Denied      int64     `json:"denied"`
	WorstWait   Wait      `json:"worstWait"`
	FirstDenied time.Time `json:"firstDenied"`
}

// Report gives what came of it, with at most top of each policy's keys that
// were denied most.
func (s *Simulation) Report(from *trace.Reader, top int) *Report {
	report := &Report{Trace: Trace{
		Lines: from.Lines(), Requests: s.requests, OutOfOrder: s.behind, BadLines: from.Faults.Count,
		From: instant(s.fromMicros), To: instant(s.toMicros),
	}}
	for _, fault := range from.Faults.First {
		report.Trace.FirstBad = append(report.Trace.FirstBad, BadLine(fault))
	}
	for _, trial := range s.trials {
		report.Policies = append(report.Policies, trial.outcome(top))
	}
	return report
}

func (t *trial) outcome(top int) Outcome {
	o := Outcome{
		Policy: t.Name, Limit: t.Spec.Limit.String(),
		Checked: t.allowed + t.denied, Allowed: t.allowed, Denied: t.denied,
		Unmatched: t.unmatched, Missing: t.missing, Refused: t.faulty,
		Keys: len(t.keys), WorstWait: waitOf(t.worstWait),
		Peak:     Peak{Allowed: t.peak, At: instant(t.peakSecond * microsPerSecond)},
		timeline: t.timeline, WorstKeys: []Key{},
	}
	if o.Checked > 0 {
		o.DeniedShare = float64(o.Denied) / float64(o.Checked)
	}
	var denied []*usage
	for _, key := range t.keys {
		if key.denied > 0 {
			denied = append(denied, key)
		}
	}
	o.KeysDenied = len(denied)
	slices.SortFunc(denied, func(a, b *usage) int {
		return cmp.Or(cmp.Compare(b.denied, a.denied), cmp.Compare(b.worstWait, a.worstWait), cmp.Compare(a.name, b.name))
	})
	for _, key := range denied[:min(top, len(denied))] {
		o.WorstKeys = append(o.WorstKeys, Key{
			Key: key.name, Allowed: key.allowed, Denied: key.denied,
			WorstWait: waitOf(key.worstWait), FirstDenied: instant(key.firstDenied),
		})
	}
	return o
}

func waitOf(micros int64) Wait {
	if micros == never {
		return Wait{Never: true}
	}
	return Wait{Millis: ceilDiv(micros, 1000)}
}

func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
