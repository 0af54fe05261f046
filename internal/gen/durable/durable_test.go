package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const functions = "../../../sql/functions"

func TestFilesAreWhatTheGeneratorGives(t *testing.T) {
	t.Parallel()
	for _, source := range sources {
		text, err := os.ReadFile(filepath.Join(functions, source.fast+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := durable(string(text), source.fast)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(functions, source.durable+".sql"))
		if err != nil {
			t.Fatalf("%v; run `make generate`", err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s.sql is not what the generator gives; edit %s.sql and run `make generate`\n%s", source.durable, source.fast, diff)
		}
	}
}

func TestDurable(t *testing.T) {
	t.Parallel()
	got, err := durable(`-- take_v1: as take_new_v1.
CREATE FUNCTION ration.take_v1()
    IF ration.guard_v1(true, p) THEN
    -- durable: PERFORM ration.commit_durably_v1();
    UPDATE ration.bucket_fast; -- not retake_v1x
`, "take_v1")
	if err != nil {
		t.Fatal(err)
	}
	want := `-- Code generated from take_v1.sql by internal/gen/durable. DO NOT EDIT.
--
-- take_durable_v1: as take_new_durable_v1.
CREATE FUNCTION ration.take_durable_v1()
    IF ration.guard_v1(false, p) THEN
    PERFORM ration.commit_durably_v1();
    UPDATE ration.bucket_durable; -- not retake_v1x
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDurableLeavesNothingOfTheFastTable(t *testing.T) {
	t.Parallel()
	if got, err := durable("UPDATE \"bucket_fast\"\n", "take_v1"); err == nil {
		t.Errorf("it gives %q", got)
	}
}
