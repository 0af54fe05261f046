package httpapi

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/rationhq/ration/policy"
)

// DefaultProblemBase is the start of problem types where a [Site] names none.
const DefaultProblemBase = "https://ration.dev/problems/"

// Site is what the listeners of one process share. Its zero value works:
// problems under [DefaultProblemBase], no jitter, no log, metrics nobody reads.
type Site struct {
	ProblemBase string         // start of every problem type, an absolute URI
	Jitter      float64        // share by which Retry-After may be lengthened, 0 to 1
	Random      func() float64 // in [0, 1), for jitter; safe for concurrent use
	Logger      *slog.Logger
	Metrics     *Metrics
}

// withDefaults fills in what the caller left out.
func (s Site) withDefaults() *Site {
	if s.ProblemBase == "" {
		s.ProblemBase = DefaultProblemBase
	}
	s.ProblemBase = strings.TrimSuffix(s.ProblemBase, "/") + "/"
	if s.Random == nil {
		s.Random = rand.Float64
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Metrics == nil {
		s.Metrics = newMetrics()
	}
	return &s
}

// endpoint answers one request: it writes the answer and gives its status, or
// it writes nothing and gives the error that becomes a problem.
type endpoint func(w http.ResponseWriter, r *http.Request) (status int, err error)

// handle makes a handler of an endpoint: errors and panics become problems,
// and every answer is counted under the method and route.
func (s *Site) handle(method, route string, answer endpoint) http.HandlerFunc {
	count := s.Metrics.requestCounter(method, route)
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusInternalServerError
		defer func() {
			if recovered := recover(); recovered != nil {
				if recovered == http.ErrAbortHandler { //nolint:errorlint // net/http asks for this very value
					panic(recovered)
				}
				status = s.writeProblem(w, r, panicked(recovered))
			}
			count.add(status)
		}()
		var err error
		if status, err = answer(w, r); err != nil {
			status = s.writeProblem(w, r, err)
		}
	}
}

// panicked is the error of a handler that panicked; the stack is for the log.
func panicked(recovered any) error {
	return &policy.Error{
		Code: policy.CodeInternal, Reason: policy.ReasonInternal, Detail: detailInternal,
		Cause: fmt.Errorf("panic: %v\n%s", recovered, debug.Stack()),
	}
}

// router is an empty router whose unknown paths and methods answer problems.
// Neither reads a body, so nothing is charged by a preflight or a mistaken GET.
func (s *Site) router() *chi.Mux {
	byMethod := make(map[string]http.HandlerFunc)
	for _, method := range append(knownMethods(), methodOther) {
		byMethod[method] = s.handle(method, "unmatched", unrouted)
	}
	unmatched := func(w http.ResponseWriter, r *http.Request) { byMethod[knownMethod(r.Method)](w, r) }
	router := chi.NewRouter()
	router.Use(routeDecoded)
	router.NotFound(unmatched)
	router.MethodNotAllowed(unmatched)
	return router
}

// routeDecoded has the router read escaped paths as what they stand for.
func routeDecoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawPath != "" {
			chi.RouteContext(r.Context()).RoutePath = routePath(r)
		}
		next.ServeHTTP(w, r)
	})
}

// routePath is the path that routes are compared with: decoded, but for one
// with an escaped slash, which separates nothing.
func routePath(r *http.Request) string {
	if hasEscapedSlash(r) {
		return r.URL.RawPath
	}
	return r.URL.Path
}

func hasEscapedSlash(r *http.Request) bool {
	return strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F")
}

// pathText gives a part of the path decoded, also where the router saw it as
// it came.
func pathText(r *http.Request, name string) string {
	part := r.PathValue(name)
	if hasEscapedSlash(r) {
		if decoded, err := url.PathUnescape(part); err == nil {
			return decoded
		}
	}
	return part
}

// route adds an endpoint under one method.
func (s *Site) route(router *chi.Mux, method, pattern string, answer endpoint) {
	router.Method(method, pattern, s.handle(method, pattern, answer))
}

// routeGet adds an endpoint that is read, under GET and HEAD.
func (s *Site) routeGet(router *chi.Mux, pattern string, answer endpoint) {
	s.route(router, http.MethodGet, pattern, answer)
	s.route(router, http.MethodHead, pattern, answer)
}

// unrouted says why no route took the request: 405 naming the methods its
// path does have, else 404.
func unrouted(w http.ResponseWriter, r *http.Request) (int, error) {
	var allowed []string
	if routing := chi.RouteContext(r.Context()); routing != nil {
		for _, method := range knownMethods() {
			if routing.Routes.Match(chi.NewRouteContext(), method, routePath(r)) {
				allowed = append(allowed, method)
			}
		}
	}
	if len(allowed) == 0 {
		return 0, notFound("There is nothing at this path.")
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return 0, &policy.Error{
		Code: policy.CodeInvalid, Reason: reasonMethodNotAllowed,
		Detail: "This path answers " + strings.Join(allowed, ", ") + " only.",
	}
}

// methodOther stands in metrics for every method that is not known.
const methodOther = "other"

// knownMethods are the methods that may stand in an Allow header or a label.
func knownMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete}
}

// knownMethod bounds the values of a metric's method label.
func knownMethod(method string) string {
	if slices.Contains(knownMethods(), method) {
		return method
	}
	return methodOther
}
