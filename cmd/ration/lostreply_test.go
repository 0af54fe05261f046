package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Three policies that one request of lostOperation has to pass, a slot among
// what it takes. Nothing is earned back while a test runs.
const lostOperation = `{"verifiedAccount":"A","operation":"job","operationId":"lost"}`

func putLostPolicies(t *testing.T, i *instance) {
	t.Helper()
	i.put(t, "bucket", slow("job", 10, `"costs":{"default":2},`), 0)
	i.put(t, "window", `{"match":{"operations":["job"]},"per":["account"],
		"limit":{"algorithm":"sliding_window_log","limit":10,"windowSeconds":86400}}`, 0)
	i.put(t, "slots", `{"match":{"operations":["job"]},"per":["account"],
		"limit":{"algorithm":"concurrency","limit":10,"ttlSeconds":86400}}`, 0)
}

// remaining gives what each policy has left for an account.
func remaining(t *testing.T, c *client, account string) map[string]int64 {
	t.Helper()
	_, _, content, err := c.call(http.MethodGet, c.decisions+"/internal/usage?verifiedAccount="+account, "")
	var usage usageReply
	if err == nil {
		err = readStrictly(content, &usage)
	}
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int64{}
	for _, part := range usage.Policies {
		left[part.Policy] = part.Remaining
	}
	return left
}

// The answer is decided and gets lost on its way: the repetition is charged
// nothing and told the same, whichever instance it reaches, also when the
// first one is gone.
func TestLostReply(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	first, second := spawn(t, db), serve(t, db)
	putLostPolicies(t, second)
	eventually(t, "the other instance has the policies", func() bool {
		return first.metric(t, `ration_policy_version{policy="slots"}`) == "1"
	})
	cut := newCuttingProxy(t, strings.TrimPrefix(first.decisions, "http://"))
	through := newClient(t, "http://"+cut.address)
	if status, _, content, err := through.call(http.MethodPost, through.decisions+"/internal/rate-decisions", lostOperation); err == nil {
		t.Fatalf("the answer was not lost: %d %s", status, content)
	}
	lost := <-cut.lost
	charged := map[string]int64{"bucket": 8, "window": 9, "slots": 9}
	repeat := func(c *client) {
		t.Helper()
		status, _, content, err := c.call(http.MethodPost, c.decisions+"/internal/rate-decisions", lostOperation)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d %s (%v)", status, content, err)
		}
		if got := bytes.Replace(content, []byte(`"source":"replay"`), []byte(`"source":"store"`), 1); !bytes.Equal(got, lost) {
			t.Errorf("the repetition is told\n%s, and what was lost is\n%s", got, lost)
		}
		for id, want := range charged {
			if got := remaining(t, second.client, "A")[id]; got != want {
				t.Errorf("%s has %d left, want %d", id, got, want)
			}
		}
	}
	repeat(first.client)
	repeat(second.client)
	if err := first.process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.stop()
	repeat(second.client)
}

// cuttingProxy stands between a client and a server: it hands requests on, and
// instead of an answer it breaks the connection.
type cuttingProxy struct {
	address string
	lost    chan []byte // the bodies of the answers that got lost
}

func newCuttingProxy(t *testing.T, server string) *cuttingProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cuttingProxy{address: listener.Addr().String(), lost: make(chan []byte, 1)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			serving.Go(func() { p.cut(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // it accepts nothing any more
		serving.Wait()
	})
	return p
}

// cut hands one request on, keeps its answer, and hangs up.
func (p *cuttingProxy) cut(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	request, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil || request.Write(upstream) != nil {
		return
	}
	answer, err := http.ReadResponse(bufio.NewReader(upstream), request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return
	}
	p.lost <- body
}

// Twenty duplicates at once over two instances, of which one decides and is
// held up before it can commit: charged once, one answer for all, no fault.
func TestDuplicatesThroughTwoInstances(t *testing.T) {
	t.Parallel()
	const duplicates = 20
	db := newDatabase(t)
	instances := []*instance{serve(t, db), serve(t, db)}
	putLostPolicies(t, instances[0])
	eventually(t, "both instances have the policies", func() bool {
		return instances[1].metric(t, `ration_policy_version{policy="slots"}`) == "1"
	})
	instances[0].mustAsk(t, request("job", "A")) // so that there are rows to hold
	holder, err := db.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `SELECT FROM ration.bucket_fast FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	answers := map[int]map[string]int{} // by status and body
	var asking sync.WaitGroup
	for n := range duplicates {
		asking.Go(func() {
			i := instances[n%len(instances)]
			status, header, content, err := i.call(http.MethodPost, i.decisions+"/internal/rate-decisions", lostOperation)
			if err != nil {
				t.Error(err)
			}
			if status == http.StatusConflict && header.Get("Retry-After") != "1" {
				t.Errorf("whoever is in progress is told to come back after %q s", header.Get("Retry-After"))
			}
			body := strings.Replace(string(content), `"source":"replay"`, `"source":"store"`, 1)
			mu.Lock()
			defer mu.Unlock()
			if answers[status] == nil {
				answers[status] = map[string]int{}
			}
			answers[status][body]++
		})
	}
	eventually(t, "the one that decides is held up", func() bool {
		var waiting int
		err := db.Owner().QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting > 0
	})
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
	for status, bodies := range answers {
		if status != http.StatusOK && status != http.StatusConflict {
			t.Errorf("%d: %v", status, bodies)
		}
	}
	if len(answers[http.StatusOK]) != 1 {
		t.Errorf("duplicates are told different things: %v", answers[http.StatusOK])
	}
	for id, want := range map[string]int64{"bucket": 6, "window": 8, "slots": 8} {
		if got := remaining(t, instances[0].client, "A")[id]; got != want {
			t.Errorf("%s has %d left, want %d", id, got, want)
		}
	}
	t.Logf("%d of %d duplicates are told what was decided", total(answers[http.StatusOK]), duplicates)
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}
