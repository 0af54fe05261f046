// Command ration is the whole product in one binary: the service, its
// migrations, and the tools of those who run it. It alone wires the packages
// together.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an end in good order. After it the process is
	// deaf no longer: the second one ends it at once, unless a private server
	// has to be stopped first (secondSignal).
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Environ(), stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
