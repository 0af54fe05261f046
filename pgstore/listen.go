package pgstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// changesChannel is where put_policy_v1 tells of a new generation.
const changesChannel = "ration_policy"

// relistenDelay spaces attempts to listen again; until then instances poll.
const relistenDelay = time.Second

// Listen calls changed whenever the policy set may have changed: at once, on
// every notification, and after the connection was lost and made again. It
// holds a connection of its own and ends with ctx, which is no error.
func (s *Store) Listen(ctx context.Context, log *slog.Logger, changed func()) error {
	broken := false
	listening := func() {
		if broken {
			log.InfoContext(ctx, "listening for policy changes again")
		}
		broken = false
	}
	for {
		err := s.listenOnce(ctx, listening, changed)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end that was asked for
		}
		if !broken {
			log.WarnContext(ctx, "listening for policy changes broke off; polling meanwhile", "error", err)
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
func (s *Store) listenOnce(ctx context.Context, listening, changed func()) error {
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
	if _, err := conn.Exec(ctx, "LISTEN "+changesChannel); err != nil {
		return err
	}
	listening()
	for {
		changed()
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
