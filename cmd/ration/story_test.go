package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// wish is a request that a story asks. Few values of each attribute, so that
// keys meet again.
type wish struct {
	VerifiedAccount string `json:"verifiedAccount,omitempty"`
	User            string `json:"user,omitempty"`
	IP              string `json:"ip,omitempty"`
	TargetAccount   string `json:"targetAccount,omitempty"`
	Plan            string `json:"plan,omitempty"`
	Operation       string `json:"operation"`
	Cost            int64  `json:"cost,omitempty"`
	Peek            bool   `json:"peek,omitempty"`
	OperationID     string `json:"operationId,omitempty"`
}

func (w wish) String() string {
	body, err := json.Marshal(w)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// author makes up policies and requests.
type author struct {
	*rand.Rand

	operationIDs int
}

// one picks one of some.
func one[T any](a *author, of ...T) T { return of[a.IntN(len(of))] }

// wish makes up a request.
func (a *author) wish() wish {
	maybe := func(percent int, values ...string) string {
		if a.IntN(100) >= percent {
			return ""
		}
		return one(a, values...)
	}
	w := wish{
		VerifiedAccount: maybe(90, "A", "B"),
		User:            maybe(50, "u", "v"),
		IP:              maybe(80, "192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2"),
		TargetAccount:   maybe(50, "T", " ｔ", "other"),
		Plan:            maybe(50, "free"),
		Operation:       one(a, "a", "a.b", "a.c", "b"),
		Peek:            a.IntN(10) == 0,
	}
	if a.IntN(3) == 0 {
		w.Cost = 1 + a.Int64N(4)
	}
	if !w.Peek && a.IntN(3) == 0 {
		w.OperationID = a.operationID()
	}
	return w
}

// operationID makes one that is new.
func (a *author) operationID() string {
	a.operationIDs++
	return fmt.Sprint("op-", a.operationIDs)
}

// altered is a request as another attempt might send it: mostly the same,
// else one that only looks like it.
func (a *author) altered(w wish) wish {
	switch a.IntN(8) {
	case 0:
		w.Cost = a.Int64N(4)
	case 1:
		w.User = "w"
	case 2:
		w.VerifiedAccount = one(a, "A", "B")
	case 3:
		w.Operation = one(a, "a", "a.b", "none")
	}
	return w
}

// made is a policy that the author made up: what stays, and what its versions
// change.
type made struct {
	id, fixed string
	limit     func(capacity int64) string
	version   int
}

// policy makes up a policy; each algorithm has its turn.
func (a *author) policy(number int) *made {
	window := one(a, "0.25", "1", "7.5", "60", "3600", "86400")
	per := one(a, `"account"`, `"ip"`, `"user"`, `"account","operation"`, `"ip","targetAccount"`, `"targetAccount"`, ``)
	match := fmt.Sprintf(`"operations":[%s]`, one(a, `"*"`, `"a.*"`, `"a","b"`, `"a.b"`))
	if per == "" {
		match = `"operations":["b"]` // apart from the batches, whose order is open
	}
	if a.IntN(4) == 0 {
		match += `,"plans":["free"]`
	}
	m := &made{id: fmt.Sprint("p", number)}
	m.fixed = fmt.Sprintf(`"match":{%s},"per":[%s],"onMissing":%q,"durability":%q,"disclose":%t`,
		match, per, one(a, "skip", "skip", "skip", "skip", "skip", "reject"), one(a, "fast", "durable"), a.IntN(4) == 0)
	algorithms := []string{"token_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log", "concurrency"}
	switch algorithm := algorithms[number%len(algorithms)]; algorithm {
	case "token_bucket":
		m.limit = func(capacity int64) string {
			return fmt.Sprintf(`{"algorithm":%q,"capacity":%d,"refillTokens":%d,"refillSeconds":%s}`, algorithm, capacity, 1+a.IntN(7), window)
		}
	case "concurrency":
		m.limit = func(capacity int64) string {
			return fmt.Sprintf(`{"algorithm":%q,"limit":%d,"ttlSeconds":%s}`, algorithm, capacity, one(a, "0.5", "30", "4000"))
		}
	case "sliding_window_counter":
		strict := a.IntN(2) == 0
		m.limit = func(capacity int64) string {
			return fmt.Sprintf(`{"algorithm":%q,"limit":%d,"windowSeconds":%s,"strict":%t}`, algorithm, capacity, window, strict)
		}
	default:
		m.limit = func(capacity int64) string {
			return fmt.Sprintf(`{"algorithm":%q,"limit":%d,"windowSeconds":%s}`, algorithm, capacity, window)
		}
	}
	return m
}

// version makes up the next version of a policy.
func (a *author) version(m *made) string {
	mode := one(a, "enforce", "enforce", "enforce", "enforce", "enforce", "shadow", "disabled")
	costs := one(a, `{}`, `{}`, `{"max":3}`, `{"default":2,"max":4}`, `{"operations":{"a":2,"a.b":3}}`)
	return fmt.Sprintf(`{%s,"mode":%q,"costs":%s,"limit":%s}`, m.fixed, mode, costs, m.limit(1+a.Int64N(15)))
}

// asBatch is the body of a batch.
func asBatch(wishes []wish) string {
	items := make([]string, len(wishes))
	for i, w := range wishes {
		items[i] = w.String()
	}
	return `{"decisions":[` + strings.Join(items, ",") + `]}`
}
