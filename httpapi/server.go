package httpapi

import (
	"net/http"
	"time"
)

// NewServer makes a server for one listener's handler, bounded against
// callers that are slow or send too much. The caller sets Addr or serves a
// listener, and may set ErrorLog.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler,
		// Gateways are near; headers that take longer are an attack or a fault.
		ReadHeaderTimeout: 5 * time.Second,
		// A batch of 1 MiB at 1 Mbit/s takes 8 s.
		ReadTimeout: 10 * time.Second,
		// Longer than any deadline of ours, the scrape's included, so that it
		// only ends callers that do not read.
		WriteTimeout: 15 * time.Second,
		// Above the 60 s after which common gateways close idle connections
		// themselves: the side that sends must be the one that closes, or a
		// request meets a connection just closed.
		IdleTimeout: 75 * time.Second,
		// Cookies and tokens pass a gateway, not this service: its own headers
		// fit in a tenth of this.
		MaxHeaderBytes: 16 << 10,
	}
}
