package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the module's folder, seen from the packages that test examples.
const root = "../.."

// Block is one fenced example of a page.
type Block struct {
	Name string // page and line, for messages
	Text string
}

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// Blocks gives a page's examples in one language, in their order. A page is
// named from docs.
func Blocks(tb testing.TB, page, language string) []Block {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		tb.Fatal(err)
	}
	var found []Block
	for _, at := range fenced.FindAllSubmatchIndex(content, -1) {
		if string(content[at[2]:at[3]]) != language {
			continue
		}
		line := strings.Count(string(content[:at[0]]), "\n") + 1
		found = append(found, Block{Name: fmt.Sprintf("%s:%d", page, line), Text: string(content[at[4]:at[5]])})
	}
	return found
}

// Guides gives the names of the pages that lead somebody through something.
func Guides(tb testing.TB) []string {
	tb.Helper()
	pages := []string{"start.md"}
	entries, err := os.ReadDir(filepath.Join(root, "docs", "guides"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range entries {
		pages = append(pages, "guides/"+entry.Name())
	}
	return pages
}
