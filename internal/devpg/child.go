package devpg

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"time"
)

// killWait bounds the wait for a process that was told to end at once.
const killWait = 5 * time.Second

// child is a process that ends when we do.
type child struct {
	command *exec.Cmd
	tail    *tail
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; set before done is closed
}

// startChild starts the command with its output going to log.
func startChild(command *exec.Cmd, log io.Writer) (*child, error) {
	c := &child{command: command, tail: &tail{next: log}, done: make(chan struct{})}
	command.Stdout, command.Stderr = c.tail, c.tail
	command.WaitDelay = killWait // a grandchild that keeps the pipe open does not keep us
	dieWithParent(command)
	started := make(chan error)
	go func() {
		// Linux signals a child when the thread that started it ends, not the
		// process: this thread is kept for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = command.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	return c, nil
}

// stop asks the process to end, waits for it, and kills it when ctx ends
// first. Only the latter is an error.
func (c *child) stop(ctx context.Context) error {
	interrupt(c.command.Process)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	quit(c.command.Process)
	select {
	case <-c.done:
	case <-time.After(killWait):
		_ = c.command.Process.Kill() // it ended just now, or the kernel will see to it
		<-c.done
	}
	return fmt.Errorf("PostgreSQL did not stop in time and was killed: %w", context.Cause(ctx))
}
