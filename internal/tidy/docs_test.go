package tidy_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const readmeLinesMax = 150 // a front page, not a manual

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	target  = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, document := range files(t, ".md") {
		text := fence.ReplaceAllString(read(t, document), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			name, anchor, _ := strings.Cut(match[1], "#")
			to := document
			if name != "" {
				to = path.Join(path.Dir(document), name)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", document, match[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(to, ".md") && !anchors(read(t, to))[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", document, match[1], to)
			}
		}
	}
}

// Whoever starts at the front page reaches every page.
func TestEveryPageIsReached(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	var follow func(document string)
	follow = func(document string) {
		if reached[document] || path.Ext(document) != ".md" {
			return
		}
		reached[document] = true
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, document), ""), -1) {
			if name, _, _ := strings.Cut(match[1], "#"); name != "" && !strings.Contains(name, "://") {
				follow(path.Join(path.Dir(document), name))
			}
		}
	}
	follow("README.md")
	for _, document := range files(t, ".md") {
		if !reached[document] {
			t.Errorf("no link leads from README.md to %s", document)
		}
	}
	// The index has every guide, whatever other pages lead to it.
	guides := read(t, "docs/guides/README.md")
	for _, document := range files(t, ".md") {
		if folder, name := path.Split(document); folder == "docs/guides/" && name != "README.md" && !strings.Contains(guides, "]("+name+")") {
			t.Errorf("docs/guides/README.md does not name %s", document)
		}
	}
}

// anchors are the fragments by which a document's headings are reached.
func anchors(markdown string) map[string]bool {
	found := map[string]bool{}
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(markdown, ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	return found
}

func TestReadmeIsAFrontPage(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	for _, command := range []string{"go run ./cmd/ration dev", "go test ./...", "/internal/rate-decisions"} {
		if !strings.Contains(readme, command) {
			t.Errorf("README.md does not show %q", command)
		}
	}
	if lines := strings.Count(readme, "\n"); lines > readmeLinesMax {
		t.Errorf("README.md has %d lines, at most %d", lines, readmeLinesMax)
	}
}

func TestDocumentedMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	for _, document := range files(t, ".md") {
		for _, match := range target.FindAllStringSubmatch(code(read(t, document)), -1) {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s names `make %s`; the Makefile has no such target", document, match[1])
			}
		}
	}
}

// code gives what a document sets in code: fenced blocks and `inline` spans.
func code(markdown string) string {
	inline := regexp.MustCompile("`[^`\n]+`")
	parts := fence.FindAllString(markdown, -1)
	parts = append(parts, inline.FindAllString(fence.ReplaceAllString(markdown, ""), -1)...)
	return strings.Join(parts, "\n")
}
