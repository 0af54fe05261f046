package doctest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// block is one fenced example of a page.
type block struct {
	name string // page and line, for messages
	text string
}

var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// blocks gives a page's examples in one language, in their order.
func blocks(t *testing.T, page, language string) []block {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var found []block
	for _, at := range fenced.FindAllSubmatchIndex(content, -1) {
		if string(content[at[2]:at[3]]) != language {
			continue
		}
		line := strings.Count(string(content[:at[0]]), "\n") + 1
		found = append(found, block{name: fmt.Sprintf("%s:%d", page, line), text: string(content[at[4]:at[5]])})
	}
	if len(found) == 0 {
		t.Fatalf("%s has no example in %s", page, language)
	}
	return found
}
