package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/migrations"
	"github.com/rationhq/ration/pgstore"
)

// build is what this binary was made of.
type build struct {
	version   string // of the module
	revision  string // of the repository, with "+dirty" where it was changed
	goVersion string
}

func readBuild() build {
	b := build{version: "unknown", revision: "unknown", goVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version = cmp.Or(info.Main.Version, b.version)
	changed := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			b.revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changed = "+dirty"
		}
	}
	b.revision += changed
	return b
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of the schema it works on",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			major, minorMin := pgstore.Schema()
			fmt.Fprintf(p.out, "ration      %s\nrevision    %s\ngo          %s %s/%s\nschema      %d.%d or a newer %[6]d.x\nmigrations  %[8]d\n",
				b.version, b.revision, b.goVersion, runtime.GOOS, runtime.GOARCH, major, minorMin, migrations.Latest())
			return nil
		},
	}
}
