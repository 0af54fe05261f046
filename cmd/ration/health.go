package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is what a container's health check commonly waits.
const healthTimeout = 2 * time.Second

// healthBytesMax is how much of an answer is shown; readiness lists four lines.
const healthBytesMax = 4 << 10

func (p *program) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "health URL",
		Short:   "Exit 0 when an address answers 200 within two seconds",
		Long:    "Asks once, and exits 0 when the answer is 200 within two seconds, else 1 with what was answered. For health checks\nin images without a shell.",
		Example: "  ration health http://127.0.0.1:9090/readyz",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			var found faults
			found.checkURL("URL", arguments[0])
			if err := found.err(); err != nil {
				return err
			}
			return p.health(command.Context(), arguments[0])
		},
	}
}

func (p *program) health(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return usageError{err}
	}
	// A transport of its own without kept connections: one question, one answer, no proxy between.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, healthBytesMax))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", address, err)
	}
	text := strings.TrimSpace(string(body))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s\n%s", address, answer.Status, text)
	}
	fmt.Fprintln(p.out, text)
	return nil
}
