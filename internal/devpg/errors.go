package devpg

import (
	"fmt"
	"runtime"
)

// InUseError says that a live server works in the folder already.
type InUseError struct {
	Dir string
	PID int // of that server, 0 when unknown
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("folder %s is in use by another `ration dev` or test run; end that one or choose another folder", e.Dir)
	}
	return fmt.Sprintf("folder %s is in use by a running PostgreSQL (process %d); end it with `kill -INT %d` or choose another folder", e.Dir, e.PID, e.PID)
}

// missingError says that a source is not there at all, so that the next one
// may be tried.
type missingError struct{ detail string }

func (e *missingError) Error() string { return e.detail }

func missing(format string, arguments ...any) error {
	return &missingError{detail: fmt.Sprintf(format, arguments...)}
}

// installHint is the one command that gives this machine a PostgreSQL.
func installHint() string {
	if runtime.GOOS == "darwin" {
		return "`brew install postgresql@18` is enough"
	}
	return "`apt install postgresql` (or `dnf install postgresql-server`) is enough; it need not be running"
}
