package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProgressIsDrawnForWhoWaits(t *testing.T) {
	t.Parallel()
	var drawn bytes.Buffer
	p := &progress{Reader: strings.NewReader(strings.Repeat("x", 200)), to: &drawn, size: 200, next: time.Now().Add(-time.Second)}
	if _, err := p.Read(make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	if want := "\r[==========" + strings.Repeat(" ", 30) + "]  25%"; drawn.String() != want {
		t.Errorf("drew %q, want %q", drawn.String(), want)
	}
	p.done()
	if !strings.HasSuffix(drawn.String(), "\r\x1b[K") {
		t.Errorf("left %q", drawn.String())
	}
}

// What is no terminal is written nothing to, however long it takes.
func TestProgressIsForTerminals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte("trace"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []io.Writer{new(bytes.Buffer), openFile(t, path)} {
		p := newProgress(openFile(t, path), to)
		if p.to != nil {
			t.Errorf("a bar for %T", to)
		}
		if content, err := io.ReadAll(p); err != nil || string(content) != "trace" {
			t.Errorf("read %q, %v", content, err)
		}
		p.done()
	}
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}
