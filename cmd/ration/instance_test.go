package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rationhq/ration/internal/dbtest"
)

// patience bounds every wait for something that has to happen; it is long
// because only a fault uses it up.
const patience = 30 * time.Second

// instance is a running program.
type instance struct {
	*client

	admin, metrics string
	log            func() string // what it has written
	stop           func() int    // asks it to end and gives its exit code
	process        *os.Process   // nil when it runs within the test
}

// anyPort has the three listeners take free ports.
func anyPort() []string {
	return []string{"RATION_HTTP_ADDR=127.0.0.1:0", "RATION_ADMIN_ADDR=127.0.0.1:0", "RATION_METRICS_ADDR=127.0.0.1:0"}
}

// patient bounds the wait for decisions widely, and the store's calls with
// them: what is tested is what they say, on a machine that may be busy.
func patient() []string {
	return []string{"RATION_DECISION_TIMEOUT=10s", "RATION_CALL_TIMEOUT=10s"}
}

// newDatabase gives the test a database whose calls are as patient.
func newDatabase(t *testing.T) *dbtest.DB {
	t.Helper()
	db := dbtest.New(t)
	relax(t, db)
	return db
}

// relax lifts the bound of a call to the database.
func relax(t *testing.T, db *dbtest.DB) {
	t.Helper()
	for _, setting := range []string{"statement_timeout", "lock_timeout"} {
		statement := fmt.Sprintf(`ALTER ROLE %s IN DATABASE %s SET %s = '10s'`, dbtest.ServiceRole, db.Name, setting)
		if _, err := db.Owner().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// serve runs `ration serve` within the test, on free ports, and stops it with
// the test.
func serve(t *testing.T, db *dbtest.DB) *instance {
	t.Helper()
	return start(t, openOn(db), "serve")
}

// openOn lets whoever reaches a service on the database in.
func openOn(db *dbtest.DB) []string {
	return append(patient(), "RATION_DATABASE_URL="+db.ServiceURL(), "RATION_OPEN=true")
}

// named is openOn of an instance of a name.
func named(db *dbtest.DB, name string) []string {
	return append(openOn(db), "RATION_INSTANCE_NAME="+name)
}

// start runs a command that serves, within the test.
func start(t *testing.T, environ []string, arguments ...string) *instance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	output := newOutput(t)
	code, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		defer output.Close()
		code = run(ctx, arguments, append(anyPort(), environ...), stdio{in: strings.NewReader(""), out: output, err: output})
	}()
	i := output.awaitReady(t)
	i.stop = func() int {
		cancel()
		<-ended
		return code
	}
	t.Cleanup(func() {
		if code := i.stop(); code != exitDone {
			t.Errorf("%v ended with %d", arguments, code)
		}
	})
	return i
}

// spawn runs `ration serve` as a process of its own, which can be killed.
func spawn(t *testing.T, db *dbtest.DB) *instance {
	t.Helper()
	return spawnCommand(t, openOn(db), "serve")
}

// spawnCommand runs a command that serves as a process of its own.
func spawnCommand(t *testing.T, environ []string, arguments ...string) *instance {
	t.Helper()
	output := newOutput(t)
	command := exec.Command(os.Args[0], arguments...)
	command.Env = slices.Concat(anyPort(), environ, []string{asProgram + "=1"})
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer output.Close()
		_ = command.Wait() // its exit code is read from the command
	}()
	i := output.awaitReady(t)
	i.process = command.Process
	i.stop = func() int {
		<-ended
		return command.ProcessState.ExitCode()
	}
	t.Cleanup(func() {
		_ = i.process.Kill() // it has mostly ended already
		<-ended
	})
	return i
}

// output collects what a program writes and finds the addresses in it.
type output struct {
	*io.PipeWriter

	mu    sync.Mutex
	text  bytes.Buffer
	ready chan []string // decisions, admin, metrics
}

func newOutput(t *testing.T) *output {
	t.Helper()
	reader, writer := io.Pipe()
	o := &output{PipeWriter: writer, ready: make(chan []string, 1)}
	go o.read(reader)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the program wrote:\n%s", o)
		}
	})
	return o
}

// addressLine is the log's line of `serve`, or the first of `dev`.
var addressLine = regexp.MustCompile(`^(?:ready:|.* msg=ready) .*decisions[= ](?:http://)?([0-9.:]+).* admin(?:=|istration http://)([0-9.:]+).* metrics[= ](?:http://)?([0-9.:]+)`)

func (o *output) read(from io.Reader) {
	defer close(o.ready)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		o.mu.Lock()
		o.text.WriteString(lines.Text() + "\n")
		o.mu.Unlock()
		if found := addressLine.FindStringSubmatch(lines.Text()); found != nil {
			o.ready <- found[1:]
		}
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) awaitReady(t *testing.T) *instance {
	t.Helper()
	select {
	case found, ok := <-o.ready:
		if !ok {
			t.Fatalf("the program ended before it was ready")
		}
		return &instance{client: newClient(t, "http://"+found[0]), admin: "http://" + found[1], metrics: "http://" + found[2], log: o.String}
	case <-time.After(patience):
		t.Fatalf("the program was not ready in time")
		return nil
	}
}

// eventually waits for a condition of another process.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		}
	}
}

// command runs one command line to its end.
func command(t *testing.T, environ []string, stdin string, arguments ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), arguments, environ, stdio{in: strings.NewReader(stdin), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

// newClient makes a client whose connections end with the test.
func newClient(t *testing.T, decisions string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{decisions: decisions, http: &http.Client{Transport: transport, Timeout: patience}}
}
