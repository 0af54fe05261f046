package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// What is wrong with the call itself is told as that, and nobody is asked.
func TestCallsThatCannotWorkAskNobody(t *testing.T) {
	t.Parallel()
	asked := false
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(service.Close)
	folder := t.TempDir()
	for _, c := range []struct{ call, token, errs string }{
		{call: "policy list", token: "rat_1_a\nb", errs: "RATION_TOKEN has a space"},
		{call: "policy list", token: "rat_1_ä", errs: "RATION_TOKEN has a space"},
		{call: "policy apply " + folder + " --prune --yes", errs: "has no policy, and --prune would delete all there are"},
	} {
		environ := []string{"RATION_ADMIN_URL=" + service.URL, "RATION_TOKEN=" + c.token}
		code, _, errs := command(t, environ, "", strings.Fields(c.call)...)
		if code != exitUsage || !strings.Contains(errs, c.errs) || c.token != "" && strings.Contains(errs, "rat_") {
			t.Errorf("ration %s: exit %d, %s", c.call, code, errs)
		}
	}
	if asked {
		t.Error("the service was asked")
	}
}

func TestWhoInterruptsACallIsToldSo(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	}))
	t.Cleanup(service.Close)
	var out, errs bytes.Buffer
	code := run(ctx, []string{"policy", "list"}, []string{"RATION_ADMIN_URL=" + service.URL}, stdio{in: strings.NewReader(""), out: &out, err: &errs})
	if want := "interrupted before " + service.URL + " answered\n"; code != exitFailed || !strings.HasSuffix(errs.String(), want) {
		t.Errorf("exit %d, %s", code, &errs)
	}
}

// A change that was waited for in vain fails, whatever made it and however that
// is told.
func TestWhoWaitsInVainIsToldSo(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"id":"p","version":2,"limit":{"algorithm":"fixed_window","limit":1,"windowSeconds":1},"installed":false,` +
			`"waitingFor":[{"instance":"019a","name":"two","seenAt":"2026-11-30T06:00:00Z"}]}`))
	}))
	t.Cleanup(service.Close)
	for _, call := range []string{"put p -", "rollback p v1", "delete p"} {
		for _, form := range []string{"text", "json"} {
			tell(t, []string{"RATION_ADMIN_URL=" + service.URL}, []line{
				{call: "policy " + call + " --if-match v1 --wait 1s -o " + form, stdin: "{}", code: exitFailed, out: "p", errs: "not confirmed in time by\n  two (019a)"},
			})
		}
	}
}

// Jobs are run with the null device as their standard input: there is nobody to
// ask.
func TestNobodySitsAtTheNullDevice(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	if isTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
}

// A file that is no policy by far is refused by the service, which says why.
func TestTooLongAPolicyIsToldToBeThat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := d.file("long.json", strings.Repeat(" ", 8<<20))
	tell(t, d.environ, []line{{call: "policy put long " + file + " --create", code: exitFailed, errs: "content-too-large (413"}})
}
