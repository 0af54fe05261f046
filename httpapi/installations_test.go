package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// stubInstallations is a list of instances that a test changes.
type stubInstallations struct {
	mu         sync.Mutex
	generation int64
	instances  []policy.Instance
	fault      error
	looks      int
}

func (s *stubInstallations) Instances(context.Context) (int64, []policy.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.fault != nil {
		return 0, nil, s.fault
	}
	return s.generation, append([]policy.Instance(nil), s.instances...), nil
}

func (s *stubInstallations) Installation(ctx context.Context, id string) (policy.Installation, error) {
	if id != "report-create" {
		return policy.Installation{}, &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such policy."}
	}
	generation, instances, err := s.Instances(ctx)
	return policy.Installation{ID: id, Version: 3, Generation: generation, Instances: instances}, err
}

func (s *stubInstallations) set(change func(*stubInstallations)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// fourInstances are one of each kind, where the policy set is of generation 7.
func fourInstances() *stubInstallations {
	instance := func(number byte, name string, generation int64, alive, awaited bool) policy.Instance {
		return policy.Instance{
			ID: policy.InstanceID{number}, Name: name, Version: "1.2.3", StartedAtMicros: nowMicros, SeenAtMicros: nowMicros + int64(number)*1_000_000,
			Generation: generation, Alive: alive, Awaited: awaited,
		}
	}
	return &stubInstallations{generation: 7, instances: []policy.Instance{
		instance(1, "up", 7, true, true), instance(2, "behind", 6, true, true),
		instance(3, "gone", 5, false, true), instance(4, "long-gone", 5, false, false),
	}}
}

func TestInstallationExchanges(t *testing.T) {
	t.Parallel()
	all := fourInstances()
	for i := range all.instances[:3] {
		all.instances[i].Generation = 8
	}
	for name, e := range map[string]exchange{
		"list":    {handler: adminWith(fourInstances())},
		"all":     {handler: adminWith(all)},
		"unknown": {handler: adminWith(fourInstances()), target: "/v1/policies/nothing/installations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.name, e.method = "installations-"+name, http.MethodGet
			if e.target == "" {
				e.target = "/v1/policies/report-create/installations"
			}
			e.check(t)
		})
	}
}

func adminWith(installations httpapi.Installations) http.Handler {
	return httpapi.NewAdmin(httpapi.AdminConfig{Policies: new(stubPolicies), Installations: installations, Actor: "operator"})
}

// putWaiting creates a policy and waits for its installation.
func putWaiting(handler http.Handler, wait string) *httptest.ResponseRecorder {
	return putOneWaiting(handler, "report-create", wait)
}

func putOneWaiting(handler http.Handler, id, wait string) *httptest.ResponseRecorder {
	return call(handler, http.MethodPut, "/v1/policies/"+id+"?waitForInstall="+wait, spec(40),
		"Content-Type", "application/json", "If-None-Match", "*", "X-Request-Id", "example-1")
}

// waitAnswer is what an answer says of the wait.
type waitAnswer struct {
	ID         string
	Version    int
	Installed  *bool
	WaitingFor []struct{ Instance, Name, SeenAt string }
}

func readInstalled(t *testing.T, answer *httptest.ResponseRecorder) (is waitAnswer) {
	t.Helper()
	if err := json.Unmarshal(answer.Body.Bytes(), &is); err != nil || is.Installed == nil || is.ID != "report-create" || is.Version != 1 {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	return is
}

func TestAChangeWaitsForInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		instances := fourInstances()
		begun := time.Now()
		answer := putWaiting(adminWith(instances), "5s")
		is := readInstalled(t, answer)
		if answer.Code != http.StatusAccepted || *is.Installed || len(is.WaitingFor) != 2 ||
			is.WaitingFor[0].Name != "behind" || is.WaitingFor[1].Name != "gone" || is.WaitingFor[1].SeenAt != "2026-01-02T03:04:08.000000Z" {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("it waited for %s", waited)
		}
		if instances.looks > 40 {
			t.Errorf("it looked %d times in 5 s", instances.looks)
		}

		answered := make(chan *httptest.ResponseRecorder)
		waiting := func() { answered <- putWaiting(adminWith(instances), "1m") }
		go waiting()
		synctest.Wait()
		// A later change does not make this one wait longer, a loss that was long ago does not either.
		instances.set(func(s *stubInstallations) {
			s.generation, s.instances[1].Generation, s.instances[2].Awaited = 8, 7, false
		})
		answer = <-answered
		if is := readInstalled(t, answer); answer.Code != http.StatusCreated || !*is.Installed || is.WaitingFor != nil {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}

		// The list is empty after a crash of the store, until each has said that it lives.
		instances.set(func(s *stubInstallations) { s.generation, s.instances = 9, nil })
		go waiting()
		synctest.Wait()
		instances.set(func(s *stubInstallations) {
			s.instances = []policy.Instance{{Name: "up", Generation: 9, Alive: true, Awaited: true}}
		})
		if answer := <-answered; answer.Code != http.StatusCreated {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	})
}

// The change was made: that the store cannot be asked any more is no failure of
// it.
func TestAChangeWaitsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		instances := &stubInstallations{fault: &policy.Error{Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable}}
		answer := putWaiting(adminWith(instances), "2s")
		if is := readInstalled(t, answer); answer.Code != http.StatusAccepted || *is.Installed || is.WaitingFor == nil || len(is.WaitingFor) != 0 {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		answered := make(chan *httptest.ResponseRecorder)
		go func() { answered <- putWaiting(adminWith(instances), "2s") }()
		synctest.Wait()
		instances.set(func(s *stubInstallations) {
			s.fault, s.generation, s.instances = nil, 2, []policy.Instance{{Generation: 2, Alive: true, Awaited: true}}
		})
		if answer := <-answered; answer.Code != http.StatusCreated {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	})
}

func TestNobodyWaitsForAListenerThatCloses(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	close(stopping)
	handler := httpapi.NewAdmin(httpapi.AdminConfig{
		Policies: new(stubPolicies), Installations: fourInstances(), Stopping: stopping, Actor: "operator",
	})
	if answer := putWaiting(handler, "1m"); answer.Code != http.StatusAccepted {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// Who finds no room to wait has changed nothing.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policies := new(stubPolicies)
		stopping := make(chan struct{})
		handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: policies, Installations: fourInstances(), Stopping: stopping, Actor: "operator"})
		var waiting sync.WaitGroup
		for i := range 32 {
			waiting.Go(func() { putOneWaiting(handler, fmt.Sprint("p", i), "1m") })
		}
		synctest.Wait()
		before := len(policies.puts)
		answer := putWaiting(handler, "1ms")
		if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "overloaded") || len(policies.puts) != before {
			t.Errorf("one more: %d %s, %d changes", answer.Code, answer.Body, len(policies.puts)-before)
		}
		close(stopping)
		waiting.Wait()
		if answer := putWaiting(handler, "1ms"); answer.Code == http.StatusServiceUnavailable {
			t.Error("nobody waits any more, and there is no room")
		}
	})
}

func TestWaitsAreOfSomeTime(t *testing.T) {
	t.Parallel()
	policies := new(stubPolicies)
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Policies: policies, Installations: fourInstances(), Actor: "operator"})
	for _, wait := range []string{"", "5", "0s", "-1s", "999us", "60001ms", "soon", "5s&waitForInstall=5s"} {
		if answer := putWaiting(handler, wait); answer.Code != http.StatusBadRequest || len(policies.puts) > 0 {
			t.Errorf("%q: %d %s, %d changes", wait, answer.Code, answer.Body, len(policies.puts))
		}
	}
}

// A wait may be longer than a server's bounds for what answers at once.
func TestAWaitOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	const bound = 500 * time.Millisecond
	server := httptest.NewUnstartedServer(adminWith(fourInstances()))
	server.Config.ReadTimeout, server.Config.WriteTimeout = bound, bound
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/v1/policies/report-create?waitForInstall=1s", strings.NewReader(spec(40)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("If-None-Match", "*")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusAccepted || !strings.Contains(string(body), `"name":"behind"`) {
		t.Errorf("%d %s (%v)", response.StatusCode, body, err)
	}
}

// Changes of overrides wait as those of policies do; the wait is no attribute
// of the key.
func TestAChangeOfAnOverrideWaits(t *testing.T) {
	t.Parallel()
	everywhere := fourInstances()
	everywhere.generation = 5
	handler := httpapi.NewAdmin(httpapi.AdminConfig{Overrides: stubOverrides{}, Installations: everywhere, Actor: "operator"})
	const target = "/v1/policies/report-create/overrides?verifiedAccount=A&waitForInstall=5s"
	set := call(handler, http.MethodPut, target, `{"action":"exempt","reason":"why"}`, "Content-Type", "application/json")
	if set.Code/100 != 2 || !strings.HasSuffix(set.Body.String(), `,"installed":true}`+"\n") {
		t.Errorf("set: %d %s", set.Code, set.Body)
	}
	if removed := call(handler, http.MethodDelete, target+"&reason=done", ""); removed.Code != http.StatusOK || removed.Body.String() != `{"installed":true}`+"\n" {
		t.Errorf("removed: %d %s", removed.Code, removed.Body)
	}
	if twice := call(handler, http.MethodDelete, target+"&waitForInstall=5s", ""); twice.Code != http.StatusBadRequest {
		t.Errorf("two waits: %d %s", twice.Code, twice.Body)
	}
}
