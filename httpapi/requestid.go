package httpapi

import (
	"crypto/rand"
	"net/http"
)

const (
	requestIDHeader = "X-Request-Id"

	// Room for any id in use (a UUID has 36 bytes, a trace id 32), too little
	// to carry anything else into answers, logs and the audit.
	requestIDBytesMax = 128
)

// requestID gives the caller's id of this request, "" when it gave none that
// can be echoed: visible ASCII of at most requestIDBytesMax bytes.
func requestID(r *http.Request) string {
	values := r.Header[requestIDHeader]
	if len(values) != 1 || len(values[0]) > requestIDBytesMax {
		return ""
	}
	for _, c := range []byte(values[0]) {
		if c < '!' || c > '~' {
			return ""
		}
	}
	return values[0]
}

// ensureRequestID puts an id on the answer, the caller's or a new one, so that
// what is logged or audited can be found again.
func ensureRequestID(w http.ResponseWriter, r *http.Request) string {
	if id := w.Header().Get(requestIDHeader); id != "" {
		return id
	}
	id := requestID(r)
	if id == "" {
		id = rand.Text()
	}
	w.Header().Set(requestIDHeader, id)
	return id
}
