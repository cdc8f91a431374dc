package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/config"
)

func serveCommand() *cobra.Command {
	var demo bool
	c := &cobra.Command{
		Use: "serve", Short: "Serve the HTTP API and the console, perform duties, and run jobs of the built-in kinds", Args: cobra.NoArgs,
		Long: `Serves the HTTP API on a store, and pages for people at /console/; performs what has to be done on a beat (promote, reclaim, schedules, retention, ...),
runs jobs of the built-in kinds http and exec, and delivers to subscriptions. Any number of servers may share a PostgreSQL store.

Without a store it makes one in the user's data directory. It listens on loopback, where no key is needed until there is one; an address that others
can reach needs keys. The first is made beside the store: holdfast keys create --store ... --scope admin --name ... People sign in to the console with a
key too; --console read-only lets them look and change nothing, --console off leaves the pages away.

Everything can be set by flag or by environment, as 'holdfast config' shows and docs/configuration.md tells. It stops gracefully when it is asked to
(SIGTERM, Ctrl-C): it says that it is not ready any more, claims nothing more, lets work finish within --grace, and ends with 0. A second signal
ends it at once; what it held is reclaimed when its leases end.`,
		Example: `  holdfast serve
  holdfast serve --demo
  holdfast serve --store postgres://holdfast@db/jobs --listen 0.0.0.0:4747 --auth keys`,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := settings(c)
			if err != nil {
				return err
			}
			if demo {
				return serveDemo(c, set)
			}
			return serve(c, set)
		},
	}
	settingFlags(c)
	c.Flags().BoolVar(&demo, "demo", false, "serve a throw-away store with a gateway that misbehaves and jobs that call it")
	return c
}

// settingFlags makes a flag of every setting that may be one.
func settingFlags(c *cobra.Command) {
	flags := c.Flags()
	for _, s := range config.Settings {
		switch {
		case !s.HasFlag() || s.Chapter == config.Where: // where the jobs are is said by flags that every verb has
		case s.Form == config.Switch:
			flags.Bool(s.Name, s.Default == "true", s.About)
		default:
			flags.String(s.Name, s.Default, s.About)
		}
	}
}

// settings is what holds: the environment, and before it the flags.
func settings(c *cobra.Command) (config.Values, error) {
	set, err := config.Read(os.Environ())
	if err != nil {
		return set, &usageError{err}
	}
	var problems []error
	for _, s := range config.Settings {
		if flag := c.Flags().Lookup(s.Name); flag != nil && flag.Changed && s.Name != "key" {
			problems = append(problems, set.Set(s.Name, flag.Value.String()))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return set, usage(c, err)
	}
	return set, nil
}

// serve serves until it is asked to stop.
func serve(c *cobra.Command, set config.Values) error {
	if set.Of("server").From == "--server" {
		return usage(c, fmt.Errorf("--server: a server serves a store; give --store"))
	}
	address := set.Text("store")
	if address == "" {
		home, err := homeStore()
		if err != nil {
			return usage(c, err)
		}
		if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
			return fmt.Errorf("the folder of the store cannot be made: %w", err)
		}
		address = home
	}
	s := &site{set: set, talk: c.ErrOrStderr()}
	defer s.close()
	if err := s.open(c.Context(), address); err != nil {
		if c.Context().Err() != nil { // it was asked to stop before it served
			return nil
		}
		return err
	}
	return s.run(c.Context(), func(context.Context) error {
		fmt.Fprintf(c.OutOrStdout(), "holdfast serves %s at %s\n", config.Redacted(address), s.url())
		if pages := s.consoleURL(); pages != "" {
			fmt.Fprintf(c.OutOrStdout(), "console  %s\n", pages)
		}
		return nil
	})
}
