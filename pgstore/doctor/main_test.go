package doctor_test

import (
	"testing"

	"github.com/rationhq/ration/internal/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
