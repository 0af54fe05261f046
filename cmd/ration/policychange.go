package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// changeFlags are those of every change of a policy.
type changeFlags struct {
	ifMatch string
	reason  string
	dryRun  bool
	wait    time.Duration
}

func (f *changeFlags) add(command *cobra.Command, reason string) {
	flags := command.Flags()
	flags.StringVar(&f.ifMatch, "if-match", "", "the `version` that is replaced, such as v7")
	flags.StringVar(&f.reason, "reason", "", reason)
	flags.DurationVar(&f.wait, "wait", 0, "wait up to this `time`, at most 60s, until the change is in force in every instance")
}

func (f *changeFlags) addDryRun(command *cobra.Command) {
	command.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
}

// version is the version that may be replaced.
func (f *changeFlags) version() (int, error) {
	if f.ifMatch == "" {
		return 0, usageError{errors.New("say --if-match vN, the version in force that you have seen")}
	}
	version, ok := parseVersion(f.ifMatch)
	if !ok {
		return 0, usageError{fmt.Errorf("--if-match %q is not a version such as v7", f.ifMatch)}
	}
	return version, nil
}

// query is what the flags add to a change's path.
func (f *changeFlags) query() url.Values {
	if f.wait == 0 {
		return nil
	}
	return url.Values{"waitForInstall": {f.wait.String()}}
}

// parseVersion reads a version as it is written anywhere: v7, "v7" or 7.
func parseVersion(text string) (version int, ok bool) {
	version, err := strconv.Atoi(strings.TrimPrefix(strings.Trim(text, `"`), "v"))
	return version, err == nil && version >= 1
}

func (p *program) policyRollbackCommand() *cobra.Command {
	var flags changeFlags
	var balances, start string
	command := p.overAdmin(&cobra.Command{
		Use:   "rollback ID vN --if-match vM",
		Short: "Install the content of an older version again",
		Long: "Installs the content of version N as a new version in place of version M. What becomes of balances is said as in a\n" +
			"policy's file: keep, unless --balances says otherwise.",
		Example: "  ration policy rollback search v6 --if-match v7 --dry-run\n  ration policy rollback search v6 --if-match v7 --reason 'too tight'",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		replaces, err := flags.version()
		if err != nil {
			return err
		}
		older, ok := parseVersion(arguments[1])
		if !ok {
			return usageError{fmt.Errorf("%q is not a version such as v6", arguments[1])}
		}
		ask := map[string]any{"version": older}
		for name, value := range map[string]string{"balances": balances, "start": start, "reason": flags.reason} {
			if value != "" {
				ask[name] = value
			}
		}
		body, err := json.Marshal(ask)
		if err != nil {
			return err
		}
		path := policyPath(arguments[0]) + "/rollback"
		if flags.dryRun {
			found, err := api.try(ctx, http.MethodPost, path, replaces, body)
			if err != nil {
				return err
			}
			return p.printTrial(&found, asJSON)
		}
		answer, _, err := api.call(ctx, http.MethodPost, withQuery(path, flags.query()), replacing(replaces), body)
		if err != nil {
			return err
		}
		installed, err := readPolicyVersion(answer)
		if err != nil {
			return err
		}
		return p.sayInstalled(&installed, replaces, asJSON)
	})
	flags.add(command, "`reason` for the audit")
	flags.addDryRun(command)
	command.Flags().StringVar(&balances, "balances", "", "the `rule` for balances: keep, scale, reset or restart")
	command.Flags().StringVar(&start, "start", "", "with --balances restart, the `state` that keys begin in: full or empty")
	return command
}

func (p *program) policyDeleteCommand() *cobra.Command {
	var flags changeFlags
	command := p.overAdmin(&cobra.Command{
		Use:   "delete ID --if-match vN",
		Short: "End a policy",
		Long: "Ends a policy: it matches no request any more, and what its keys have used counts no more. Its versions stay, and\n" +
			"their numbers go on when it is created again.",
		Example: "  ration policy delete search --if-match v7 --reason 'search has gone'",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, api *adminAPI, arguments []string, asJSON bool) error {
		version, err := flags.version()
		if err != nil {
			return err
		}
		ended, err := api.remove(ctx, arguments[0], version, flags.reason, flags.query())
		if err != nil {
			return err
		}
		if asJSON {
			return errors.Join(p.printRaw(ended.raw), ended.confirmed())
		}
		fmt.Fprintf(p.out, "%s is deleted, by v%d\n", ended.ID, ended.Version)
		return ended.confirmed()
	})
	flags.add(command, "`reason` for the audit")
	return command
}

// remove deletes a policy whose version is in force and gives its tombstone.
func (a *adminAPI) remove(ctx context.Context, id string, version int, reason string, query url.Values) (policyVersion, error) {
	all := url.Values{}
	maps.Copy(all, query)
	if reason != "" {
		all.Set("reason", reason)
	}
	body, _, err := a.call(ctx, http.MethodDelete, withQuery(policyPath(id), all), replacing(version), nil)
	if err != nil {
		return policyVersion{}, err
	}
	return readPolicyVersion(body)
}

// sayInstalled tells of a change that was made.
func (p *program) sayInstalled(installed *policyVersion, replaced int, asJSON bool) error {
	if asJSON {
		return errors.Join(p.printRaw(installed.raw), installed.confirmed())
	}
	everywhere := ""
	if installed.Installed != nil && *installed.Installed {
		everywhere = " in every instance"
	}
	switch {
	case installed.Version == replaced:
		fmt.Fprintf(p.out, "%s v%d has this content already%s\n", installed.ID, installed.Version, everywhere)
	case replaced == 0:
		fmt.Fprintf(p.out, "%s v%d is in force%s\n", installed.ID, installed.Version, everywhere)
	default:
		fmt.Fprintf(p.out, "%s v%d is in force%s, after v%d\n", installed.ID, installed.Version, everywhere, replaced)
	}
	p.warn(installed.Warnings)
	return installed.confirmed()
}

// confirmed is nil unless instances were waited for in vain.
func (v *policyVersion) confirmed() error {
	if v.Installed == nil || *v.Installed {
		return nil
	}
	var missing []string
	for _, instance := range v.WaitingFor {
		missing = append(missing, fmt.Sprintf("\n  %s (%s), last seen %s", instance.Name, instance.Instance, instance.SeenAt.UTC().Format(time.DateTime)))
	}
	return fmt.Errorf("%s v%d is in force in the store, but not confirmed in time by%s", v.ID, v.Version, strings.Join(missing, ""))
}
