package pgstore_test

import (
	"testing"

	"github.com/rationhq/ration/internal/memstore"
	"github.com/rationhq/ration/internal/storetest"
)

// bucketsMax is beyond what any history makes.
const bucketsMax = 1 << 20

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(tb testing.TB) storetest.Store { return newSubject(tb) })
}

func TestRandomHistoriesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Compare(t, 0, 0, memstore.New(bucketsMax), newSubject(t))
}

func TestWebAccessReplay(t *testing.T) {
	t.Parallel()
	storetest.ReplayWebAccess(t, newSubject(t))
}

func TestLoginsReplay(t *testing.T) {
	t.Parallel()
	storetest.ReplayLogins(t, newSubject(t))
}
