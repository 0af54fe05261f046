package doctest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/internal/doctest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// reportCreate installs the policy that the examples speak of.
const reportCreate = `SELECT ration.put_policy_v1('report-create', 0,
	'{"match":{"operations":["report.create"]},"per":["account","operation"],"durability":"fast",
	  "limit":{"algorithm":"token_bucket","capacity":40,"refillTokens":20,"refillSeconds":1}}',
	1, 50000, 40, 'keep', NULL, 'doctest', '', '', '')`

// answered is an example that says what it answers: "SELECT …;  -- 400000: why".
var answered = regexp.MustCompile(`;  -- ([^:\s]+)`)

// Each example is run as the owner in a transaction that is rolled back: some
// make roles, which belong to the whole server.
func TestSQLExamplesRun(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	conn, err := db.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), reportCreate); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"start.md", "guides/sql.md", "guides/running.md", "reference/sql.md", "reference/configuration.md"} {
		examples := blocks(t, page, "sql")
		if len(examples) == 0 {
			t.Errorf("%s has no example in SQL", page)
		}
		for _, example := range examples {
			runSQL(t, conn.Conn(), db.Name, example)
		}
	}
}

func runSQL(t *testing.T, conn *pgx.Conn, database string, example doctest.Block) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	// What an example takes for granted, or names otherwise here.
	sql := strings.ReplaceAll(example.Text, "IN DATABASE ration ", "IN DATABASE "+database+" ")
	if strings.Contains(sql, "alice") {
		sql = "CREATE ROLE alice; " + sql
	}
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Errorf("%s: %v\n%s", example.Name, err, example.Text)
		return
	}
	if want := answered.FindStringSubmatch(example.Text); want != nil {
		if got := string(results[0].Rows[0][0]); got != want[1] {
			t.Errorf("%s answers %s, and says %s", example.Name, got, want[1])
		}
	}
}

// blocks gives a page's examples in one language.
func blocks(t *testing.T, page, language string) []doctest.Block {
	t.Helper()
	found, err := doctest.Blocks(page, language)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
