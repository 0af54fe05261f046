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

// foldRoundsMax bounds the search for a stable form. Folding and normalising
// undo each other at most once for any character that Unicode has; the rest is
// margin for the next version of Unicode.
const foldRoundsMax = 8

// CanonicalTarget gives the one form of all spellings of an account that a
// sign-in may aim at: white space trimmed, NFKC, case-folded. It is
// idempotent.
func CanonicalTarget(text string) string { return foldUntilStable(text, strings.TrimSpace) }

// canonicalTargetPrefix does the same for the prefix of a wildcard, at whose
// end white space stands inside the accounts it speaks of.
func canonicalTargetPrefix(text string) string {
	return foldUntilStable(text, func(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) })
}

// foldUntilStable repeats trimming, folding and normalising until nothing
// changes: one pass is not idempotent, since NFKC can bring forth a capital
// letter or a space, and folding can undo NFKC.
func foldUntilStable(text string, trim func(string) string) string {
	text = trim(text)
	if isASCII(text) {
		return strings.ToLower(text)
	}
	for range foldRoundsMax {
		next := trim(norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text))))
		if next == text {
			break
		}
		text = next
	}
	return text
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
