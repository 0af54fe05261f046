package simulate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// However time runs, nothing is lost, and every request stands in the bin of
// its second.
func TestTimelineCounts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		var line timeline
		var seconds []int64
		begin, span := random.Int64N(2e9), 1+random.Int64N(1<<random.IntN(32))
		for range 100 {
			second := begin + random.Int64N(span)
			seconds = append(seconds, second)
			line.add(second, count{allowed: 1, denied: 2})
		}
		if len(line.bins) > binsMax {
			t.Fatalf("%d bins", len(line.bins))
		}
		want := make([]count, len(line.bins))
		for _, second := range seconds {
			want[second/line.width-line.first].allowed++
			want[second/line.width-line.first].denied += 2
		}
		for i := range want {
			if line.bins[i] != want[i] {
				t.Fatalf("bin %d of %d s: %+v, want %+v", i, line.width, line.bins[i], want[i])
			}
		}
	}
}

func TestScales(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]scale{1: {1, 1}, 5: {5, 1}, 6: {6, 2}, 133: {150, 50}, 1001: {1500, 500}, 99: {100, 20}} {
		if got := scaleTo(most); got != want {
			t.Errorf("%d stands on %+v, want %+v", most, got, want)
		}
	}
	for seconds, want := range map[int64]string{1: "second", 15: "15 seconds", 900: "15 minutes", 3600: "hour", daySeconds: "day", 14 * daySeconds: "2 weeks"} {
		if got := widthName(seconds); got != want {
			t.Errorf("%d s are called %q, want %q", seconds, got, want)
		}
	}
}
