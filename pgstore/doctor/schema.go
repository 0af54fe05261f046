package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/pgstore"
)

// schemaChecks look whether there is what this program works on. Whoever needs
// it is not asked where it is not.
func schemaChecks() []check {
	return []check{
		{name: "schema", look: lookAtSchema},
		reading("server", `
			SELECT 'fault', format('PostgreSQL %s is older than 15', current_setting('server_version')), 'upgrade PostgreSQL'
			WHERE current_setting('server_version_num')::int < 150000
			UNION ALL
			SELECT 'fault', format('the database''s encoding is %s: texts are compared and hashed as UTF-8', getdatabaseencoding()), 'make a database with ENCODING ''UTF8'' and restore into it'
			WHERE getdatabaseencoding() <> 'UTF8'
			UNION ALL
			SELECT 'fault', format('the operating system sorts text by version %s of its rules, the database''s indexes by version %s: they may miss rows',
			                       pg_database_collation_actual_version(d.oid), d.datcollversion),
			       format('REINDEX DATABASE %I; ALTER DATABASE %1$I REFRESH COLLATION VERSION;', d.datname)
			FROM pg_database AS d WHERE d.datname = current_database() AND d.datcollversion <> pg_database_collation_actual_version(d.oid)`),
	}
}

// lookAtSchema compares the schema with what this program knows.
func lookAtSchema(ctx context.Context, e *examination) error {
	const migrate = "ration migrate up, as the owner"
	var there bool
	if err := e.conn.QueryRow(ctx, "SELECT to_regclass('ration.schema_version') IS NOT NULL").Scan(&there); err != nil {
		return err
	}
	if !there {
		e.note(Fault, "the database has no Ration schema", migrate)
		return nil
	}
	var major, minor int
	if err := e.conn.QueryRow(ctx, "SELECT v.major, v.minor FROM ration.schema_version AS v").Scan(&major, &minor); err != nil {
		return err
	}
	switch wanted, least := pgstore.Schema(); {
	case major != wanted:
		e.note(Fault, fmt.Sprintf("the schema is version %d.%d, this program works on %d.x", major, minor, wanted), "run the release of Ration that fits the schema")
	case minor < least:
		e.note(Fault, fmt.Sprintf("the schema is version %d.%d, this program needs %d.%d", major, minor, wanted, least), migrate)
	}
	return e.lookAtMigrations(ctx)
}

// lookAtMigrations reads how far the history has been applied, which its owner
// may.
func (e *examination) lookAtMigrations(ctx context.Context) error {
	const readable = "SELECT coalesce(has_table_privilege(to_regclass('ration.schema_migrations'), 'SELECT'), false)"
	var may, broken bool
	var version uint
	if err := e.conn.QueryRow(ctx, readable).Scan(&may); err != nil || !may {
		return err
	}
	err := e.conn.QueryRow(ctx, "SELECT m.version, m.dirty FROM ration.schema_migrations AS m").Scan(&version, &broken)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case broken:
		e.note(Fault, fmt.Sprintf("migration %d broke off: the schema is in doubt", version), "ration migrate version tells what to look at")
	case version < e.Migrations && !e.hasFault("schema"):
		e.note(Warning, fmt.Sprintf("%d migrations are not applied yet: the schema is at %d of %d", e.Migrations-version, version, e.Migrations), "ration migrate up, as the owner")
	case version > e.Migrations:
		e.note(Note, fmt.Sprintf("the schema is at migration %d, of which this program knows %d: it is older than others here", version, e.Migrations), "replace older instances when the roll-out is over")
	}
	return nil
}
