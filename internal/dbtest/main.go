package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rationhq/ration/internal/skip"
)

// startTimeout bounds the start of a server; an image may have to be fetched.
const startTimeout = 10 * time.Minute

// stopTimeout bounds its end.
const stopTimeout = time.Minute

// shared is the test binary's server. A variable of the package, because
// [Main] ends what the tests have begun and the two have nothing else in
// common.
var shared binaryServer //nolint:gochecknoglobals // see above

type binaryServer struct {
	hasMain bool // Main is there to end it
	once    sync.Once
	server  *server
	failure error
}

// Main is the TestMain of a package whose tests use databases: it runs the
// tests, ends the server that they started, and fails the binary when they
// left goroutines behind.
func Main(m *testing.M) {
	shared.hasMain = true
	code := m.Run()
	if shared.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		if err := shared.server.stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest:", err)
			code = 1
		}
		cancel()
	}
	if code == 0 && !shared.keepsConnections() {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// keepsConnections says whether goroutines that are not ours are expected:
// the container library talks to its engine and its reaper to the end.
func (b *binaryServer) keepsConnections() bool {
	return b.server != nil && b.server.container
}

// sharedServer is the binary's server, started at the first call.
func sharedServer(t testing.TB) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	if !shared.hasMain {
		t.Fatal("this package has no `func TestMain(m *testing.M) { dbtest.Main(m) }` to end the server")
	}
	shared.once.Do(func() {
		// Not the test's context: the server serves the tests after it.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		shared.server, shared.failure = findServer(ctx)
	})
	if reason := (absent{}); errors.As(shared.failure, &reason) {
		skip.Because(t, reason.Error())
	}
	if shared.failure != nil {
		t.Fatalf("start PostgreSQL for the tests: %v", shared.failure)
	}
	return shared.server
}
