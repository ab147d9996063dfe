package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/internal/demo"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// The shortest demo that shows something, and its shortest lease.
const (
	minDemo      = 5 * time.Second
	minDemoLease = 500 * time.Millisecond
)

func (a *app) newDemoCommand() *cobra.Command {
	var length, lease time.Duration
	var where place
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show three replicas whose leader is killed, frozen and stopped, and count every tick",
		Long: `Starts three replicas of "singleton cron" with one job that is due every second, on a Redis that runs inside of this
command, or on the one of --store. Every few seconds it kills the leader, asks it to leave, or freezes it, and prints what
happens. In the end it counts each tick from the lines that the job has written.

Exit code 0: no tick was lost, and none ran twice, save one whose first attempt the history shows as interrupted.
On the Redis of --store it uses a group of its own and removes its keys in the end.`,
		Example: `  singleton demo
  singleton demo --for 2m --lease 5s --store redis://127.0.0.1:6379`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case length < minDemo:
				return usagef("--for %v is shorter than %v", length, minDemo)
			case lease < minDemoLease || lease%time.Millisecond != 0:
				return usagef("--lease %v: want at least %v, in whole milliseconds", lease, minDemoLease)
			}
			return a.demo(cmd.Context(), where, demo.Config{Out: a.stdout, For: length, Lease: lease})
		},
	}
	flags := cmd.Flags()
	flags.Var(&where, "store", "`URL` of a Redis to use (default one inside of this command)")
	length, lease = 30*time.Second, 2*time.Second
	flags.Var(span{&length}, "for", "how long")
	flags.Var(span{&lease}, "lease", "how long leadership outlives a crash")
	return cmd
}

func (a *app) demo(ctx context.Context, where place, cfg demo.Config) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the path of this program is not known: %w", err)
	}
	cfg.Binary = binary
	redis.SetLogger(clientLog{slog.New(slog.DiscardHandler)})
	given := opened{from: where.from}
	if where.url != "" {
		cfg.Store = where.url
		a, err := parseStore(where.url)
		if err == nil && a.one == nil {
			err = fmt.Errorf("the demo shows one Redis; %s", wantURL)
		}
		if err == nil {
			err = a.files.check()
		}
		if err != nil {
			return usagef("%s: %w", where.from, err)
		}
		cfg.Client, given.name = a.one, a.name
	}
	err = demo.Run(ctx, cfg)
	bad, ok := errors.AsType[*demo.StoreError](err)
	switch {
	case ok && where.url != "":
		return given.explain(bad.Err)
	case errors.Is(err, demo.ErrTicks):
		return &failure{code: exitFailed} // the tally has said it
	}
	return err
}
