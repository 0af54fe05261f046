package pgstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// The channels on which changes are told.
const (
	policyChannel = "ration_policy" // a new generation of the policy set
	tokenChannel  = "ration_token"  // a token was made or revoked
)

// relistenDelay spaces attempts to listen again; until then instances poll.
const relistenDelay = time.Second

// Listen calls policies and tokens whenever the policy set or the tokens may
// have changed: at once, on every notification, and after the connection was
// lost and made again. It holds a connection of its own and ends with ctx,
// which is no error.
func (s *Store) Listen(ctx context.Context, log *slog.Logger, policies, tokens func()) error {
	broken := false
	listening := func() {
		if broken {
			log.InfoContext(ctx, "listening for changes again")
		}
		broken = false
	}
	for {
		err := s.listenOnce(ctx, listening, policies, tokens)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end that was asked for
		}
		if !broken {
			log.WarnContext(ctx, "listening for changes broke off; polling meanwhile", "error", err)
		}
		broken = true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(relistenDelay):
		}
	}
}

// listenOnce listens on one connection until it breaks; it calls listening when
// it does.
func (s *Store) listenOnce(ctx context.Context, listening, policies, tokens func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return err
	}
	defer func() {
		// The context may be what ended the wait.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+policyChannel+"; LISTEN "+tokenChannel); err != nil {
		return err
	}
	listening()
	policies()
	tokens()
	for {
		told, err := conn.WaitForNotification(ctx)
		switch {
		case err != nil:
			return err
		case told.Channel == tokenChannel:
			tokens()
		default:
			policies()
		}
	}
}
