package trace

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rationhq/ration/policy"
)

// access reads the common log format, and the combined one, which has more
// behind it:
//
//	192.0.2.1 - alice [30/Nov/2026:06:00:00 +0000] "GET /reports/7?full HTTP/1.1" 200 2326
type access struct {
	operations Operations

	second string // the time as last written, since many lines share it
	micros int64
}

const accessTime = "02/Jan/2006:15:04:05 -0700"

// AccessLog reads the access log of nginx or Apache, in the common or combined
// format: ip, user where there is one, the time, and the operation that
// operations makes of method and path.
func AccessLog(input io.Reader, operations Operations, defaults Defaults) (*Reader, error) {
	r, err := open(input, defaults)
	if err != nil {
		return nil, err
	}
	r.layout = &access{operations: operations}
	return r, nil
}

var errNotAccess = errors.New(`is not of the form: address - user [time] "METHOD path HTTP/1.1" …`)

func (a *access) read(line string, into *Record) (err error) {
	address, rest, _ := strings.Cut(line, " ")
	who, rest, dated := strings.Cut(rest, "[")
	instant, rest, closed := strings.Cut(rest, `] "`)
	if !dated || !closed {
		return errNotAccess
	}
	values := &into.Request.Values
	if values[policy.IP], err = policy.CanonicalValue(policy.IP, address); err != nil {
		return fmt.Errorf("begins with %q, which is no IP address", address)
	}
	if _, user, _ := strings.Cut(strings.TrimSpace(who), " "); user != "" && user != "-" && user != `""` {
		if values[policy.User], err = policy.CanonicalValue(policy.User, user); err != nil {
			return fmt.Errorf("has the user %q, which %w", user, err)
		}
	}
	if into.AtMicros, err = a.instant(instant); err != nil {
		return err
	}
	method, path, err := cutRequest(rest)
	if err != nil {
		return err
	}
	values[policy.Operation] = a.operations.of(method, path)
	return nil
}

func (a *access) instant(text string) (int64, error) {
	if text == a.second {
		return a.micros, nil
	}
	parsed, err := time.Parse(accessTime, text)
	if err != nil {
		return 0, fmt.Errorf("has the time %q, which is not of the form 30/Nov/2026:06:00:00 +0000", text)
	}
	micros, err := inRange(parsed.UnixMicro())
	if err == nil {
		a.second, a.micros = text, micros
	}
	return micros, err
}

// cutRequest gives the method and the path of a request line, without query
// and, where a proxy was asked, without scheme and host.
func cutRequest(rest string) (method, path string, err error) {
	request, _, quoted := strings.Cut(rest, `"`)
	method, path, divided := strings.Cut(request, " ")
	if !quoted || !divided || !isMethod(method) {
		return "", "", errors.New("has no request such as \"GET /path HTTP/1.1\"")
	}
	path, _, _ = strings.Cut(path, " ")
	path, _, _ = strings.Cut(path, "?")
	if _, behind, absolute := strings.Cut(path, "://"); absolute {
		_, path, _ = strings.Cut(behind, "/")
		path = "/" + path
	}
	return method, path, nil
}

// isMethod says whether a word can be a method: what is sent to the wrong port
// is logged too, and is none.
func isMethod(word string) bool {
	for i := range len(word) {
		if word[i] < 'A' || word[i] > 'Z' {
			return false
		}
	}
	return word != "" && len(word) <= 32
}
