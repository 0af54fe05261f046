package migrations

import (
	"fmt"
	"time"
)

// NewerError refuses a database whose schema is newer than this binary.
type NewerError struct{ Version, Latest uint }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the database is at schema version %d and this binary knows %d: a newer ration has migrated it; run that version, or take its migrations back with that version's `ration migrate down`",
		e.Version, e.Latest)
}

// DirtyError refuses a database in doubt: the migration to or from Version
// broke off (the connection was lost, the process was killed), and nobody
// knows whether it took effect.
type DirtyError struct{ Version uint }

func (e *DirtyError) Error() string {
	return fmt.Sprintf("the schema is in doubt: a migration broke off at version %d. "+
		"A migration is one transaction, so it has happened whole or not at all; look which (`\\d ration.*` in psql), then say so: "+
		"`ration migrate force %d` if its changes are there, else `ration migrate force N` with N the version whose schema you see. "+
		"Afterwards `ration migrate up` goes on from there", e.Version, e.Version)
}

// BusyError says that another instance held the migration lock until the
// caller's context ended.
type BusyError struct {
	Waited time.Duration
	Cause  error // the context's
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("another instance has been migrating this database for the %s that we waited: %v", e.Waited.Round(time.Millisecond), e.Cause)
}

// Unwrap gives the context's error.
func (e *BusyError) Unwrap() error { return e.Cause }

// FailedError is a migration that PostgreSQL refused or that broke off.
type FailedError struct {
	File       string // of the migration, such as 000002_add_windows.up.sql
	Line       uint   // in the file, from 1; 0 when PostgreSQL named none
	RolledBack bool   // it left no trace and the version is what it was before; otherwise the database is now dirty
	Cause      error  // a *pgconn.PgError where PostgreSQL answered
}

func (e *FailedError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s line %d", e.File, e.Line)
	}
	if e.RolledBack {
		return fmt.Sprintf("migration %s failed and was rolled back whole: %v", where, e.Cause)
	}
	return fmt.Sprintf("migration %s broke off and left the schema in doubt (see `ration migrate version`): %v", where, e.Cause)
}

// Unwrap gives the cause.
func (e *FailedError) Unwrap() error { return e.Cause }

// UnknownVersionError refuses a version that this binary has no migration for.
type UnknownVersionError struct{ Version, Latest uint }

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("there is no schema version %d; versions are 0 to %d", e.Version, e.Latest)
}
