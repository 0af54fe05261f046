package storetest

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

const (
	// defaultSteps fit into every run of the tests.
	defaultSteps = 4_000

	// roundSteps is the length of one history. A longer comparison is many
	// histories, each with a seed of its own, so that the one that fails is
	// short enough to be played again and cut down.
	roundSteps = 2_000

	// shrinkStepsMax bounds the steps played to cut a history down: a minute
	// or so on a database.
	shrinkStepsMax = 100_000

	// farFuture is an instant at which most buckets are full, for clearing up.
	farFuture = latestMicros + 100*year
)

// Compare plays random histories of that many steps to two stores and fails at
// the first answer that differs, with the shortest history it finds to show
// it. Neither store may be used by anybody else meanwhile.
//
// A seed of 0 takes one at random; it is logged. 0 steps are 4,000, or a tenth
// of that with -short. RATION_SEED and RATION_STEPS in the environment come
// before seed and steps.
func Compare(tb testing.TB, seed uint64, steps int, model, subject Store) {
	tb.Helper()
	seed = fromEnvironment(tb, "RATION_SEED", seed)
	steps = int(fromEnvironment(tb, "RATION_STEPS", uint64(steps)))
	if seed == 0 {
		seed = uint64(rand.Uint32()) // short, because people type it
	}
	if steps == 0 {
		steps = defaultSteps
		if testing.Short() {
			steps /= 10
		}
	}
	tb.Logf("comparing over %d steps: RATION_SEED=%d", steps, seed)

	played := game{context: tb.Context(), model: model, subject: subject}
	for ; steps > 0; steps -= roundSteps {
		story := newHistory(seed, min(steps, roundSteps), pace{stepsBack: true, operations: true, cleansPercent: 2})
		if found := played.play(story); found != nil {
			length := len(story.steps)
			found = played.shrink(found)
			tb.Fatalf("the stores differ (RATION_SEED=%d RATION_STEPS=%d); the shortest way there:\n%s", seed, length, found)
		}
		played.clearUp(tb)
		seed++
	}
	tb.Logf("%d answers alike", played.answers)
}

// shrink cuts a history down as long as it still shows a difference: first
// what comes after it, then stretches of steps from long to short, then single
// asks and callers.
func (g *game) shrink(found *difference) *difference {
	budget := shrinkStepsMax
	try := func(steps []step) bool {
		if budget -= len(steps); budget < 0 {
			return false
		}
		again := g.play(history{seed: found.history.seed, steps: steps})
		if again == nil {
			return false
		}
		again.history.steps = again.history.steps[:again.at+1]
		found = again
		return true
	}

	try(slices.Clone(found.history.steps[:found.at+1]))
	for length := len(found.history.steps) / 2; length > 0; length /= 2 {
		for from := 0; from+length <= len(found.history.steps); {
			if !try(slices.Delete(slices.Clone(found.history.steps), from, from+length)) {
				from += length
			}
		}
	}
	simplify := func(i int) bool {
		return slices.ContainsFunc(found.history.steps[i].simpler(), func(s step) bool {
			variant := slices.Clone(found.history.steps)
			variant[i] = s
			return try(variant)
		})
	}
	for i := range found.history.steps {
		for i < len(found.history.steps) && simplify(i) {
			continue // until nothing of the step can be left out
		}
	}
	return found
}

// clearUp lets both stores forget what they can of the history just played.
func (g *game) clearUp(tb testing.TB) {
	tb.Helper()
	for _, store := range []Store{g.model, g.subject} {
		if _, err := store.Clean(g.context, farFuture); err != nil {
			tb.Fatalf("clean: %v", err)
		}
	}
}

// fromEnvironment is a number that the environment may set.
func fromEnvironment(tb testing.TB, name string, otherwise uint64) uint64 {
	tb.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return number
}
