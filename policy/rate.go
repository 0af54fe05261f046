package policy

import (
	"math/big"
	"strconv"
)

// slowestRefillSeconds is the longest time that one token may take: 366 days.
// It keeps every wait of one token below 2^45 µs.
const slowestRefillSeconds = 366 * 24 * 60 * 60

// Rate is a refill rate in lowest terms: N/D tokens per microsecond. A
// balance is stored in units of 1/D token, so each microsecond earns exactly
// N units and a token is exactly D units. 1 <= N < 2^62, 1 <= D < 2^62.
type Rate struct{ N, D int64 }

// checkRate checks what no member of a token bucket can tell alone and works
// out the rate.
func (r *reader) checkRate(limit *Limit) {
	perSecond := new(big.Rat).Quo(limit.RefillTokens.Rat(), limit.RefillSeconds.Rat())
	if perSecond.Cmp(big.NewRat(1, slowestRefillSeconds)) < 0 {
		r.faultAt("refillTokens", "must refill at least one token in 366 days")
		return
	}
	perMicro := new(big.Rat).Quo(perSecond, big.NewRat(1_000_000, 1)) // math/big keeps lowest terms
	n, d := perMicro.Num(), perMicro.Denom()
	units := big.NewInt(unitsMax)
	switch {
	case n.Cmp(units) > 0:
		r.faultAt("refillTokens", "is too large or too finely graded: the rate in lowest terms is "+
			n.String()+"/"+d.String()+" tokens per microsecond, whose numerator must be below 2^62")
		return
	case d.Cmp(units) > 0:
		r.faultAt("refillTokens", "is too finely graded: the rate in lowest terms is "+
			n.String()+"/"+d.String()+" tokens per microsecond, whose denominator must be below 2^62")
		return
	}
	limit.Rate = Rate{N: n.Int64(), D: d.Int64()}
	if capacityMax := unitsMax / limit.Rate.D; limit.Capacity > capacityMax {
		r.faultAt("capacity", "must be at most "+strconv.FormatInt(capacityMax, 10)+
			" with this refill rate, whose tokens are kept in parts of 1/"+strconv.FormatInt(limit.Rate.D, 10))
	}
}
