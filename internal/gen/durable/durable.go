package main

import (
	"fmt"
	"regexp"
	"strings"
)

// sources are the functions that have a durable twin.
var sources = []struct{ fast, durable string }{
	{"take_v1", "take_durable_v1"},
	{"take_new_v1", "take_new_durable_v1"},
}

// durableOnly begins a line of the source that is the durable function's alone.
const durableOnly = "-- durable: "

var ownName = regexp.MustCompile(`\btake_(new_)?v1\b`)

// durable gives the durable twin of a function's source file.
func durable(text, name string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "-- Code generated from %s.sql by internal/gen/durable. DO NOT EDIT.\n--\n", name)
	for line := range strings.Lines(text) {
		out.WriteString(twin(line))
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
