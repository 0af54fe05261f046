package httpapi

import (
	"slices"
	"testing"
)

// FuzzParseTags holds that no header makes a tag that was not in it: what is
// read can be written back and reads the same.
func FuzzParseTags(f *testing.F) {
	for _, seed := range []string{`*`, `"v7"`, `W/"v7"`, `"v1", W/"v2" ,, "v3"`, `"v07","x y"`, `"`, `"v1"W/`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		parsed, err := parseTags([]string{header})
		if err != nil {
			return
		}
		if !parsed.given() || len(parsed.list) > tagsMax {
			t.Fatalf("%q is read as %+v", header, parsed)
		}
		var lines []string
		for _, version := range parsed.strong() {
			lines = append(lines, entityTag(version))
		}
		if len(lines) == 0 {
			return
		}
		again, err := parseTags(lines)
		if err != nil || !slices.Equal(again.strong(), parsed.strong()) {
			t.Errorf("%q: %v is read back as %v, %v", header, parsed.strong(), again.strong(), err)
		}
	})
}
