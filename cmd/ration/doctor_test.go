package main

import (
	"fmt"
	"testing"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/pgstore"
)

func TestDoctorCommand(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	environ := []string{"RATION_DATABASE_URL=" + db.OwnerURL(), "RATION_LANES=2"}
	tell(t, nil, []line{
		{call: "help doctor", out: "4 warnings, 5 faults"},
		{call: "doctor", code: exitUsage, errs: "RATION_DATABASE_URL is not set"},
		{call: "doctor -o yaml", code: exitUsage, errs: "text or json"},
		{call: "doctor --instances -1", code: exitUsage, errs: "neither can be so small"},
	})
	tell(t, []string{"RATION_DATABASE_URL=postgres://127.0.0.1:1/ration"}, []line{
		{call: "doctor", code: exitFailed, errs: "connect"},
	})
	if _, err := db.Owner().Exec(t.Context(), "ALTER TABLE ration.bucket_fast SET (autovacuum_enabled = off)"); err != nil {
		t.Fatal(err)
	}
	each := fmt.Sprintf("%d connections each", limiter.Sessions(2)+pgstore.ConnectionsMax())
	tell(t, environ, []line{
		{call: "doctor", code: exitFaults, out: "autovacuum is off for ration.bucket_fast"},
		{call: "doctor", code: exitFaults, out: "mend             ALTER TABLE ration.bucket_fast RESET (autovacuum_enabled);"},
		{call: "doctor --instances 1000 -o json", code: exitFaults, out: `{"check":"connections","severity":"fault","found":"1000 instances may open ` + each},
	})
}
