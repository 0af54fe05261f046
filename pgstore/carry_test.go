package pgstore_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/policy"
)

// unitsMax is the largest n, d and capacity in units.
const unitsMax = int64(1)<<62 - 1

// link is one version of a random policy, in stored units.
type link struct {
	n, d, capacity, installedAt int64
	rule                        policy.Balances
	idle                        int64 // what an idle bucket holds at its installation
}

func (l link) units() int64 { return l.capacity * l.d }

// upTo gives a number from 1 to most, of any order of magnitude, with a liking
// for the ends.
func upTo(random *rand.Rand, most int64) int64 {
	switch random.IntN(4) {
	case 0:
		return most
	case 1:
		return 1
	default:
		return 1 + random.Int64N(1+random.Int64N(most>>random.IntN(60)|1))%most
	}
}

// chain makes up the versions of a policy.
func chain(random *rand.Rand) []link {
	links := make([]link, 2+random.IntN(6))
	at := epochMicros
	for i := range links {
		d := upTo(random, unitsMax)
		n := upTo(random, unitsMax)
		if common := new(big.Int).GCD(nil, nil, big.NewInt(n), big.NewInt(d)).Int64(); common > 1 {
			n, d = n/common, d/common
		}
		at += random.Int64N(1+1<<random.IntN(50)) * random.Int64N(2) // versions of one instant among them
		links[i] = link{n: n, d: d, capacity: upTo(random, unitsMax/d), installedAt: at}
		if i > 0 {
			links[i].rule = policy.Balances(random.IntN(2)) // keep, scale
			if random.IntN(4) == 0 {
				links[i].rule = policy.Reset + policy.Balances(random.IntN(2)) // reset, restart
			}
		}
		links[i].idle = links[i].units() * random.Int64N(2)
	}
	return links
}

// carried is the rule in exact integers: earn under the old version up to the
// change, convert rounding toward minus infinity, clamp; or begin as an idle
// bucket.
func carried(links []link, balance, at int64) (left, leftAt int64, clamped bool) {
	held := big.NewInt(balance)
	for i := 1; i < len(links); i++ {
		from, to := links[i-1], links[i]
		if to.rule == policy.Reset || to.rule == policy.Restart {
			held, at, clamped = big.NewInt(to.idle), to.installedAt, false
			continue
		}
		if to.installedAt > at {
			earned := new(big.Int).Mul(big.NewInt(to.installedAt-at), big.NewInt(from.n))
			held.Add(held, earned)
			held = smaller(held, big.NewInt(from.units()))
			at = to.installedAt
		}
		multiplier, divisor := to.d, from.d
		if to.rule == policy.Scale {
			multiplier, divisor = to.units(), from.units()
		}
		held.Mul(held, big.NewInt(multiplier))
		held.Div(held, big.NewInt(divisor)) // Euclidean, which is toward minus infinity for a divisor above 0
		clamped = clamped || held.CmpAbs(big.NewInt(to.units())) > 0
		held = smaller(held, big.NewInt(to.units()))
		if least := big.NewInt(-to.units()); held.Cmp(least) < 0 {
			held = least
		}
	}
	return held.Int64(), at, clamped
}

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func TestCarryIsExact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	random := newRandom(t)
	const chains = 400
	negative, cut := 0, 0
	for number := 1; number <= chains; number++ {
		links := chain(random)
		rows := make([][]any, len(links))
		for i, l := range links {
			rows[i] = []any{number, i + 1, "{}", l.n, l.d, l.capacity, l.units(), l.idle, l.installedAt, l.rule.String(), l.installedAt, 1}
		}
		if _, err := b.owner.CopyFrom(t.Context(), pgx.Identifier{"ration", "policy_version"}, []string{
			"number", "version", "content",
			"n", "d", "capacity", "capacity_units", "idle_balance", "idle_at", "balances", "installed_at", "generation",
		},
			pgx.CopyFromRows(rows)); err != nil {
			t.Fatalf("%+v: %v", links, err)
		}
		from := random.IntN(len(links))
		to := from + random.IntN(len(links)-from)
		balance := upTo(random, links[from].units())
		if random.IntN(3) == 0 {
			balance = -balance
			negative++
		}
		at := links[from].installedAt + random.Int64N(1<<random.IntN(50)) // perhaps ahead of later versions
		var gotBalance, gotAt int64
		var gotClamped bool
		err := b.owner.QueryRow(t.Context(), "SELECT o_balance, o_at, o_clamped FROM ration.carry_v1($1, $2, $3, $4, $5)",
			number, from+1, to+1, balance, at).Scan(&gotBalance, &gotAt, &gotClamped)
		if err != nil {
			t.Fatalf("%+v from %d to %d, %d at %d: %v", links, from+1, to+1, balance, at, err)
		}
		wantBalance, wantAt, wantClamped := carried(links[from:to+1], balance, at)
		if gotBalance != wantBalance || gotAt != wantAt || gotClamped != wantClamped {
			t.Errorf("%+v from %d to %d, %d at %d: got %d at %d, clamped %t, want %d at %d, clamped %t",
				links, from+1, to+1, balance, at, gotBalance, gotAt, gotClamped, wantBalance, wantAt, wantClamped)
		}
		if wantClamped {
			cut++
		}
	}
	if negative == 0 || cut == 0 {
		t.Errorf("%d balances were negative, %d were clamped", negative, cut)
	}
}

// A policy is raised and lowered while keys hold something: a raise gives
// nobody what was not earned, a reduction holds from its COMMIT on.
func TestPolicyChangeCarriesLiveBalances(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	session := b.session()
	of := b.install("p", 0, shape{capacity: 40, seconds: "1"}, 0)
	b.expect(session, of, 1, second, 1, 39)
	of = b.install("p", 1, shape{capacity: 10, seconds: "1"}, second)
	full := b.batch(of, 1, 2)
	for i := range full.Asks {
		full.Asks[i].Count = 50
	}
	for i, answer := range b.decide(session, full).Asks {
		if answer.Admitted != 10 {
			t.Errorf("key %d: %+v, want 10 admitted after the reduction", i+1, answer)
		}
	}
	of = b.install("p", 2, shape{capacity: 100, seconds: "1"}, 3*second)
	b.expect(session, of, 1, 3*second, 1, 1)
	b.expect(session, of, 3, 3*second, 1, 9) // never seen, and raised no higher than it was full
	b.expect(session, of, 3, 13*second, 1, 18)
	if versions := scalar[string](b, "SELECT string_agg(DISTINCT version::text, ',') FROM ration.bucket_fast"); versions != "2,3" {
		t.Errorf("rows of versions %s: only what is asked for is settled", versions)
	}
}
