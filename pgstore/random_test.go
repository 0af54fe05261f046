package pgstore_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// newRandom makes a source of random numbers of RATION_SEED, else of a random
// seed, and prints it.
func newRandom(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := uint64(rand.Uint32()) // short, because people type it
	if text, set := os.LookupEnv("RATION_SEED"); set {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 63); err != nil {
			tb.Fatalf("RATION_SEED: %v", err)
		}
	}
	tb.Logf("RATION_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
