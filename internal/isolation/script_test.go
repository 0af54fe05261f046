package isolation_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// script is what several sessions do, and in which orders.
type script struct {
	setup    []string
	sessions []actor
	steps    map[string]step
	orders   [][]string
}

// actor is a session by its name and the role that it connects as.
type actor struct {
	name  string
	owner bool
}

type step struct {
	session string
	sql     string
}

// readScript reads a script. A line that begins with a space goes on with the
// one before it.
func readScript(text string) (*script, error) {
	s := &script{steps: make(map[string]step)}
	text = strings.ReplaceAll(text, "\n ", " ")
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.add(line); err != nil {
			return nil, fmt.Errorf("paragraph line %d: %w", i+1, err)
		}
	}
	if len(s.orders) == 0 {
		return nil, fmt.Errorf("it has no order")
	}
	return s, nil
}

func (s *script) add(line string) error {
	if name, isSession := strings.CutPrefix(line, "session "); isSession {
		name, owner := strings.CutSuffix(name, " as owner")
		s.sessions = append(s.sessions, actor{name, owner})
		return nil
	}
	name, rest, found := strings.Cut(line, ": ")
	_, known := s.steps[name]
	switch {
	case !found:
		return fmt.Errorf("%q is neither a session nor a step", line)
	case name == "setup":
		s.setup = append(s.setup, rest)
	case name == "order":
		order := strings.Fields(rest)
		for _, name := range order {
			if _, known := s.steps[name]; !known {
				return fmt.Errorf("no step is called %q", name)
			}
		}
		s.orders = append(s.orders, order)
	case len(s.sessions) == 0:
		return fmt.Errorf("step %s belongs to no session", name)
	case known:
		return fmt.Errorf("two steps are called %s", name)
	default:
		s.steps[name] = step{session: s.sessions[len(s.sessions)-1].name, sql: rest}
	}
	return nil
}

func TestFaultyScriptsAreRefused(t *testing.T) {
	t.Parallel()
	const good = "setup: SELECT 1;\nsession one\nb: BEGIN;\nt: SELECT\n  2;\norder: b t\n"
	if s, err := readScript(good); err != nil || s.steps["t"].sql != "SELECT  2;" || s.steps["t"].session != "one" {
		t.Errorf("%+v, %v", s, err)
	}
	for name, text := range map[string]string{
		"no order":       "session one\nb: BEGIN;",
		"unknown step":   good + "order: b x",
		"a step twice":   good + "b: BEGIN;\norder: b",
		"no session":     "b: BEGIN;\norder: b",
		"something else": good + "whatever",
	} {
		if s, err := readScript(text); err == nil {
			t.Errorf("%s: read as %+v", name, s)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
