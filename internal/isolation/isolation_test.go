package isolation_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/internal/dbtest"
)

const folder = "../../sql/testdata/isolation"

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { dbtest.Main(m) }

// Both durabilities answer alike.
func TestScripts(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(folder, "*.script"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts in %s (%v)", folder, err)
	}
	words := readFile(t, filepath.Join(folder, "words.sql"))
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".script"), func(t *testing.T) {
			t.Parallel()
			script, err := readScript(readFile(t, name))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			db := dbtest.New(t, dbtest.TestClock)
			if _, err := db.Owner().Exec(t.Context(), words); err != nil {
				t.Fatalf("words.sql: %v", err)
			}
			golden := strings.TrimSuffix(name, ".script") + ".golden"
			for _, durability := range []string{"fast", "durable"} {
				var out []string
				for _, order := range script.orders {
					out = append(out, playOrder(t, db, script, durability, order))
				}
				compare(t, durability, golden, strings.Join(out, "\n"))
			}
		})
	}
}

func compare(t *testing.T, durability, golden, got string) {
	t.Helper()
	if *update && durability == "fast" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, golden), got); diff != "" {
		t.Errorf("%s policies: %s (-update writes it anew):\n%s", durability, golden, diff)
	}
}
