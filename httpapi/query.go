package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readQuery reads query parameters, each at most once, and refuses any beside
// those known: one ignored in silence would be taken for one that works.
func readQuery(r *http.Request, known ...string) (url.Values, error) {
	query, err := parseQuery(r)
	if err != nil {
		return nil, err
	}
	for name, values := range query {
		if !slices.Contains(known, name) {
			return nil, badRequest(fmt.Sprintf("The query parameter %q is not known here.", name))
		}
		if len(values) > 1 {
			return nil, badRequest(fmt.Sprintf("The query parameter %q is given more than once.", name))
		}
	}
	return query, nil
}

// parseQuery reads query parameters of any name.
func parseQuery(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("The query string is malformed.")
	}
	return query, nil
}

// queryInt reads a whole number between least and most.
func queryInt(query url.Values, name string, absent, least, most int) (int, error) {
	if !query.Has(name) {
		return absent, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < least || n > most {
		return 0, badRequest(fmt.Sprintf("The query parameter %q must be a whole number from %d to %d.", name, least, most))
	}
	return n, nil
}

// isQueryText says whether a parameter is text that the store can keep and
// compare: UTF-8 without NUL, of at most so many bytes.
func isQueryText(value string, bytesMax int) bool {
	return len(value) <= bytesMax && utf8.ValidString(value) && strings.IndexByte(value, 0) < 0
}
