package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
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

// A list is all of its pages, a page without rows among them, or as many rows as
// are wanted.
func TestAListIsAllOfItsPages(t *testing.T) {
	t.Parallel()
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		after, _ := strconv.Atoi(r.FormValue("after"))
		if after < 3 {
			w.Header().Set("Link", fmt.Sprintf(`<%s?after=%d>; rel="next"`, r.URL.Path, after+1))
		}
		rows := fmt.Sprintf(`{"id":%d,"key":"%[1]d1"},{"id":%[1]d,"key":"%[1]d2"}`, after)
		if after == 1 {
			rows = ""
		}
		_, _ = fmt.Fprintf(w, `{"rows":[%s],"buckets":[%[1]s]}`, rows)
	}))
	t.Cleanup(service.Close)
	for _, c := range []struct {
		call, out string
		asked     []string
	}{
		{
			"bucket show p -o json",
			`{"buckets":[{"id":0,"key":"01"},{"id":0,"key":"02"},{"id":2,"key":"21"},{"id":2,"key":"22"},{"id":3,"key":"31"},{"id":3,"key":"32"}]}`,
			[]string{"/v1/buckets?limit=50&policy=p", "/v1/buckets?after=1", "/v1/buckets?after=2", "/v1/buckets?after=3"},
		},
		{
			"audit list --rows 4 -o json",
			`{"rows":[{"id":0,"key":"01"},{"id":0,"key":"02"},{"id":2,"key":"21"},{"id":2,"key":"22"}]}`,
			[]string{"/v1/audit?limit=4", "/v1/audit?after=1", "/v1/audit?after=2"},
		},
		{"audit list --rows 2000 -o json", `{"rows":[`, []string{"/v1/audit?limit=500", "/v1/audit?after=1", "/v1/audit?after=2", "/v1/audit?after=3"}},
	} {
		asked = nil
		tell(t, []string{"RATION_ADMIN_URL=" + service.URL}, []line{{call: c.call, out: c.out}})
		if !slices.Equal(asked, c.asked) {
			t.Errorf("ration %s asks %q, want %q", c.call, asked, c.asked)
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
