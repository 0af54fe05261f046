package pgstore_test

import (
	"slices"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/rationhq/ration/policy"
)

// youngest are the characters of Unicode 15.0 that 14.0, which PostgreSQL 15
// normalises by, does not have.
var youngest = &unicode.RangeTable{
	R16: []unicode.Range16{{0x0CF3, 0x0CF3, 1}, {0x0ECE, 0x0ECE, 1}},
	R32: []unicode.Range32{
		{0x10EFD, 0x10EFF, 1},
		{0x1123F, 0x11241, 1},
		{0x11B00, 0x11B09, 1},
		{0x11F00, 0x11F59, 1},
		{0x1342F, 0x13455, 1},
		{0x1B132, 0x1B155, 1},
		{0x1D2C0, 0x1D2D3, 1},
		{0x1DF25, 0x1DF2A, 1},
		{0x1E030, 0x1E08F, 1},
		{0x1E4D0, 0x1E4F9, 1},
		{0x1F6DC, 0x1F6DC, 1},
		{0x1F774, 0x1F7D9, 1},
		{0x1FA75, 0x1FAFF, 1},
		{0x31350, 0x323AF, 1},
	},
}

// assigned gives the characters that every server knows. Ideographs, which
// neither fold nor decompose, are left out.
func assigned() []rune {
	var all []rune
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf) &&
			!unicode.In(r, youngest, unicode.Unified_Ideograph) {
			all = append(all, r)
		}
	}
	return all
}

// canonical gives the canonical form of many texts by SQL.
func (b *bench) canonical(texts []string) (canonical []string) {
	b.Helper()
	return scalar[[]string](b, `SELECT array_agg(ration.canonical_target_v1(t.text) ORDER BY t.place)
		FROM unnest($1::text[]) WITH ORDINALITY AS t (text, place)`, texts)
}

// Every character that the program changes is changed alike in SQL, and so is
// a sample of those that it leaves.
func TestCanonicalTargetOfEveryCharacter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	random := newRandom(t)
	var texts []string
	for _, r := range assigned() {
		text := "x" + string(r) + "y" // nothing is trimmed
		if policy.CanonicalTarget(text) != text || random.IntN(50) == 0 {
			texts = append(texts, text)
		}
	}
	if len(texts) < 4000 {
		t.Fatalf("%d characters are few", len(texts))
	}
	for chunk := range slices.Chunk(texts, 2000) {
		for i, got := range b.canonical(chunk) {
			if want := policy.CanonicalTarget(chunk[i]); got != want {
				t.Errorf("%+q: got %+q, want %+q", chunk[i], got, want)
			}
		}
	}
}

func TestCanonicalTargetEqualsThePrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	characters := assigned()
	var changed []rune
	for _, r := range characters {
		if policy.CanonicalTarget("x"+string(r)+"y") != "x"+string(r)+"y" || unicode.Is(unicode.M, r) {
			changed = append(changed, r)
		}
	}
	// White space and marks meet each other at the ends and in the middle.
	spaces := []rune("\t\n\v\f\r \u0085\u00A0\u1680\u2003\u2028\u202F\u205F\u3000\u200B\uFEFF")
	text := rapid.StringOfN(rapid.OneOf(
		rapid.SampledFrom(spaces), rapid.SampledFrom(changed), rapid.SampledFrom(characters), rapid.RuneFrom([]rune("aAİıßẞſΣσς")),
	), 0, 24, policy.TextBytesMax)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(text, 20, 20).Draw(t, "texts")
		forms := b.canonical(texts)
		for i, got := range forms {
			if want := policy.CanonicalTarget(texts[i]); got != want {
				t.Errorf("%+q: got %+q, want %+q", texts[i], got, want)
			}
		}
		if again := b.canonical(forms); !slices.Equal(again, forms) {
			t.Errorf("not stable: %+q, then %+q", forms, again)
		}
	})
}
