package limiter

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rationhq/ration/policy"
)

// shadowInterval is between two reports on shadow policies.
const shadowInterval = 5 * time.Second

// shadowKeysMax bounds the keys that are noted between two reports, of all
// policies together: some 300 bytes each. What others would have been denied is
// counted with all.
const shadowKeysMax = 20_000

// shadowBatch is how many policy versions one call reports on.
const shadowBatch = 100

// shadowStopMax bounds the last report, when the limiter ends.
const shadowStopMax = time.Second

// Reports is where it is kept what shadow policies would have done. When it
// fails, nothing of what was given was kept.
type Reports interface {
	ReportShadow(ctx context.Context, seen []policy.ShadowSeen) error
}

// shadows notes what shadow policies decided since the last report. There is an
// entry at most for each version that was in force since then.
type shadows struct {
	reports Reports
	log     *slog.Logger

	mu   sync.Mutex
	seen map[shadowVersion]*shadowSeen
	keys int // noted in all of them
}

// shadowVersion is a version of a policy by its number.
type shadowVersion struct {
	policy  int32
	version int
}

// shadowSeen is what was seen of one version.
type shadowSeen struct {
	policy.ShadowCounts

	keys map[policy.Key]*policy.ShadowDenials
}

func newShadows(config *Config) *shadows {
	return &shadows{reports: config.Reports, log: config.Logger, seen: make(map[shadowVersion]*shadowSeen)}
}

// note counts a decision of the store for each shadow policy that had a part in
// it. An override's limit counts for its policy.
func (s *shadows) note(set *inForce, request *policy.Request, checks []policy.Check, decision *policy.Decision) {
	for i := range checks {
		check := &checks[i]
		if check.Policy.Mode != policy.Shadow {
			continue
		}
		named, found := set.Lookup(check.Policy.ID)
		part := slices.IndexFunc(decision.Detail.Parts, func(p policy.DecisionPart) bool { return p.Policy == check.Policy })
		if !found || part < 0 {
			continue
		}
		version := shadowVersion{named.Number, check.Policy.Version}
		counts := policy.ShadowCounts{Decided: 1, FirstAtMicros: decision.AtMicros, LastAtMicros: decision.AtMicros}
		s.mu.Lock()
		if decision.Detail.Parts[part].Allowed {
			s.add(version, counts)
		} else {
			counts.Denied = 1
			s.add(version, counts).deny(s, check.Key, &counts, func() string { return who(check.Policy.Spec, request) })
		}
		s.mu.Unlock()
	}
}

// add counts what was seen of a version and gives all of it; s.mu is held.
func (s *shadows) add(version shadowVersion, counts policy.ShadowCounts) *shadowSeen {
	seen := s.seen[version]
	if seen == nil {
		seen = &shadowSeen{ShadowCounts: counts, keys: make(map[policy.Key]*policy.ShadowDenials)}
		s.seen[version] = seen
		return seen
	}
	seen.Decided += counts.Decided
	seen.Denied += counts.Denied
	seen.FirstAtMicros = min(seen.FirstAtMicros, counts.FirstAtMicros)
	seen.LastAtMicros = max(seen.LastAtMicros, counts.LastAtMicros)
	return seen
}

// deny counts denials of a key, while there is room for it; s.mu is held.
func (v *shadowSeen) deny(s *shadows, key policy.Key, counts *policy.ShadowCounts, who func() string) {
	denials := v.keys[key]
	switch {
	case denials != nil:
		denials.Denied += counts.Denied
		denials.FirstAtMicros = min(denials.FirstAtMicros, counts.FirstAtMicros)
		denials.LastAtMicros = max(denials.LastAtMicros, counts.LastAtMicros)
	case len(v.keys) < policy.ShadowKeysMax && s.keys < shadowKeysMax:
		v.keys[key] = &policy.ShadowDenials{
			Key: key, Who: who(), Denied: counts.Denied, FirstAtMicros: counts.FirstAtMicros, LastAtMicros: counts.LastAtMicros,
		}
		s.keys++
	}
}

// run reports every few seconds, and once more when ctx ends.
func (s *shadows) run(ctx context.Context) {
	ticker := time.NewTicker(shadowInterval)
	defer ticker.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := s.report(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			s.log.WarnContext(ctx, "what shadow policies would have denied waits to be reported", "error", err)
		} else if err == nil && failed {
			s.log.InfoContext(ctx, "what shadow policies would have denied is reported again")
		}
		failed = err != nil
	}
}

// ReportShadows reports at once what shadow policies would have denied, for
// whoever is about to read it. The error is that of [Reports].
func (l *Limiter) ReportShadows(ctx context.Context) error { return l.shadows.report(ctx) }

// reportLast reports what is left when nothing is decided any more.
func (s *shadows) reportLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shadowStopMax)
	defer cancel()
	if err := s.report(ctx); err != nil {
		s.log.WarnContext(ctx, "what shadow policies would have denied in the last seconds is not reported", "error", err)
	}
}

// report hands over what was seen. What cannot be is counted on.
func (s *shadows) report(ctx context.Context) error {
	taken := s.take()
	for len(taken) > 0 {
		batch := taken[:min(len(taken), shadowBatch)]
		if err := s.reports.ReportShadow(ctx, batch); err != nil {
			s.giveBack(taken)
			return err
		}
		taken = taken[len(batch):]
	}
	return nil
}

// take gives what was seen, and forgets it.
func (s *shadows) take() []policy.ShadowSeen {
	s.mu.Lock()
	taken := s.seen
	s.seen, s.keys = make(map[shadowVersion]*shadowSeen), 0
	s.mu.Unlock()
	all := make([]policy.ShadowSeen, 0, len(taken))
	for version, seen := range taken {
		of := policy.ShadowSeen{ShadowCounts: seen.ShadowCounts, Policy: version.policy, Version: version.version}
		for denials := range maps.Values(seen.keys) {
			of.Keys = append(of.Keys, *denials)
		}
		all = append(all, of)
	}
	return all
}

// giveBack counts what was taken again.
func (s *shadows) giveBack(taken []policy.ShadowSeen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range taken {
		seen := s.add(shadowVersion{taken[i].Policy, taken[i].Version}, taken[i].ShadowCounts)
		for j := range taken[i].Keys {
			key := &taken[i].Keys[j]
			counts := policy.ShadowCounts{Denied: key.Denied, FirstAtMicros: key.FirstAtMicros, LastAtMicros: key.LastAtMicros}
			seen.deny(s, key.Key, &counts, func() string { return key.Who })
		}
	}
}

// who gives the values of a policy's key as a JSON object.
func who(spec *policy.Spec, request *policy.Request) string {
	values := make(map[string]string)
	for _, of := range spec.KeyValues(&request.Values) {
		values[of.Attribute.String()] = of.Value
	}
	text, _ := json.Marshal(values) //nolint:errchkjson // text always encodes
	return string(text)
}
