package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
)

// How long a command that asks the store waits: for the first answer, and for all that a large group has to tell.
const (
	askLimit  = 5 * time.Second
	readLimit = time.Minute
)

// asking are the flags of the commands that ask a store once and print what it says.
type asking struct {
	target
	json, utc bool
}

func (q *asking) register(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	q.target.register(flags)
	toggle{&q.json}.register(flags, "json", "print "+what)
	toggle{&q.utc}.register(flags, "utc", "print times in UTC, not in the time zone of this machine")
}

// zone returns the time zone of the printed times.
func (q *asking) zone(a *app) *time.Location {
	if q.utc {
		return time.UTC
	}
	return a.local
}

// whole tells whether the store cannot say how much is left of a lease: only ZooKeeper's servers know when a session ends.
func (q *asking) whole(a *app) bool {
	return strings.HasPrefix(a.choose(q.store).url, "zk")
}

// ask opens the store and gives fn an inspector of the group and a context that ends soon.
func (a *app) ask(ctx context.Context, q *asking, fn func(context.Context, *scheduler.Inspector) error) error {
	st, inspector, err := a.inspect(ctx, &q.target, "")
	if err != nil {
		return err
	}
	defer st.Close()
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	if err := fn(ctx, inspector); err != nil {
		return st.explain(err)
	}
	return nil
}

// greet asks the store something small, to learn soon whether it answers at all.
func (o *opened) greet(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, err := o.Leader(ctx, group)
	if errors.Is(err, store.ErrNoLeader) {
		return nil
	}
	return err
}
