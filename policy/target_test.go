package policy

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func TestLG1SpellingsOfOneAccount(t *testing.T) {
	t.Parallel()
	accented := "Zoë.Ångström@example.org"
	for want, spellings := range map[string][]string{
		"victim@example.org":       {"Victim@Example.org", " victim@example.org", "victim@example.org\t", "VICTIM@EXAMPLE.ORG", "\u00a0victim@example.org\u2003\n", "ｖictim@example.org"},
		"zoë.ångström@example.org": {norm.NFC.String(accented), norm.NFD.String(accented), strings.ToUpper(accented)},
		"strasse":                  {"Straße", "STRASSE", "STRAẞE"},
		"fi":                       {"ﬁ", "FI", "Fi"},
	} {
		for _, spelling := range spellings {
			if got := CanonicalTarget(spelling); got != want {
				t.Errorf("%q: got %q, want %q", spelling, got, want)
			}
		}
	}
}

func TestCanonicalTargetIsIdempotentForEveryCharacter(t *testing.T) {
	t.Parallel()
	for character := rune(0); character <= unicode.MaxRune; character++ {
		if norm.NFKC.IsNormalString(string(character)) && unicode.SimpleFold(character) == character {
			continue // nothing to do for it, so nothing to undo
		}
		for _, text := range []string{string(character), "a" + string(character) + "\u0301", string(character) + "\u0345"} {
			checkStable(t, text)
		}
	}
}

func TestCanonicalTargetIsOneForEveryCase(t *testing.T) {
	t.Parallel()
	for character := rune(0); character <= unicode.MaxRune; character++ {
		if unicode.SimpleFold(character) == character {
			continue
		}
		want := CanonicalTarget("x" + string(character))
		for other := unicode.SimpleFold(character); other != character; other = unicode.SimpleFold(other) {
			if got := CanonicalTarget("x" + string(other)); got != want {
				t.Errorf("%+q becomes %+q, its other case %+q becomes %+q", character, want, other, got)
			}
		}
	}
}

// checkStable checks that the canonical form is its own canonical form, also
// of a wildcard's prefix.
func checkStable(t *testing.T, text string) {
	t.Helper()
	for name, canonical := range map[string]func(string) string{"value": CanonicalTarget, "prefix": canonicalTargetPrefix} {
		once := canonical(text)
		if twice := canonical(once); twice != once {
			t.Fatalf("%s %+q: once %+q, twice %+q", name, text, once, twice)
		}
	}
	if once := CanonicalTarget(text); once != strings.TrimSpace(once) || !norm.NFKC.IsNormalString(once) {
		t.Fatalf("%+q: %+q is not trimmed and normal", text, once)
	}
}

func TestTargetAccountBoundHoldsForTheCanonicalForm(t *testing.T) {
	t.Parallel()
	const long = "\ufdfa" // 3 bytes, 33 in NFKC
	const blank = " \u00a0\t"
	for account, ok := range map[string]bool{strings.Repeat(long, 7): true, strings.Repeat(long, 9): false, blank: false} {
		body := `{"operation":"a","targetAccount":"` + strings.ReplaceAll(account, "\t", `\t`) + `"}`
		_, err := ParseRequest([]byte(body))
		if (err == nil) != ok {
			t.Errorf("%q: got error %v, want one: %t", account, err, !ok)
		}
	}
}

func FuzzTargetAccount(f *testing.F) {
	for _, seed := range []string{" Victim@Example.org", "\u1e9e\u0345\u0301", "\u00a8 x", "ﬁ\u0130", "\u1fb3\u0313", "\u2002\u0308"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ToValidUTF8(text, "") == text {
			checkStable(t, text)
		}
	})
}
