package dbtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/migrations"
)

// templateLock keeps test binaries that share a server from building one
// template twice: "ratest" in ASCII.
const templateLock int64 = 0x726174657374

// template gives the name of the migrated database that tests clone, and
// builds it when the server does not have it yet.
func (s *server) template() (string, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.templateName = "ration_template_" + migrations.Hash()[:16]
		s.templateErr = s.build(ctx, s.templateName)
	})
	return s.templateName, s.templateErr
}

// build makes the template under another name and renames it when it is
// complete, so that one that was interrupted is never cloned.
func (s *server) build(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.adminURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it gives the lock back, in either case
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return fmt.Errorf("wait for another test binary: %w", err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil {
		return fmt.Errorf("look for the template: %w", err)
	}
	unfinished := name + "_new"
	run := func(statement string) {
		if err == nil {
			_, err = conn.Exec(ctx, statement)
		}
	}
	if !exists {
		run(`DROP DATABASE IF EXISTS ` + unfinished + ` WITH (FORCE)`)
		run(`CREATE DATABASE ` + unfinished + ` TEMPLATE template0 ENCODING 'UTF8'`)
		if err == nil {
			err = migrations.Up(ctx, s.url(unfinished, ""))
		}
		run(`ALTER DATABASE ` + unfinished + ` ALLOW_CONNECTIONS false`) // one session in it would block every clone
		run(`ALTER DATABASE ` + unfinished + ` RENAME TO ` + name)
	}
	if s.wantsPasswords() {
		run(fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, ServiceRole, rolePassword))
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	return nil
}
