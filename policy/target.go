package policy

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// CanonicalTarget gives the one form of all spellings of an account that a
// sign-in may aim at: white space trimmed, NFKC, case-folded. It is
// idempotent.
func CanonicalTarget(text string) string { return strings.TrimSpace(normalFold(text)) }

// canonicalTargetPrefix does the same for the prefix of a wildcard, at whose
// end white space stands inside the accounts it speaks of.
func canonicalTargetPrefix(text string) string {
	return strings.TrimLeftFunc(normalFold(text), unicode.IsSpace)
}

// normalFold folds case and normalises. Folding needs normal text, or it
// misses what NFKC brings forth, and can undo it: so it stands between two.
// Trimming comes after it, since NFKC brings forth spaces too.
func normalFold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	return norm.NFKC.String(fold(norm.NFKC.String(text)))
}

// fold folds case. x/text v0.44 swaps the two cases of Cherokee instead of
// folding both to the upper one, as Unicode's CaseFolding.txt has it.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cherokee, r) {
			return unicode.ToUpper(r)
		}
		return r
	}, cases.Fold().String(text))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// targetAccount reads the account a sign-in aims at into its canonical form.
func (r *reader) targetAccount(value jsontext.Value) string {
	text := r.text(value, 1, TextBytesMax)
	if text == "" {
		return "" // the fault is noted
	}
	canonical := CanonicalTarget(text)
	switch {
	case canonical == "":
		r.fault("must not be white space only")
	case len(canonical) > TextBytesMax:
		r.fault("must be at most " + strconv.Itoa(TextBytesMax) + " bytes in canonical form (NFKC, case-folded)")
		return ""
	}
	return canonical
}
