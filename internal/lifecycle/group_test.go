package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rationhq/ration/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary notes what happens, in order. synctest's bubble has no parallel
// writers here: parts are stopped one after another.
type diary []string

func (d *diary) note(entry string) { *d = append(*d, entry) }

// untilAsked is a part that runs until its context ends.
func untilAsked(name string, d *diary) lifecycle.Part {
	return lifecycle.Part{
		Name: name,
		Run: func(ctx context.Context) error {
			<-ctx.Done()
			d.note(name + " ended")
			return ctx.Err()
		},
		StopMax: time.Second,
	}
}

func TestRunStopsInReverseOrderWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var d diary
		result := make(chan error, 1)
		go func() {
			result <- lifecycle.Run(ctx, untilAsked("store", &d), untilAsked("limiter", &d), untilAsked("http", &d))
		}()

		synctest.Wait() // all started, all waiting
		cancel()
		if err := <-result; err != nil {
			t.Errorf("an orderly end gives %v, want nil", err)
		}
		if want := (diary{"http ended", "limiter ended", "store ended"}); !slices.Equal(d, want) {
			t.Errorf("ended in the order %v, want %v", d, want)
		}
	})
}

func TestRunStopsAllWhenOneFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("port taken")
	for name, test := range map[string]struct {
		end  error
		want string
	}{
		"with an error": {broken, "http: port taken"},
		"without one":   {nil, "http: ended unasked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diary
				failing := lifecycle.Part{
					Name:    "http",
					Run:     func(context.Context) error { return test.end },
					StopMax: time.Second,
				}
				err := lifecycle.Run(t.Context(), untilAsked("store", &d), failing, untilAsked("poller", &d))
				if err == nil || err.Error() != test.want {
					t.Errorf("error %q, want %q", err, test.want)
				}
				if test.end != nil && !errors.Is(err, test.end) {
					t.Errorf("%v does not wrap the part's error", err)
				}
				if want := (diary{"poller ended", "store ended"}); !slices.Equal(d, want) {
					t.Errorf("ended %v, want %v", d, want)
				}
			})
		})
	}
}

func TestRunLetsAPartEndInGoodOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		drained := make(chan struct{})
		part := lifecycle.Part{
			Name: "http",
			Run: func(ctx context.Context) error {
				select {
				case <-drained:
					return nil
				case <-ctx.Done():
					return errors.New("cut off while draining")
				}
			},
			Stop: func(context.Context) error {
				close(drained)
				synctest.Wait()
				return errors.New("one connection was idle")
			},
			StopMax: time.Second,
		}
		err := lifecycle.Run(ctx, part)
		if err == nil || err.Error() != "http: one connection was idle" {
			t.Errorf("error %q, want the one of Stop alone", err)
		}
	})
}

func TestRunBoundsEachStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		stuck := func(name string, stop func(context.Context) error) lifecycle.Part {
			return lifecycle.Part{
				Name:    name,
				Run:     func(context.Context) error { <-release; return nil },
				Stop:    stop,
				StopMax: 3 * time.Second,
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var d diary
		began := time.Now()
		err := lifecycle.Run(ctx,
			untilAsked("store", &d),
			stuck("run", nil),
			stuck("stop", func(context.Context) error { <-release; return nil }),
		)
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("stopped after %s, want the two bounds of 3 s", took)
		}
		if !errors.Is(err, lifecycle.ErrStopTimeout) {
			t.Errorf("error %v, want ErrStopTimeout", err)
		}
		for _, name := range []string{"run: did not stop in time (3s)", "stop: did not stop in time (3s)"} {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("error %q does not say %q", err, name)
			}
		}
		if want := (diary{"store ended"}); !slices.Equal(d, want) {
			t.Errorf("ended %v, want %v: a stuck part must not keep the others", d, want)
		}
	})
}
