package doctor

import (
	"context"
	"fmt"
)

func connectionChecks() []check {
	return []check{{name: "connections", look: lookAtConnections}}
}

// lookAtConnections compares the connections that instances may open with those
// that the server has for them.
func lookAtConnections(ctx context.Context, e *examination) error {
	var room, used, instances int
	err := e.conn.QueryRow(ctx, `
		SELECT least(s.room, (SELECT nullif(d.datconnlimit, -1) FROM pg_database AS d WHERE d.datname = current_database()),
		                     (SELECT nullif(r.rolconnlimit, -1) FROM pg_roles AS r WHERE r.rolname = 'ration_service')),
		       (SELECT count(*) FROM pg_stat_activity AS a WHERE a.backend_type = 'client backend' AND a.usename IS DISTINCT FROM 'ration_service')
		FROM (SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
		             - coalesce(current_setting('reserved_connections', true), '0')::int) AS s (room)`).Scan(&room, &used)
	if err != nil {
		return err
	}
	instances = max(e.Instances, 1)
	if !e.hasFault("schema") {
		var alive int
		// Counted without the function's clock, so that whoever may read may count.
		if err := e.conn.QueryRow(ctx, "SELECT count(*) FROM ration.instances_v1() AS i WHERE i.o_alive").Scan(&alive); err != nil {
			return err
		}
		instances = max(instances, alive)
	}
	need := instances * e.Connections
	says := fmt.Sprintf("%d instances may open %d connections each, %d together; the server has room for %d, of which others use %d",
		instances, e.Connections, need, room, used)
	const mend = "raise max_connections (a restart), or lower RATION_LANES or the number of instances"
	switch {
	case need > room:
		e.note(Fault, says, mend)
	case need+used > room*9/10:
		e.note(Warning, says+": little is left for sessions that were abandoned", mend)
	}
	return nil
}
