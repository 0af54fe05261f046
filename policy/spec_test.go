package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawChange makes a policy that is possible, with as many of its members as
// chance wants.
func drawChange(t *rapid.T) map[string]any {
	change := map[string]any{
		"match": drawMatch(t),
		"per":   rapid.SliceOfNDistinct(rapid.SampledFrom(attributeNames[:]), 0, AttributeCount, rapid.ID[string]).Draw(t, "per"),
		"limit": drawLimit(t),
	}
	perhaps := func(name string, value any) {
		if rapid.Bool().Draw(t, "with "+name) {
			change[name] = value
		}
	}
	perhaps("description", rapid.StringMatching(`[a-z "\\<é]{0,20}`).Draw(t, "description"))
	perhaps("onMissing", rapid.SampledFrom(onMissingNames[:]).Draw(t, "onMissing"))
	perhaps("mode", rapid.SampledFrom(modeNames[:]).Draw(t, "mode"))
	perhaps("disclose", rapid.Bool().Draw(t, "disclose"))
	perhaps("costs", map[string]any{
		"default":    rapid.Int64Range(1, 5).Draw(t, "default"),
		"max":        rapid.Int64Range(5, CostMax).Draw(t, "max"),
		"operations": rapid.MapOfN(rapid.StringMatching(`[a-z][a-z.]{0,5}`), rapid.Int64Range(1, CostMax), 0, 4).Draw(t, "operations"),
	})
	perhaps("onStoreDown", rapid.SampledFrom([]any{
		map[string]any{"mode": "closed"},
		map[string]any{"mode": "open", "acceptOpen": true},
		map[string]any{"mode": "local", "instances": "auto", "maxSeconds": 60},
		map[string]any{"mode": "local", "capacity": 1, "refillTokens": json.Number("0.5"), "refillSeconds": 60},
	}).Draw(t, "onStoreDown"))
	if slices.Contains(change["per"].([]string), "ip") {
		perhaps("ipPrefix", map[string]any{"v4": rapid.IntRange(1, 32).Draw(t, "v4"), "v6": rapid.IntRange(1, 128).Draw(t, "v6")})
	}
	if rapid.Bool().Draw(t, "durable") {
		change["durability"] = "durable"
	} else {
		perhaps("afterLoss", rapid.SampledFrom(afterLossNames[:]).Draw(t, "afterLoss"))
	}
	return change
}

// drawLimit makes a limit of any algorithm.
func drawLimit(t *rapid.T) map[string]any {
	algorithm := Algorithm(rapid.IntRange(0, len(algorithmNames)-1).Draw(t, "algorithm"))
	limit := map[string]any{"algorithm": algorithm.String()}
	for _, member := range limitTakes[algorithm] {
		switch member {
		case "capacity":
			limit[member] = rapid.Int64Range(1, 1_000_000).Draw(t, member)
		case "limit":
			limit[member] = rapid.Int64Range(1, logLimitMax).Draw(t, member)
		case strictMember:
			limit[member] = rapid.Bool().Draw(t, member)
		default:
			limit[member] = drawDecimal(t, member)
		}
	}
	return limit
}

func drawMatch(t *rapid.T) map[string]any {
	match := make(map[string]any)
	for _, attribute := range matchOrder {
		if rapid.Bool().Draw(t, "given") {
			patterns := make(map[string]bool)
			for range rapid.IntRange(1, 4).Draw(t, "patterns") {
				patterns[drawPattern(t, attribute)] = true
			}
			match[attribute.String()+"s"] = slices.Sorted(maps.Keys(patterns))
		}
	}
	return match
}

// drawDecimal makes a decimal from 0.01 to 99.99 in one of its notations.
func drawDecimal(t *rapid.T, label string) json.Number {
	hundredths := rapid.IntRange(1, 9_999).Draw(t, label)
	return json.Number(rapid.SampledFrom([]string{
		fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100),
		fmt.Sprintf("%de-2", hundredths),
		fmt.Sprintf("%d.%02d0E+00", hundredths/100, hundredths%100),
	}).Draw(t, label+"Notation"))
}

// diffSpecs compares field by field, what cmp does not do by itself where a
// type has a method Equal.
func diffSpecs(want, got *Spec) string {
	type fields Spec
	return cmp.Diff((*fields)(want), (*fields)(got), cmp.AllowUnexported(Decimal{}))
}

func TestEveryPossibleSpecRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := drawChange(t)
		body, err := json.Marshal(drawn)
		if err != nil {
			t.Fatal(err)
		}
		change, err := ParseChange(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		stored := change.Spec.JSON()
		back, err := ParseSpec(stored)
		if err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		if diff := diffSpecs(change.Spec, back); diff != "" {
			t.Fatalf("read back (-written +read):\n%s", diff)
		}
		if back.Limit.Algorithm == TokenBucket {
			checkRate(t, &back.Limit)
		} else {
			checkSpan(t, &back.Limit)
		}
		// Another policy is not equal.
		back.Limit.Capacity++
		if change.Spec.Equal(back) {
			t.Fatal("a policy of another capacity is called equal")
		}
	})
}

// checkRate checks that a rate is the exact quotient in lowest terms.
func checkRate(t *rapid.T, limit *Limit) {
	n, d := big.NewInt(limit.Rate.N), big.NewInt(limit.Rate.D)
	if new(big.Int).GCD(nil, nil, n, d).Cmp(big.NewInt(1)) != 0 {
		t.Fatalf("rate %v is not in lowest terms", limit.Rate)
	}
	micros := new(big.Rat).Mul(limit.RefillSeconds.Rat(), big.NewRat(1_000_000, 1))
	if earned := micros.Mul(micros, new(big.Rat).SetFrac(n, d)); earned.Cmp(limit.RefillTokens.Rat()) != 0 {
		t.Fatalf("rate %v earns %s tokens in %s s, want %s", limit.Rate, earned, limit.RefillSeconds, limit.RefillTokens)
	}
}

// checkSpan checks that the microseconds are the seconds as written.
func checkSpan(t *rapid.T, limit *Limit) {
	if seconds := big.NewRat(limit.SpanMicros, 1_000_000); seconds.Cmp(limit.Span.Rat()) != 0 {
		t.Fatalf("%d microseconds are not %s s", limit.SpanMicros, limit.Span)
	}
}

func TestDecimal(t *testing.T) {
	t.Parallel()
	for text, value := range map[string]string{
		"0.1": "1/10", "20": "20/1", "-1.50": "-3/2", "1e30": "1000000000000000000000000000000/1", "1E-2": "1/100", "2.5e+1": "25/1",
	} {
		number, err := ParseDecimal(text)
		if err != nil || number.String() != text || number.Rat().String() != value {
			t.Errorf("%s: got %s = %s, %v, want %s", text, number, number.Rat(), err, value)
		}
	}
	for _, text := range []string{"", " 1", "1 ", "0x1", "1/2", "1_0", "01", "+1", ".5", "1.", "NaN", "Inf", "1e", "1e31", "1e-31", "true", `"1"`, "1,2"} {
		if number, err := ParseDecimal(text); err == nil {
			t.Errorf("%q was read as %s", text, number)
		}
	}
	var zero Decimal
	if zero.String() != "0" || zero.Rat().Sign() != 0 {
		t.Errorf("the zero value is %s = %s", zero, zero.Rat())
	}
}
