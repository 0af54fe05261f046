package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// sources are the functions that have a durable twin.
var sources = []struct{ fast, durable string }{
	{"take_v1", "take_durable_v1"},
	{"take_new_v1", "take_new_durable_v1"},
}

// The lines that the two functions do not share.
const (
	durableOnly = "-- durable: "
	fastBegin   = "-- fast:begin"
	fastEnd     = "-- fast:end"
)

var ownName = regexp.MustCompile(`\btake_(new_)?v1\b`)

// durable gives the durable twin of a function's source file.
func durable(text, name string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "-- Code generated from %s.sql by internal/gen/durable. DO NOT EDIT.\n--\n", name)
	inFast := false
	for line := range strings.Lines(text) {
		switch marker := strings.TrimSpace(line); {
		case marker == fastBegin && !inFast:
			inFast = true
		case marker == fastEnd && inFast:
			inFast = false
		case marker == fastBegin, marker == fastEnd:
			return "", fmt.Errorf("%s without its other half", marker)
		case inFast:
		default:
			out.WriteString(twin(line))
		}
	}
	if inFast {
		return "", errors.New(fastBegin + " without " + fastEnd)
	}
	generated := out.String()
	if i := strings.Index(generated, "bucket_fast"); i >= 0 {
		return "", fmt.Errorf("%q would be left of the fast table", generated[i:min(len(generated), i+40)])
	}
	return generated, nil
}

// twin is a line of the durable function.
func twin(line string) string {
	line = strings.Replace(line, durableOnly, "", 1)
	line = strings.ReplaceAll(line, "ration.bucket_fast", "ration.bucket_durable")
	line = strings.ReplaceAll(line, "ration.guard_v1(true, ", "ration.guard_v1(false, ") // p_fast
	return ownName.ReplaceAllString(line, "take_${1}durable_v1")
}
