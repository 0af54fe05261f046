package policy

import "testing"

func TestLimitsInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, want string }{
		{`{"algorithm":"token_bucket","capacity":40,"refillTokens":0.5,"refillSeconds":2}`, "40 at once, 0.5 every 2 s"},
		{`{"algorithm":"fixed_window","limit":1000,"windowSeconds":86400}`, "1000 in each 86400 s"},
		{`{"algorithm":"sliding_window_counter","limit":600,"windowSeconds":60}`, "about 600 in any 60 s"},
		{`{"algorithm":"sliding_window_counter","limit":600,"windowSeconds":60,"strict":true}`, "600 in any 60 s"},
		{`{"algorithm":"sliding_window_log","limit":5,"windowSeconds":900}`, "5 in any 900 s"},
		{`{"algorithm":"concurrency","limit":2,"ttlSeconds":600}`, "2 at a time, 600 s each"},
	} {
		limit, err := ParseLimit([]byte(c.limit))
		if err != nil {
			t.Fatal(err)
		}
		if got := limit.String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.limit, got, c.want)
		}
	}
}
