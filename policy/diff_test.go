package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	spec := func(body string) *Spec {
		change, err := ParseChange([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return change.Spec
	}
	bucket := spec(`{"match":{"operations":["a"]},"per":["account"],"limit":{"algorithm":"token_bucket","capacity":40,"refillTokens":0.1,"refillSeconds":1}}`)
	for _, c := range []struct {
		before, after *Spec
		want          string
	}{
		{bucket, bucket, ""},
		{
			bucket,
			spec(`{"match":{"operations":["a","b/c"]},"per":["account"],"limit":{"algorithm":"token_bucket","capacity":50,"refillTokens":0.1,"refillSeconds":1},"costs":{"operations":{"b/c":2}}}`),
			`/match/operations ["a"] -> ["a","b/c"]; /limit/capacity 40 -> 50; /costs/operations  -> {"b/c":2}; `,
		},
		{
			bucket,
			spec(`{"match":{},"per":["account"],"limit":{"algorithm":"fixed_window","limit":40,"windowSeconds":1},"description":"why"}`),
			`/match/operations ["a"] -> ; /limit/algorithm "token_bucket" -> "fixed_window"; /limit/capacity 40 -> ; /limit/refillTokens 0.1 -> ; ` +
				`/limit/refillSeconds 1 -> ; /limit/limit  -> 40; /limit/windowSeconds  -> 1; /description  -> "why"; `,
		},
	} {
		var got strings.Builder
		for _, d := range Diff(c.before, c.after) {
			fmt.Fprintf(&got, "%s %s -> %s; ", d.Pointer, string(d.Before), string(d.After))
		}
		if got.String() != c.want {
			t.Errorf("got\n%s\nwant\n%s", got.String(), c.want)
		}
	}
	if all := Diff(nil, bucket); len(all) == 0 || all[0].Pointer != "/match" || all[0].Before != nil {
		t.Errorf("of a new policy: %v", all)
	}
}
