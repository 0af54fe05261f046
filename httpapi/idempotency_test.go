package httpapi

import (
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", policy.TextBytesMax)
	for value, want := range map[string]string{
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`: "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`8e03978e-40d5-43e8-bc93-6894a57f9324`:   "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`"a \"b\" \\ c, d; e"`:                   `a "b" \ c, d; e`,
		`order/7:a+b=`:                           "order/7:a+b=",
		`back\slash`:                             `back\slash`,
		longest:                                  longest,
		`"` + longest + `"`:                      longest,
	} {
		if got, ok := parseIdempotencyKey(value); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", value, got, ok, want)
		}
	}
	for _, value := range []string{
		``, ` `, `""`, `"`, `"a`, `a"`, `"a""b"`, `"a";p=1`, `"a", "b"`, `"a\b"`, `"a\"`, `a,b`, `a;b`, `a b`, "a\tb", "\"a\tb\"",
		"ä", `"ä"`, "a\x7f", longest + "k", `"` + longest + `k"`, `:YQ==:,`,
	} {
		if got, ok := parseIdempotencyKey(value); ok {
			t.Errorf("%q is read as %q", value, got)
		}
	}
}

// FuzzStructuredStrings: what the encoder writes is read back, and what is
// read is written the same.
func FuzzStructuredStrings(f *testing.F) {
	for _, seed := range []string{"op-1", `a "b" \ c`, `"op-1"`, `"a\\"`, "ä\n", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if written, ok := parseStructuredString(string(appendStructuredString(nil, text))); !ok || len(written) != len(text) {
			t.Errorf("%q comes back as %q, %v", text, written, ok)
		}
		if read, ok := parseStructuredString(text); ok && string(appendStructuredString(nil, read)) != text {
			t.Errorf("%q is read as %q, whose string is another", text, read)
		}
	})
}
