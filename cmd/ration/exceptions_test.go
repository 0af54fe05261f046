package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

func TestExceptionsAreSetAndTakenAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.instance.put(t, "search", slow("search", 1, ""), 0)
	const limit = `{"algorithm":"token_bucket","capacity":400,"refillTokens":1,"refillSeconds":86400}`
	d.prints(exitDone, "search: verifiedAccount=A is 400 at once, 1 every 86400 s until removed\n",
		"override", "set", "search", "verifiedAccount=A", "--limit", limit, "--reason", "paid for more")
	d.prints(exitDone, "search: verifiedAccount=B is blocked until TIME\n",
		"override", "set", "search", "verifiedAccount=B", "--blocked", "--reason", "abuse", "--expires-in", "1h")
	d.prints(exitDone, `
CALLER             IS                            UNTIL (UTC)          BY        REASON
verifiedAccount=A  400 at once, 1 every 86400 s  removed              loopback  paid for more
verifiedAccount=B  blocked                       TIME  loopback  abuse
`, "override", "list", "search")
	if a := d.instance.mustAsk(t, request("search", "B")); a.Allowed {
		t.Error("a blocked caller is allowed")
	}
	tell(t, d.environ, []line{
		{call: "bucket show search verifiedAccount=A", out: "of 400"},
		{call: "bucket show search verifiedAccount=A", out: "override    limit until it is removed, by loopback: paid for more"},
		{call: "override set search verifiedAccount=A --exempt", code: exitUsage, errs: "--reason"},
		{call: "override set search verifiedAccount=A --exempt --blocked --reason x", code: exitUsage, errs: "one of"},
		{call: "override set search user=A --exempt --reason x", code: exitFailed, errs: "#/verifiedAccount is required"},
		{call: "override set search verifiedAccount=A --limit {} --reason x", code: exitFailed, errs: "#/limit/algorithm is required"},
		{call: "override remove search verifiedAccount=B --reason sorry", out: "search holds for it again"},
		{call: "override remove search verifiedAccount=B", code: exitFailed, errs: "not-found"},
		{call: "override list search -o json", out: `"reason":"paid for more"`},
	})
	if a := d.instance.mustAsk(t, request("search", "B")); !a.Allowed {
		t.Error("a caller whose block was taken away is denied")
	}
}

func TestTheKillSwitch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.instance.put(t, "search", slow("search", 1, ""), 0)
	for range 2 {
		d.instance.mustAsk(t, request("search", "A"))
	}
	d.prints(exitDone, "policies that deny nobody until TIME UTC: 1\n", "kill-switch", "throw", "sea", "--for", "10m", "--reason", "by mistake")
	d.prints(exitDone, `
PREFIX  UNTIL (UTC)          BY        REASON
sea     TIME  loopback  by mistake
`, "kill-switch", "list")
	d.prints(exitDone, `
ID      VERSION  LIMIT                       PER      MODE
search  v1       1 at once, 1 every 86400 s  account  shadow (kill switch)
`, "policy", "list")
	if a := d.instance.mustAsk(t, request("search", "A")); !a.Allowed {
		t.Error("a policy under a kill switch denies")
	}
	_, printed, _ := command(t, d.environ, "", "policy", "get", "search") // what get prints is what put takes
	tell(t, d.environ, []line{
		{call: "policy put search - --if-match v1", stdin: printed, out: "search v1 has this content already"},
		{call: "kill-switch throw --for 10m --reason x", code: exitUsage, errs: "--all"},
		{call: "kill-switch throw sea --all --for 10m --reason x", code: exitUsage, errs: "--all"},
		{call: "kill-switch throw sea --for 48h --reason x", code: exitFailed, errs: "#/forSeconds"},
		{call: "kill-switch throw sea --for 1m", code: exitUsage, errs: "--reason"},
		{call: "kill-switch take-back sea", out: "taken back"},
		{call: "kill-switch take-back sea", code: exitFailed, errs: "not-found"},
		{call: "kill-switch list -o json", out: `{"killSwitches":[]}`},
		{call: "policy explain verifiedAccount=A operation=search", out: "denied"},
		{call: "policy explain verifiedAccount=A operation=other", out: "not decided, no-policy"},
		{call: "policy explain verifiedAccount=A operation=other", out: "search does not match: it takes operations search, not other"},
		{call: "policy installations search", out: "alive  yes"},
		{call: "policy shadow-report search", out: "search v1: of "},
		{call: "policy shadow-report search --version first", code: exitUsage, errs: "not a version"},
	})
	if a := d.instance.mustAsk(t, request("search", "A")); a.Allowed {
		t.Error("a policy whose kill switch was taken back allows")
	}
}

// Of two operators at once one wins and one is told what is in force; a tag of a
// deleted policy creates nothing.
func TestTwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	i := serve(t, newDatabase(t))
	i.put(t, "search", slow("search", 1, ""), 0)
	path := i.admin + "/v1/policies/search"
	for version := 1; version <= 5; version++ {
		statuses := make(chan int, 2)
		var operators sync.WaitGroup
		for n := range 2 {
			operators.Go(func() {
				status, _, _, err := i.call(http.MethodPut, path, slow("search", 10*version+n+2, ""), "If-Match", fmt.Sprintf(`"v%d"`, version))
				if err != nil {
					t.Error(err)
				}
				statuses <- status
			})
		}
		operators.Wait()
		if one, other := <-statuses, <-statuses; one+other != http.StatusOK+http.StatusPreconditionFailed {
			t.Errorf("two changes of v%d are answered %d and %d", version, one, other)
		}
	}
	for _, c := range []struct {
		method, tag string
		status      int
	}{
		{http.MethodPut, "", http.StatusPreconditionRequired},
		{http.MethodPut, `"v5"`, http.StatusPreconditionFailed},
		{http.MethodPut, `W/"v6"`, http.StatusPreconditionFailed},
		{http.MethodPut, `six`, http.StatusBadRequest},
		{http.MethodPut, `*`, http.StatusBadRequest},
		{http.MethodDelete, "", http.StatusPreconditionRequired},
		{http.MethodDelete, `"v5"`, http.StatusPreconditionFailed},
		{http.MethodDelete, `"v6"`, http.StatusOK},
		{http.MethodDelete, `"v6"`, http.StatusPreconditionFailed},
		{http.MethodPut, `"v6"`, http.StatusPreconditionFailed},
		{http.MethodPut, `"v7"`, http.StatusPreconditionFailed},
	} {
		var header []string
		if c.tag != "" {
			header = []string{"If-Match", c.tag}
		}
		status, _, content, err := i.call(c.method, path, slow("search", 99, ""), header...)
		if err != nil || status != c.status {
			t.Errorf("%s with %s: %d %s, want %d (%v)", c.method, c.tag, status, content, c.status, err)
		}
	}
}
