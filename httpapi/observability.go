package httpapi

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapesMax bounds concurrent scrapes: a pair of Prometheus servers and one
// person looking. More would only slow the decisions down.
const scrapesMax = 3

// scrapeTimeout ends a scrape that a collector hangs in, before Prometheus's
// own default of 10 s does.
const scrapeTimeout = 5 * time.Second

// ObservabilityConfig is what the observability listener needs.
type ObservabilityConfig struct {
	Site
	Gatherer prometheus.Gatherer
	Checks   []Check // of readiness, in the order they are listed
}

// NewObservability makes the handler of the observability listener: /livez,
// /readyz and /metrics.
func NewObservability(config ObservabilityConfig) http.Handler {
	site := config.withDefaults()
	ready := &readiness{Site: site, checks: config.Checks}
	router := site.router()
	site.routeGet(router, "/livez", site.live)
	site.routeGet(router, "/readyz", ready.answer)
	router.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(config.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(site.Logger.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // one broken collector must not hide the others
		MaxRequestsInFlight: scrapesMax,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
	return router
}

// live says that the process answers. It asks nobody else, for a restart
// mends no store.
func (s *Site) live(w http.ResponseWriter, r *http.Request) (int, error) {
	return s.writeText(w, r, http.StatusOK, "ok\n"), nil
}

// writeText answers plain text for people; machines read the status.
func (s *Site) writeText(w http.ResponseWriter, r *http.Request, status int, text string) int {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	s.write(r.Context(), w, []byte(text))
	return status
}
