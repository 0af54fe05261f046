package storetest

import (
	"context"
	"fmt"
	"math"

	"github.com/rationhq/ration/policy"
)

// The faulty stores each have one fault that a limiter has had, so that the
// suite is known to be able to fail.

// floats keeps tokens as floating-point numbers, rounds what was earned down
// to whole ones and moves its instant at every check.
type floats struct {
	Store

	policies map[int32]*policy.Installed
	held     map[policy.Key]*float
}

type float struct {
	tokens   float64
	atMicros int64
}

func (f floats) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	installed, err := f.Store.Install(ctx, id, change, expected, nowMicros)
	if err == nil {
		f.policies[installed.Number] = installed
	}
	return installed, err
}

func (f floats) Decide(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	if err := f.Store.Decide(ctx, batch, answers); err != nil || answers.Stale {
		return err
	}
	for i, ask := range batch.Asks {
		answers.Asks[i] = f.answer(ask, batch.NowMicros)
	}
	return nil
}

func (f floats) answer(ask policy.Ask, nowMicros int64) policy.Answer {
	limit := f.policies[ask.Policy].Spec.Limit
	capacity, rate := float64(limit.Capacity), float64(limit.Rate.N)/float64(limit.Rate.D)
	held := f.held[ask.Key]
	if held == nil {
		held = &float{tokens: capacity, atMicros: nowMicros}
		f.held[ask.Key] = held
	}
	held.tokens = min(capacity, held.tokens+math.Floor(float64(nowMicros-held.atMicros)*rate))
	held.atMicros = nowMicros

	cost := float64(ask.Cost)
	var answer policy.Answer
	for answer.Admitted < ask.Count && held.tokens >= cost {
		held.tokens -= cost
		answer.Admitted++
	}
	answer.Remaining = int64(held.tokens)
	answer.ResetAfterMicros = int64(math.Ceil((capacity - held.tokens) / rate))
	answer.RetryAfterMicros = int64(math.Ceil(max(0, cost-held.tokens) / rate))
	if cost > capacity {
		answer.RetryAfterMicros = policy.Never
	}
	return answer
}

// eager advises to come back a microsecond early.
type eager struct{ Store }

func (e eager) Decide(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	err := e.Store.Decide(ctx, batch, answers)
	for i := range answers.Asks {
		if wait := &answers.Asks[i].RetryAfterMicros; *wait > 0 {
			*wait--
		}
	}
	return err
}

// greedy charges for peeks.
type greedy struct{ Store }

func (g greedy) Decide(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	charged := *batch
	charged.Asks = nil
	for _, ask := range batch.Asks {
		ask.Count = max(1, ask.Count)
		charged.Asks = append(charged.Asks, ask)
	}
	err := g.Store.Decide(ctx, &charged, answers)
	for i, ask := range batch.Asks[:len(answers.Asks)] {
		answers.Asks[i].Admitted = min(answers.Asks[i].Admitted, ask.Count)
	}
	return err
}

// obliging decides whatever generation it is asked about.
type obliging struct{ Store }

func (o obliging) Decide(ctx context.Context, batch *policy.Batch, answers *policy.Answers) error {
	current := *batch
	var err error
	if current.Generation, err = o.Generation(ctx); err != nil {
		return err
	}
	return o.Store.Decide(ctx, &current, answers)
}

// tidy deletes what will be idle in an hour.
type tidy struct{ Store }

func (t tidy) Clean(ctx context.Context, nowMicros int64) (int, error) {
	return t.Store.Clean(ctx, nowMicros+3600*second)
}

// backdating puts versions in force a second before they are installed.
type backdating struct{ Store }

func (b backdating) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	installed, err := b.Store.Install(ctx, id, change, expected, nowMicros-second)
	if err != nil {
		return nil, err
	}
	dated := *installed
	dated.InstalledAtMicros += second
	return &dated, nil
}

// forgetful begins every version with full buckets.
type forgetful struct {
	Store

	versions map[string]int
}

func (f forgetful) Install(
	ctx context.Context, id string, change *policy.Change, expected int, nowMicros int64,
) (*policy.Installed, error) {
	if f.versions[id] != expected {
		return nil, &policy.Error{Code: policy.CodeConflict, Reason: policy.ReasonVersionConflict}
	}
	installed, err := f.Store.Install(ctx, fmt.Sprintf("%s-%d", id, expected), change, 0, nowMicros)
	if err != nil {
		return nil, err
	}
	f.versions[id]++
	version := *installed
	version.ID, version.Version = id, f.versions[id]
	return &version, nil
}

// steadfast loses nothing in a crash.
type steadfast struct{ Store }

func (s steadfast) Lose(context.Context, int64) error { return nil }
