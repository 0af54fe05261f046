package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rationhq/ration/policy"
)

// What a gateway asks and an operator changes, at random, is answered by the
// running program as by the model: statuses, every figure, every instant.
func TestConformanceThroughHTTP(t *testing.T) {
	t.Parallel()
	const stepsMax = 500 // of one story
	seed := fromEnvironment(t, "RATION_SEED", uint64(rand.Uint32()))
	for steps := fromEnvironment(t, "RATION_STEPS", stepsMax); steps > 0; seed++ {
		length := min(steps, stepsMax)
		steps -= length
		t.Run(fmt.Sprint("RATION_SEED=", seed), func(t *testing.T) {
			s := newStory(t, seed)
			for range length {
				s.step()
			}
			t.Logf("%d steps, answers by status: %v", length, s.seen)
			if s.seen[http.StatusOK] == 0 || s.seen[http.StatusTooManyRequests] == 0 {
				t.Error("nothing was allowed, or nothing denied: the story tests nothing")
			}
		})
	}
}

// story is what happens between one instance and those who use it.
type story struct {
	*author

	t        *testing.T
	instance *instance
	model    *model
	clock    *clock
	policies []*made
	asked    []wish          // with operation ids
	slots    []policy.SlotID // the model's
	real     map[string]string
	seen     map[int]int // answers by status
	told     []string    // what was asked and answered so far
}

func newStory(t *testing.T, seed uint64) *story {
	t.Helper()
	const policies = 9
	db := newDatabase(t)
	s := &story{
		author: &author{Rand: rand.New(rand.NewPCG(seed, 0))}, t: t, model: newModel(t), real: map[string]string{}, seen: map[int]int{},
		clock: newClock(t, db, time.Date(2026, time.November, 30, 23, 59, 58, 0, time.UTC)),
	}
	s.instance = start(t, append(openOn(db), "RATION_JITTER=0", "RATION_LANES=2",
		"RATION_OPERATION_RETENTION="+operationRetention.String()), "serve")
	for number := range policies {
		s.policies = append(s.policies, s.policy(number))
		s.change(s.policies[number])
	}
	return s
}

// step does one thing.
func (s *story) step() {
	switch percent := s.IntN(100); {
	case percent < 45:
		s.ask(s.wish())
	case percent < 55 && len(s.asked) > 0:
		s.ask(s.altered(one(s.author, s.asked...)))
	case percent < 60:
		s.batch()
	case percent < 68 && len(s.asked) > 0:
		s.settle(one(s.author, s.asked...))
	case percent < 71 && len(s.asked) > 0:
		s.lookUp(one(s.author, s.asked...))
	case percent < 75:
		s.usage()
	case percent < 80 && len(s.slots) > 0:
		s.endOrRenew(one(s.author, s.slots[max(0, len(s.slots)-5):]...))
	case percent < 88:
		const mostly = 60_000_000 // a minute
		s.clock.forward(time.Duration(1+s.Int64N(1+s.Int64N(mostly))) * time.Microsecond)
	case percent < 97:
		s.clock.forward(time.Duration(max(0, s.model.waits+s.Int64N(3)-1)%day.Microseconds()) * time.Microsecond) // as advised, or nearly
	case percent < 98:
		s.change(one(s.author, s.policies...))
	}
}

const day = 24 * time.Hour

func (s *story) now() int64 { return s.clock.now.UnixMicro() }

// change puts the next version of a policy.
func (s *story) change(m *made) {
	s.t.Helper()
	body := s.version(m)
	s.told = append(s.told, fmt.Sprintf("%s version %d: %s", m.id, m.version+1, body))
	s.instance.put(s.t, m.id, body, m.version)
	s.model.put(m.id, body, m.version, s.now())
	m.version = len(s.model.installed[m.id])
}

// ask asks for a decision.
func (s *story) ask(w wish) {
	s.t.Helper()
	if w.OperationID != "" {
		s.asked = append(s.asked, w)
	}
	want := s.model.ask(w.String(), s.now())
	got := s.call(http.MethodPost, "/internal/rate-decisions", w.String(), decisionIn)
	s.acquired(want, got)
	s.compare(w, want, got)
}

// batch asks for callers who have nothing in common, as their order is open;
// the last one asks twice under one operation id, which is not.
func (s *story) batch() {
	s.t.Helper()
	var wishes []wish
	for caller := range 2 + s.IntN(5) {
		wishes = append(wishes, wish{
			VerifiedAccount: fmt.Sprint("batch-", caller), IP: fmt.Sprint("198.51.100.", caller), TargetAccount: fmt.Sprint("target-", caller),
			Operation: one(s.author, "a", "a.b", "a.c"), Cost: s.Int64N(3),
		})
	}
	last := wishes[len(wishes)-1]
	last.OperationID = s.operationID()
	wishes = append(wishes[:len(wishes)-1], last, last)
	status, _, content, err := s.instance.call(http.MethodPost, s.instance.decisions+"/internal/rate-decisions/batch", asBatch(wishes))
	var answers struct{ Decisions []json.RawMessage }
	if err == nil {
		err = json.Unmarshal(content, &answers)
	}
	if err != nil || status != http.StatusOK || len(answers.Decisions) != len(wishes) {
		s.t.Fatalf("batch: %d %s (%v)", status, content, err)
	}
	for i, item := range answers.Decisions {
		var read struct {
			decisionReply

			Status  int
			Problem *struct{ Type string }
		}
		if err := json.Unmarshal(item, &read); err != nil {
			s.t.Fatalf("%s: %v", item, err)
		}
		got := outcome{Status: read.Status, Decision: &read.decisionReply}
		if read.Problem != nil {
			got = outcome{Status: read.Status, Problem: read.Problem.Type[strings.LastIndex(read.Problem.Type, "/")+1:]}
		}
		want := s.model.ask(wishes[i].String(), s.now())
		s.acquired(want, got)
		s.compare(wishes[i], want, got)
	}
}

// settle replaces a charge, now and then as nobody's.
func (s *story) settle(w wish) {
	s.t.Helper()
	actual := s.Int64N(6)
	body := fmt.Sprintf(`{"actualCost":%d}`, actual)
	if w.VerifiedAccount != "" {
		body = fmt.Sprintf(`{"actualCost":%d,"verifiedAccount":%q}`, actual, w.VerifiedAccount)
	}
	got := s.call(http.MethodPost, "/internal/rate-decisions/"+w.OperationID+"/settlement", body, settledIn)
	s.compare("settle "+w.OperationID+body, s.model.settle(w.VerifiedAccount, w.OperationID, actual, s.now()), got)
}

// lookUp asks what was decided.
func (s *story) lookUp(w wish) {
	s.t.Helper()
	url := "/internal/rate-decisions/" + w.OperationID
	if w.VerifiedAccount != "" {
		url += "?verifiedAccount=" + w.VerifiedAccount
	}
	s.compare("GET "+url, s.model.lookUp(w.VerifiedAccount, w.OperationID), s.call(http.MethodGet, url, "", decisionIn))
}

// usage looks at a caller's limits.
func (s *story) usage() {
	s.t.Helper()
	w, query := s.wish(), url.Values{}
	for name, value := range map[string]string{
		"verifiedAccount": w.VerifiedAccount, "user": w.User, "ip": w.IP, "targetAccount": w.TargetAccount, "plan": w.Plan,
		"operation": one(s.author, "", w.Operation),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	got := s.call(http.MethodGet, "/internal/usage?"+query.Encode(), "", usageIn)
	s.compare("usage "+query.Encode(), s.model.usage(query, s.now()), got)
}

// endOrRenew releases or renews a slot, one that has ended too.
func (s *story) endOrRenew(id policy.SlotID) {
	s.t.Helper()
	path := "/internal/slots/" + s.real[id.String()]
	if s.IntN(2) == 0 {
		s.compare("release "+id.String(), s.model.release(id, s.now()), s.call(http.MethodDelete, path, "", slotIn))
		return
	}
	s.compare("renew "+id.String(), s.model.renew(id, s.now()), s.call(http.MethodPost, path+"/renewal", "", slotIn))
}

// call makes a call and reads its answer.
func (s *story) call(method, path, body string, member func(*outcome) any) outcome {
	s.t.Helper()
	status, header, content, err := s.instance.call(method, s.instance.decisions+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := readOutcome(status, header, content, member)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// acquired remembers slots: the two sides name theirs differently.
func (s *story) acquired(want, got outcome) {
	if want.Decision == nil || got.Decision == nil || len(want.Decision.Slots) != len(got.Decision.Slots) {
		return // told by the comparison
	}
	for i, slot := range want.Decision.Slots {
		id, err := policy.ParseSlotID(slot.SlotID)
		if err != nil {
			s.t.Fatal(err)
		}
		if s.real[slot.SlotID] == "" {
			s.slots = append(s.slots, id)
			s.real[slot.SlotID] = got.Decision.Slots[i].SlotID
		}
	}
}

// compare fails at the first answer that differs, with what led there.
func (s *story) compare(asked any, want, got outcome) {
	s.t.Helper()
	s.seen[got.Status]++
	s.told = append(s.told, fmt.Sprintf("%s %s: %s", s.clock.now.Format("02 15:04:05.000000"), asked, got))
	theirs := want.String()
	for model, program := range s.real {
		theirs = strings.ReplaceAll(theirs, model, program)
	}
	if theirs != got.String() {
		s.t.Fatalf("%s\nand the model says\n%s", strings.Join(s.told, "\n"), theirs)
	}
}

// fromEnvironment is a number that the environment may set.
func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}
