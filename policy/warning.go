package policy

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Warning is something that a policy can say and perhaps does not mean, and
// what to do about it. It hinders nothing.
type Warning struct {
	Name    WarningName
	Pointer string // JSON Pointer (RFC 6901) of the member it speaks of
	Detail  string // as said of the member, with what to do
}

// WarningName names one kind of warning and never changes its meaning.
type WarningName string

// The warnings.
const (
	WarnNotActedUpon   WarningName = "not-acted-upon"   // kept, but not built yet
	WarnCostAboveLimit WarningName = "cost-above-limit" // such a request is never allowed
	WarnOpen           WarningName = "open"             // lets everything pass in an outage, and nobody said that this is meant
	WarnLoginOpen      WarningName = "login-open"       // lets guesses at passwords pass in an outage
	WarnLoginSkip      WarningName = "login-skip"       // is evaded by leaving an attribute out
	WarnLoginFast      WarningName = "login-fast"       // a crash gives guesses at passwords a new allowance
	WarnSlowRefill     WarningName = "slow-refill"      // takes more than 30 days to be full again
	WarnHighLog        WarningName = "high-log"         // remembers many charges one by one
	WarnFewForAll      WarningName = "few-for-all"      // a small limit that everybody shares
	WarnLongOutage     WarningName = "long-outage"      // decides without the store for more than an hour
	WarnLongSlot       WarningName = "long-slot"        // a holder that crashed keeps its slot for more than a day
	WarnShadowed       WarningName = "shadowed"         // can never deny, because another policy denies before it
	WarnShadows        WarningName = "shadows"          // with it others can never deny
)

// Beyond these a policy is warned of.
const (
	refillDaysUsual    = 30
	logLimitUsual      = 100 // of the 1,000 there may be; each decision reads and writes them all
	allLimitUsual      = 100 // what everybody shares is rarely less
	outageSecondsUsual = 3600
	slotMicrosUsual    = 24 * 3600 * int64(1_000_000)
)

func (c *Change) warn(name WarningName, pointer, detail string) {
	c.Warnings = append(c.Warnings, Warning{Name: name, Pointer: pointer, Detail: detail})
}

// warnOfSpec warns of what the whole of a policy tells by itself.
func (c *Change) warnOfSpec() {
	c.warnOfLimit()
	c.warnOfCosts()
	if c.Spec.speaksOfLogins() {
		c.warnOfLogins()
	}
	if seconds := c.Spec.OnStoreDown.MaxSeconds; seconds > outageSecondsUsual {
		c.warn(WarnLongOutage, "/onStoreDown/maxSeconds", "is more than an hour in which nothing is counted together; say less, and mend the store")
	}
}

func (c *Change) warnOfLimit() {
	limit := &c.Spec.Limit
	member := "/limit/" + limit.Algorithm.capacityMember()
	switch {
	case limit.Algorithm == TokenBucket && limit.refillDays() > refillDaysUsual:
		c.warn(WarnSlowRefill, "/limit/refillSeconds", "makes an empty bucket full again in "+strconv.FormatInt(limit.refillDays(), 10)+
			" days only; check the unit, or take a fixed_window for a quota by the calendar")
	case limit.Algorithm == SlidingWindowLog && limit.Capacity > logLimitUsual:
		c.warn(WarnHighLog, member, "has each decision read and write up to so many charges; a sliding_window_counter with \"strict\": true keeps the same promise in 60 figures")
	case limit.Algorithm == Concurrency && limit.SpanMicros > slotMicrosUsual:
		c.warn(WarnLongSlot, "/limit/ttlSeconds", "is how long a holder that crashed keeps its slot; say less, and have holders renew")
	}
	if len(c.Spec.Per) == 0 && limit.Capacity < allLimitUsual {
		c.warn(WarnFewForAll, member, "is shared by all callers together, as \"per\" names nothing; name an attribute there if each is meant to have it")
	}
}

// refillDays is how many whole days an empty bucket takes to be full.
func (l *Limit) refillDays() int64 {
	micros := new(big.Int).Mul(big.NewInt(l.Capacity), big.NewInt(l.Rate.D))
	micros.Quo(micros, big.NewInt(l.Rate.N))
	return micros.Quo(micros, big.NewInt(24*3600*1_000_000)).Int64()
}

// warnOfCosts warns of costs that no bucket can ever hold.
func (c *Change) warnOfCosts() {
	costs, member := &c.Spec.Costs, c.Spec.Limit.Algorithm.capacityMember()
	warn := func(cost int64, pointer jsontext.Pointer) {
		if cost > c.Spec.Limit.Capacity {
			c.warn(WarnCostAboveLimit, string(pointer), "is above the "+member+": such a request is never allowed; raise the "+member+" or lower the cost")
		}
	}
	warn(costs.Default, "/costs/default")
	for _, operation := range slices.Sorted(maps.Keys(costs.Operations)) {
		warn(costs.Operations[operation], jsontext.Pointer("/costs/operations").AppendToken(operation))
	}
	warn(costs.Max, "/costs/max")
}

// warnOfLogins warns of what lets passwords be guessed.
func (c *Change) warnOfLogins() {
	if c.Spec.OnStoreDown.Mode == Open {
		c.warn(WarnLoginOpen, "/onStoreDown/mode", "lets passwords be guessed freely while the store gives no answer; say closed or local")
	}
	if c.Spec.OnMissing == Skip && len(c.Spec.Per) > 0 {
		c.warn(WarnLoginSkip, "/onMissing", "is skip: a sign-in that lacks an attribute of the key passes this policy by; say reject")
	}
	if c.Spec.Durability == Fast && c.Spec.AfterLoss == LossIdle {
		c.warn(WarnLoginFast, "/durability", "is fast: a crash of PostgreSQL gives who guesses passwords a new allowance; say durable, or \"afterLoss\": \"empty\"")
	}
}

// speaksOfLogins says whether a policy limits sign-ins: by what it counts or
// by the names of its operations.
func (s *Spec) speaksOfLogins() bool {
	return s.keyedBy(TargetAccount) || slices.ContainsFunc(s.Match[Operation], func(pattern string) bool {
		return slices.ContainsFunc([]string{"login", "signin", "sign-in", "password"}, func(word string) bool {
			return strings.Contains(pattern, word)
		})
	})
}
