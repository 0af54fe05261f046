package trace

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rationhq/ration/policy"
)

// operationsMax bounds a mapping: each line is compared with each request.
const operationsMax = 1000

// Operations make an operation of a method and a path. What none of them
// matches is the operation http. and the method in lower case, as http.get.
type Operations []mapping

// mapping is one line of a mapping.
type mapping struct {
	method    string   // "*": any
	segments  []string // of the path; "*": any one, a last "**": all that follow, or none
	operation string
}

// ParseOperations reads a mapping, a line each of method, path and operation;
// the first that matches counts. A method * is any; a segment * of a path is
// any one, and ** at the end all that follow. Behind # is a comment.
//
//	POST  /login             auth.login
//	GET   /reports/*         report.read
//	*     /reports/**        report.change
func ParseOperations(input io.Reader) (Operations, error) {
	var all Operations
	lines := bufio.NewScanner(input)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		one, err := parseMapping(words)
		if err != nil {
			return nil, fmt.Errorf("line %d of the mapping: %w", number, err)
		}
		if all = append(all, one); len(all) > operationsMax {
			return nil, fmt.Errorf("the mapping has more than %d lines", operationsMax)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the mapping: %w", err)
	}
	return all, nil
}

func parseMapping(words []string) (mapping, error) {
	if len(words) != 3 {
		return mapping{}, fmt.Errorf("it has a method, a path and an operation, not %d words", len(words))
	}
	method, path, operation := words[0], words[1], words[2]
	if method != "*" && !isMethod(method) {
		return mapping{}, fmt.Errorf("%q is no method; write it in capitals, or *", method)
	}
	if !strings.HasPrefix(path, "/") {
		return mapping{}, fmt.Errorf("the path %q does not begin with /", path)
	}
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		if strings.Contains(segment, "*") && segment != "*" && (segment != "**" || i < len(segments)-1) {
			return mapping{}, fmt.Errorf("the path %q may have * for a whole segment, and ** for the last one, only", path)
		}
	}
	if _, err := policy.CanonicalValue(policy.Operation, operation); err != nil {
		return mapping{}, fmt.Errorf("the operation %q %w", operation, err)
	}
	return mapping{method: method, segments: segments, operation: operation}, nil
}

// of gives the operation of a request.
func (o Operations) of(method, path string) string {
	for i := range o {
		if o[i].matches(method, path) {
			return o[i].operation
		}
	}
	return "http." + strings.ToLower(method)
}

func (m *mapping) matches(method, path string) bool {
	if m.method != "*" && m.method != method {
		return false
	}
	rest, more := strings.CutPrefix(path, "/")
	for _, want := range m.segments {
		if want == "**" {
			return true
		}
		if !more {
			return false
		}
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if want != "*" && want != segment {
			return false
		}
	}
	return !more
}
