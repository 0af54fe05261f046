package main

import (
	"os"
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
)

// asProgram makes the test binary the program itself, for tests that kill it.
const asProgram = "RUN_AS_RATION"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	dbtest.Main(m)
}
