package doctest

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// pages is the documentation, seen from the packages that test examples.
func pages() fs.FS { return os.DirFS("../../docs") }

// Block is one fenced example of a page.
type Block struct {
	Name string // page and line, for messages
	Text string
}

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// Blocks gives a page's examples in one language, in their order. A page is
// named from docs.
func Blocks(page, language string) ([]Block, error) {
	content, err := fs.ReadFile(pages(), page)
	if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	var found []Block
	for _, at := range fenced.FindAllSubmatchIndex(content, -1) {
		if string(content[at[2]:at[3]]) != language {
			continue
		}
		line := strings.Count(string(content[:at[0]]), "\n") + 1
		found = append(found, Block{Name: fmt.Sprintf("%s:%d", page, line), Text: string(content[at[4]:at[5]])})
	}
	return found, nil
}

// Guides gives the names of the pages that lead somebody through something.
func Guides() ([]string, error) {
	guides, err := fs.Glob(pages(), "guides/*.md")
	if err != nil {
		return nil, fmt.Errorf("list the guides: %w", err)
	}
	return append([]string{"start.md"}, guides...), nil
}
