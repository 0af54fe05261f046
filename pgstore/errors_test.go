package pgstore

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rationhq/ration/policy"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]policy.StoreFault{
		"RN001": policy.StoreFaulty, "RN002": policy.StoreStateLost, "RN003": policy.StoreFaulty,
		"RN004": policy.StoreFaulty, "RN005": policy.StoreFaulty,
		"57014": policy.StoreHeld, "55P03": policy.StoreHeld, "40P01": policy.StoreHeld,
		"57P01": policy.StoreUnsure, "57P02": policy.StoreUnsure, "57P05": policy.StoreUnsure, "57000": policy.StoreUnsure,
		"57P03": policy.StoreUnreachable, "25006": policy.StoreUnreachable,
		"08000": policy.StoreUnreachable, "08006": policy.StoreUnreachable, "08P01": policy.StoreUnreachable,
		"28000": policy.StoreUnreachable, "28P01": policy.StoreUnreachable,
		"53300": policy.StoreUnreachable, "53100": policy.StoreUnreachable, "53200": policy.StoreUnreachable,
		"58030": policy.StoreUnreachable,
		"22003": policy.StoreFaulty, "23505": policy.StoreFaulty, "23514": policy.StoreFaulty, "40001": policy.StoreFaulty,
		"42501": policy.StoreFaulty, "42883": policy.StoreFaulty, "P0001": policy.StoreFaulty, "XX000": policy.StoreFaulty,
		"": policy.StoreFaulty, "5": policy.StoreFaulty,
	} {
		if got := fault(&pgconn.PgError{Code: state}); got != want {
			t.Errorf("SQLSTATE %q is %s, want %s", state, got, want)
		}
	}
	for name, c := range map[string]struct {
		err  error
		want policy.StoreFault
	}{
		"no answer":      {context.DeadlineExceeded, policy.StoreUnsure},
		"broken off":     {io.ErrUnexpectedEOF, policy.StoreUnsure},
		"another result": {errResult, policy.StoreUnsure},
		"all are busy":   {errNoConn, policy.StoreHeld},
		"wrapped":        {errors.Join(errors.New("x"), &pgconn.PgError{Code: stateLost}), policy.StoreStateLost},
	} {
		if got := fault(c.err); got != c.want {
			t.Errorf("%s is %s, want %s", name, got, c.want)
		}
	}
	_, err := pgx.Connect(t.Context(), "host="+t.TempDir()+" user=nobody")
	if got := fault(err); got != policy.StoreUnreachable {
		t.Errorf("a server that is not there is %s (%v)", got, err)
	}
}

// A connection that was never ready has charged nobody.
func TestFaultsBeforeACall(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]policy.StoreFault{
		context.DeadlineExceeded:         policy.StoreUnreachable,
		io.ErrUnexpectedEOF:              policy.StoreUnreachable,
		&pgconn.PgError{Code: "57P01"}:   policy.StoreUnreachable,
		&pgconn.PgError{Code: "57014"}:   policy.StoreHeld,
		&pgconn.PgError{Code: stateLost}: policy.StoreStateLost,
		&pgconn.PgError{Code: "42883"}:   policy.StoreFaulty,
	} {
		if got := unasked("connect", err); !isStoreError(got, want) {
			t.Errorf("%v is %v, want %s", err, got, want)
		}
	}
}

func isStoreError(err error, want policy.StoreFault) bool {
	store, ok := errors.AsType[*policy.StoreError](err)
	return ok && store.Fault == want && store.Doing != ""
}

// Whoever is told of a fault learns whether his call took effect, and no internals.
func TestProblems(t *testing.T) {
	t.Parallel()
	if err := interpret("decide", nil); err != nil {
		t.Errorf("nothing is wrong: %v", err)
	}
	var store *policy.StoreError
	if err := interpret("decide", &pgconn.PgError{Code: "57014"}); !errors.As(err, &store) || store.Doing != "decide" || store.Fault != policy.StoreHeld {
		t.Errorf("%v", err)
	}
	if problem := storeError("decide", &pgconn.PgError{Code: "RN004"}).Problem(); problem.Code != policy.CodeInternal || problem.Detail != "" {
		t.Errorf("%+v", problem)
	}
	// Policies and decisions share the words: neither is told of what it did not ask for.
	for _, code := range []string{"57014", "57P01", "57P03", stateLost} {
		problem := storeError("install a policy", &pgconn.PgError{Code: code}).Problem()
		if problem.Code != policy.CodeUnavailable || problem.Detail == "" || strings.Contains(problem.Detail, "charge") || strings.Contains(problem.Detail, "decide") {
			t.Errorf("%s: %+v", code, problem)
		}
	}
}
