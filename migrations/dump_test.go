package migrations_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A section of the dump is one query that gives its lines. The dump
// is read from the catalogs rather than by pg_dump, whose output changes with
// its version; it leaves out what PostgreSQL itself words differently from
// version to version (bodies of views and functions: the functions are
// compared with their sources) and who owns things.
type section struct{ title, query string }

var schemaSections = []section{
	{"schema", `
		SELECT 'schema ration' || coalesce(' grant ' || string_agg(g, ', ' ORDER BY g COLLATE "C"), '')
		FROM pg_namespace n LEFT JOIN LATERAL (
			SELECT grantee.name || '=' || string_agg(a.privilege_type, '/' ORDER BY a.privilege_type COLLATE "C")
			FROM aclexplode(n.nspacl) a, LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE a.grantee::regrole::text END) grantee (name)
			WHERE a.grantee <> n.nspowner GROUP BY grantee.name) grants (g) ON true
		WHERE n.nspname = 'ration' GROUP BY n.nspname`},
	{"types", `
		SELECT CASE t.typtype WHEN 'd' THEN 'domain ' || t.typname || ' as ' || format_type(t.typbasetype, t.typtypmod)
				|| coalesce(' ' || (SELECT string_agg(pg_get_constraintdef(c.oid), ' ' ORDER BY c.conname) FROM pg_constraint c WHERE c.contypid = t.oid AND c.contype = 'c'), '')
			WHEN 'e' THEN 'enum ' || t.typname || ' of ' || (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
			ELSE 'composite ' || t.typname || ' of ' || (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
				FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) END
		FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
		WHERE t.typnamespace = 'ration'::regnamespace AND (t.typtype IN ('d', 'e') OR c.relkind = 'c')`},
	{"relations", `
		SELECT CASE c.relpersistence WHEN 'u' THEN 'unlogged ' WHEN 't' THEN 'temporary ' ELSE '' END
			|| CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'sequence' END
			|| ' ' || c.relname || coalesce(' with ' || (SELECT string_agg(o, ', ' ORDER BY o COLLATE "C") FROM unnest(c.reloptions) o), '')
			|| CASE WHEN c.relrowsecurity THEN ' row security' ELSE '' END
		FROM pg_class c
		WHERE c.relnamespace = 'ration'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S') AND c.relname <> 'schema_migrations'
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i' AND c.relkind = 'S')`},
	{"columns", `
		SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
			|| CASE WHEN a.attcollation <> t.typcollation THEN ' collate ' || a.attcollation::regcollation::text ELSE '' END
			|| CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
			|| CASE a.attidentity WHEN 'a' THEN ' identity always' WHEN 'd' THEN ' identity by default' ELSE '' END
			|| CASE WHEN d.adbin IS NULL THEN '' WHEN a.attgenerated = '' THEN ' default ' ELSE ' generated ' END || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
			|| CASE WHEN c.relkind = 'r' AND a.attstorage <> t.typstorage THEN ' storage ' || a.attstorage::text ELSE '' END
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		JOIN pg_type t ON t.oid = a.atttypid
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'ration'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relname <> 'schema_migrations'
		ORDER BY c.relname, a.attnum`},
	{"constraints", `
		SELECT c.conrelid::regclass::text || ' ' || c.conname || ' ' || pg_get_constraintdef(c.oid)
		FROM pg_constraint c
		-- PostgreSQL 18 lists NOT NULL here too; it stands with the columns.
		WHERE c.connamespace = 'ration'::regnamespace AND c.conrelid <> 0 AND c.contype <> 'n' AND c.conrelid::regclass::text <> 'ration.schema_migrations'`},
	{"indexes", `
		SELECT pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE c.relnamespace = 'ration'::regnamespace AND i.indrelid::regclass::text <> 'ration.schema_migrations'`},
	{"triggers", `
		SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = 'ration'::regnamespace AND NOT t.tgisinternal`},
	{"functions", `
		SELECT CASE p.prokind WHEN 'p' THEN 'procedure ' WHEN 'a' THEN 'aggregate ' ELSE 'function ' END
			|| p.proname || '(' || pg_get_function_arguments(p.oid) || ')'
			|| coalesce(' returns ' || pg_get_function_result(p.oid), '') || ' language ' || l.lanname
			|| CASE p.provolatile WHEN 'i' THEN ' immutable' WHEN 's' THEN ' stable' ELSE ' volatile' END
			|| CASE p.proparallel WHEN 's' THEN ' parallel safe' WHEN 'r' THEN ' parallel restricted' ELSE '' END
			|| CASE WHEN p.proisstrict THEN ' strict' ELSE '' END || CASE WHEN p.prosecdef THEN ' security definer' ELSE '' END
			|| coalesce(' set ' || (SELECT string_agg(s, '; ' ORDER BY s COLLATE "C") FROM unnest(p.proconfig) s), '')
		FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = 'ration'::regnamespace`},
	{"grants", `
		SELECT kind || ' ' || name || ' to ' || CASE grantee WHEN 0 THEN 'public' ELSE grantee::regrole::text END
			|| ': ' || string_agg(privilege || CASE WHEN grantable THEN ' with grant option' ELSE '' END, ', ' ORDER BY privilege COLLATE "C")
		FROM (
			SELECT 'function', p.proname || '(' || oidvectortypes(p.proargtypes) || ')', p.proowner, a.grantee, a.privilege_type, a.is_grantable
			FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE p.pronamespace = 'ration'::regnamespace
			UNION ALL
			SELECT CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'relation' END, c.relname, c.relowner, a.grantee, a.privilege_type, a.is_grantable
			FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'ration'::regnamespace
			UNION ALL
			SELECT 'column', c.relname || '.' || t.attname, c.relowner, a.grantee, a.privilege_type, a.is_grantable
			FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a WHERE c.relnamespace = 'ration'::regnamespace
		) AS granted (kind, name, owner, grantee, privilege, grantable)
		WHERE grantee <> owner
		GROUP BY kind, name, grantee`},
	{"roles", `
		SELECT 'role ' || r.rolname || CASE WHEN r.rolcanlogin THEN ' login' ELSE ' nologin' END
			|| CASE WHEN r.rolsuper THEN ' superuser' ELSE '' END || CASE WHEN r.rolbypassrls THEN ' bypassrls' ELSE '' END
			|| CASE WHEN r.rolcreatedb THEN ' createdb' ELSE '' END || CASE WHEN r.rolcreaterole THEN ' createrole' ELSE '' END
			|| coalesce(' member of ' || (SELECT string_agg(m.roleid::regrole::text, ', ' ORDER BY m.roleid::regrole::text COLLATE "C") FROM pg_auth_members m WHERE m.member = r.oid), '')
		FROM pg_roles r WHERE r.rolname IN ('ration_service', 'ration_operator', 'ration_reader')`},
	{"settings in this database", `
		SELECT CASE s.setrole WHEN 0 THEN 'everybody' ELSE s.setrole::regrole::text END || ': ' || setting
		FROM pg_db_role_setting s, unnest(s.setconfig) setting
		WHERE s.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())`},
}

// dump describes everything that the migrations have made, the same on every
// supported PostgreSQL.
func dump(ctx context.Context, conn *pgx.Conn) (string, error) {
	var out strings.Builder
	out.WriteString("-- What the migrations make, read from the catalogs. Written by `go test ./migrations -update`.\n")
	// With an empty path every name is qualified, whatever the server is set to.
	if _, err := conn.Exec(ctx, `SET search_path = ''`); err != nil {
		return "", fmt.Errorf("set the search path: %w", err)
	}
	for _, section := range schemaSections {
		rows, err := conn.Query(ctx, section.query)
		if err != nil {
			return "", fmt.Errorf("dump %s: %w", section.title, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return "", fmt.Errorf("dump %s: %w", section.title, err)
		}
		if section.title != "columns" { // whose order is the table's own
			slices.Sort(lines) // here, because databases sort by their own locale
		}
		fmt.Fprintf(&out, "\n-- %s\n", section.title)
		for _, line := range lines {
			out.WriteString(line + "\n")
		}
	}
	return out.String(), nil
}
