package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

func (a *app) rules() *cobra.Command {
	return &cobra.Command{
		Use:   "rules [RULE]",
		Short: "List the rules, or explain one",
		Args:  oneArg,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listRules()
			}
			return a.explainRule(args[0])
		},
	}
}

func (a *app) listRules() error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range contract.Rules() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.ID, r.Severity, r.Brief)
	}
	return w.Flush()
}

func (a *app) explainRule(id string) error {
	var ids []string
	for _, r := range contract.Rules() {
		if r.ID == id {
			_, err := fmt.Fprintf(a.stdout, "%s (%s)\n\nWhat is wrong: %s\nHow to mend it: %s\n", r.ID, r.Severity, r.Brief, r.Fix)
			return err
		}
		ids = append(ids, r.ID)
	}
	return notOne("rule", id, ids, "genaitrace rules")
}

func (a *app) profiles() *cobra.Command {
	return &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the built-in profiles, or print the file of one",
		Long:  "profiles lists the contracts that are built in. A contract takes one over with\n\"extends: builtin:NAME\", and check and serve take one as --contract builtin:NAME.",
		Args:  oneArg,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listProfiles()
			}
			source, err := contract.BuiltinSource(strings.TrimPrefix(args[0], "builtin:"))
			if err != nil {
				return notOne("profile", args[0], contract.Builtins(), "genaitrace profiles")
			}
			_, err = a.stdout.Write(source)
			return err
		},
	}
}

func (a *app) listProfiles() error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, name := range contract.Builtins() {
		c, err := contract.Builtin(name)
		if err != nil {
			return &failure{exitUsage, err}
		}
		fmt.Fprintf(w, "%s\t%s\n", name, strings.Join(strings.Fields(c.Spec().Description), " "))
	}
	return w.Flush()
}

func (a *app) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of contract files, for editors",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(spec.Schema())
			return err
		},
	}
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, "genaitrace "+version())
			return err
		},
	}
}

// version is that of the module where it was installed as one, else the revision
// it was built from.
func version() string {
	text := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		text = info.Main.Version
	}
	return text + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// notOne is the error for a name that is none of known.
func notOne(what, name string, known []string, list string) error {
	if near := spec.Nearest(name, known); near != "" {
		return fail(exitUsage, "there is no %s %q, did you mean %q?", what, name, near)
	}
	return fail(exitUsage, "there is no %s %q; %s lists them", what, name, list)
}
