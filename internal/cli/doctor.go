package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/spf13/cobra"
)

// examination is what `singleton doctor --json` prints.
type examination struct {
	Store    string    `json:"store"` // without its password
	Group    string    `json:"group,omitempty"`
	Lease    float64   `json:"lease_seconds"`
	Wrong    bool      `json:"wrong"` // a check has failed
	Findings []finding `json:"findings"`
}

type finding struct {
	Check  string           `json:"check"`
	Level  redisstore.Level `json:"level"`
	Found  string           `json:"found"`
	Remedy string           `json:"remedy,omitempty"`
}

func (a *app) newDoctorCommand() *cobra.Command {
	var t target
	var asJSON, acceptLoss bool
	lease := 15 * time.Second
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that the store is one that can be relied on",
		Long: `Looks at the store and prints one line for each thing that leases and records depend on: OK, WARN where a fault of the
server would cost more than it need, FAIL where it does not work or is not safe, SKIP where the user may not look; what was
found; and what to do. With --group it also looks for what others have put under the group's keys, and for records that
cannot be read.

Where records are kept by several independent servers (redlock://) and too many of these have lost theirs, nobody leads, because
what is left may be old. --accept-loss has the records of --group count as they are.

Exit code 1 says that a check has failed; warnings do not change it.`,
		Example: `  singleton doctor --store redis://redis.example.org
  singleton doctor --group billing --lease 5s
  singleton doctor --json | jq -r '.findings[] | select(.level != "ok") | .remedy'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.group != "" {
				if err := t.check(); err != nil {
					return err
				}
			}
			if lease <= 0 {
				return usagef("--lease %v is too short: it must be more than 0", lease)
			}
			if acceptLoss && t.group == "" {
				return usagef("--accept-loss needs --group: name the group whose records are to count as they are")
			}
			e, err := a.examine(cmd.Context(), t, lease, acceptLoss)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(e)
			} else {
				err = e.print(a)
			}
			if err == nil && e.Wrong {
				err = &failure{code: exitFailed}
			}
			return err
		},
	}
	flags := cmd.Flags()
	t.register(flags)
	flags.Lookup("group").Usage = "`NAME` under which the machines compete: look at its keys, too"
	flags.Var(span{&lease}, "lease", "how long leadership outlives a crash, which the server must answer well within")
	toggle{&acceptLoss}.register(flags, "accept-loss", "let the records of --group count as they are, though servers have lost some (redlock://)")
	toggle{&asJSON}.register(flags, "json", "print a JSON object")
	return cmd
}

// examine asks the store. That it does not answer is a finding, too.
func (a *app) examine(ctx context.Context, t target, lease time.Duration, acceptLoss bool) (examination, error) {
	st, err := a.open(a.choose(t.store), 0, slog.New(slog.DiscardHandler)) // what matters is in the error
	if err != nil {
		return examination{}, err
	}
	defer st.Close()
	if acceptLoss {
		nodes, ok := st.Store.(*quorumStore)
		if !ok {
			return examination{}, usagef("--accept-loss is for redlock:// alone: %s has no records that several servers vote on", st.name)
		}
		if err := nodes.Trust(ctx, t.group); err != nil {
			return examination{}, st.explain(err)
		}
	}
	found, err := st.examine(ctx, t.group, lease)
	if err != nil {
		found = append(found, redisstore.Finding{Check: "connection", Level: redisstore.LevelFail, Found: st.explain(err).Error()})
	}
	e := examination{Store: st.name, Group: t.group, Lease: seconds(lease)}
	for _, f := range found {
		f.Found = strings.TrimSuffix(layers.ReplaceAllString(f.Found, ""), ".") // what to do follows, after a colon
		e.Findings = append(e.Findings, finding(f))
		e.Wrong = e.Wrong || f.Level == redisstore.LevelFail
	}
	return e, nil
}

// print prints a line for each finding.
func (e examination) print(a *app) error {
	var t table
	for _, f := range e.Findings {
		text := f.Found
		if f.Remedy != "" {
			text += ": " + f.Remedy
		}
		t.add(strings.ToUpper(string(f.Level)), f.Check, text)
	}
	return t.print(a.stdout)
}

// examine returns what there is to say about a store and, unless it is "", a group in it.
func (o *opened) examine(ctx context.Context, group string, lease time.Duration) ([]redisstore.Finding, error) {
	if o.alone {
		return []redisstore.Finding{{Check: "store", Level: redisstore.LevelWarn, Found: "memory: is shared with no other process " +
			"and forgotten at the end", Remedy: "use it to try a crontab out, and a Redis to run it on several machines"}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit) // a server that is silent is given up much earlier
	defer cancel()
	if o.redis == nil && !o.several() {
		return o.examineOther(ctx, group)
	}
	found, err := o.check(ctx, group, lease)
	if err != nil || group == "" || slices.ContainsFunc(found, func(f redisstore.Finding) bool {
		return f.Level == redisstore.LevelFail && slices.Contains([]string{"data", "permissions", "servers"}, f.Check)
	}) {
		return found, err // records cannot be read, or say no more
	}
	records, err := o.examineRecords(ctx, group)
	return append(found, records...), err
}

// several tells whether the store is on independent servers.
func (o *opened) several() bool {
	_, ok := o.Store.(*quorumStore)
	return ok
}

// check looks at the Redis, or at each of several.
func (o *opened) check(ctx context.Context, group string, lease time.Duration) ([]redisstore.Finding, error) {
	if nodes, ok := o.Store.(*quorumStore); ok {
		return nodes.examine(ctx, group, lease)
	}
	return o.redis.Check(ctx, group, lease)
}

// examineOther asks a store that is no Redis, and reads what has been recorded.
func (o *opened) examineOther(ctx context.Context, group string) ([]redisstore.Finding, error) {
	begin := time.Now()
	if err := o.greet(ctx, cmp.Or(group, "none")); err != nil {
		return nil, err
	}
	found := []redisstore.Finding{{Check: "connection", Level: redisstore.LevelOK,
		Found: fmt.Sprintf("it is connected to and answers within %s", compact(time.Since(begin).Round(time.Millisecond)))}}
	if group == "" {
		return found, nil
	}
	records, err := o.examineRecords(ctx, group)
	return append(found, records...), err
}

// examineRecords reads what the scheduler has recorded.
func (o *opened) examineRecords(ctx context.Context, group string) ([]redisstore.Finding, error) {
	inspector, err := scheduler.NewInspector(o, group, "")
	if err != nil {
		return nil, err
	}
	var found []redisstore.Finding
	fail := func(what, remedy string) {
		what = strings.ReplaceAll(what, "scheduler: ", "")
		found = append(found, redisstore.Finding{Check: "records", Level: redisstore.LevelFail, Found: what, Remedy: remedy})
	}
	st, err := inspector.Status(ctx)
	switch {
	case errors.Is(err, store.ErrPermanent):
		fail(said(err), "") // it says what to do
	case err != nil:
		return nil, err
	}
	const remedy = "run the newest version that has written to the group, or find out who else writes there"
	for _, j := range st.Jobs {
		if j.Problem != "" && j.Spec == "" {
			fail("job "+j.Name+": "+j.Problem, remedy)
		}
	}
	for _, r := range st.Running {
		if r.Detail != "" {
			fail("an open run: "+r.Detail, remedy)
		}
	}
	if found == nil {
		found = []redisstore.Finding{{Check: "records", Level: redisstore.LevelOK,
			Found: fmt.Sprintf("the records of %s and %s can be read",
				many(len(st.Jobs), "job", "jobs"), many(len(st.Running), "open run", "open runs"))}}
	}
	return found, nil
}

// complain logs what is wrong with the store of a group, once it answers.
func (o *opened) complain(ctx context.Context, group string, lease time.Duration, log *slog.Logger) {
	for o.redis != nil || o.several() {
		found, err := o.check(ctx, group, lease)
		if err == nil || errors.Is(err, store.ErrPermanent) {
			for _, f := range found {
				if f.Level == redisstore.LevelWarn || f.Level == redisstore.LevelFail {
					log.Warn("the store is not set up well", "check", f.Check, "found", line(f.Found), "remedy", line(f.Remedy))
				}
			}
			return
		}
		timer := time.NewTimer(askAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
