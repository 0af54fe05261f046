package devpg

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// tailLinesMax is how much of a log an error message repeats.
const tailLinesMax = 20

// tailLineBytesMax bounds one remembered line; a statement can be megabytes.
const tailLineBytesMax = 1000

// tail passes a log on and remembers its last lines for error messages.
type tail struct {
	mu      sync.Mutex
	next    io.Writer // may be nil
	lines   []string
	partial []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		t.partial = append(t.partial, line[:min(len(line), tailLineBytesMax-len(t.partial))]...)
		if ended {
			t.lines = append(t.lines, string(t.partial))
			t.lines = t.lines[max(0, len(t.lines)-tailLinesMax):]
			t.partial = t.partial[:0]
		}
		rest = after
	}
	if t.next != nil {
		_, _ = t.next.Write(p) // a log that nobody can read must not stop the server
	}
	return len(p), nil
}

// String gives the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(append(slices.Clip(t.lines), string(t.partial)), "\n")
}
