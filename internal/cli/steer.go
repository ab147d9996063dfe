package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
)

// steering are the flags of the commands that ask the leader for something.
type steering struct {
	target
	json   bool
	author string
}

// answerLimit is how long such a command waits for the leader. Where nobody leads it hears of that sooner.
const answerLimit = time.Minute

func (s *steering) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	s.target.register(flags)
	flags.StringVar(&s.author, "author", "", "`NAME` that is recorded with the request (default USER@HOST)")
	toggle{&s.json}.register(flags, "json", "print a JSON object")
}

// who is the default author: this user on this machine, as far as that is known.
func who() string {
	name, host := "", ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return strings.Trim(name+"@"+host, "@")
}

// wish is one thing that is asked of the leader.
type wish struct {
	ask  func(context.Context, *scheduler.Inspector) (*scheduler.Request, error)
	wait bool          // of a trigger: until its run has ended
	most time.Duration // of such a wait; 0 is no limit
	done string        // what has been done, for people
}

// steer asks the leader, waits for the answer, and prints it.
func (a *app) steer(ctx context.Context, s *steering, w wish) error {
	author := s.author
	if author == "" {
		author = who()
	}
	st, inspector, err := a.inspect(ctx, &s.target, author)
	if err != nil {
		return err
	}
	defer st.Close()
	limit := answerLimit
	if w.wait {
		limit = w.most
	}
	waiting := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	r, err := w.ask(waiting, inspector)
	if err != nil {
		err = asked(st, err, s.group)
		if f, ok := errors.AsType[*failure](err); ok && f.code == exitRefused && s.json {
			return cmp.Or(a.printJSON(answerView{Answer: "refused", Reason: f.err.Error()}), err)
		}
		return err
	}
	e, err := r.Accepted(waiting)
	if err == nil && w.wait {
		var ended scheduler.Entry
		if ended, err = r.Wait(waiting); err == nil {
			e = ended
		}
	}
	why := refusal(err)
	expired := errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil && ctx.Err() == nil
	if err == nil || why != "" || expired && e.RunID != "" {
		if problem := a.printAnswer(s, w, r.ID, e, why); problem != nil {
			return problem
		}
	}
	switch {
	case err == nil && w.wait && e.Outcome != scheduler.Succeeded:
		return &failure{code: exitRunFailed}
	case err == nil:
		return nil
	case expired && e.RunID != "":
		return &failure{code: exitWaited, err: fmt.Errorf("waited %s; the run goes on", compact(limit))}
	case errors.Is(err, store.ErrNoLeader) && s.byOnce(ctx, inspector):
		return &failure{code: exitNoLeader, err: fmt.Errorf("nobody leads %s, and singleton once starts its jobs: it takes no requests", s.group)}
	case expired:
		return &failure{code: exitWaited, err: fmt.Errorf("no answer within %s; request %s may still be acted on", compact(limit), r.ID)}
	}
	return asked(st, err, s.group)
}

// byOnce reports whether it is singleton once that starts the group's jobs, as far as the store says so at once.
func (s *steering) byOnce(ctx context.Context, i *scheduler.Inspector) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	st, err := i.Status(ctx)
	return err == nil && leaderless(st)
}

// refusal returns why the leader refuses; empty where it does not.
func refusal(err error) string {
	if !errors.Is(err, scheduler.ErrRefused) {
		return ""
	}
	_, why, _ := strings.Cut(err.Error(), scheduler.ErrRefused.Error()+": ")
	return why
}

// asked gives the errors of requests their exit codes.
func asked(st *opened, err error, group string) error {
	if _, said := errors.AsType[*failure](err); said {
		return err
	}
	switch {
	case errors.Is(err, scheduler.ErrRefused):
		why := refusal(err)
		if strings.HasPrefix(why, "there is no job ") {
			why += "; singleton status --group " + group + " lists those that there are"
		}
		return &failure{code: exitRefused, err: fmt.Errorf("refused: %s", why)}
	case errors.Is(err, store.ErrNoLeader):
		return &failure{code: exitNoLeader, err: fmt.Errorf("nobody leads %s; the request waits half an hour for somebody who does: %s",
			group, hint(group))}
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("not asked: %d messages wait for a leader of %s already, and no more are taken: %s", store.MaxInbox, group, hint(group))
	}
	return st.explain(err)
}

// answerView is an answer as programs read it.
type answerView struct {
	Request string     `json:"request,omitempty"` // absent where there was nothing to ask for
	Answer  string     `json:"answer"`            // "done", "accepted" or "refused"
	Reason  string     `json:"reason,omitempty"`
	Run     *entryView `json:"run,omitempty"` // of a trigger
}

func (a *app) printAnswer(s *steering, w wish, id string, e scheduler.Entry, refused string) error {
	v := answerView{Request: id, Answer: "done", Reason: refused}
	switch {
	case refused != "":
		v.Answer = "refused"
	case e.RunID != "":
		run := viewEntry(e)
		if v.Run = &run; e.Outcome == "" || !w.wait {
			v.Answer = "accepted"
		}
	}
	switch {
	case s.json:
		return a.printJSON(v)
	case refused != "": // the error says it
		return nil
	}
	text := w.done
	switch d, ok := took(e); {
	case v.Answer == "accepted":
		text = fmt.Sprintf("%s is accepted; singleton history --group %s %s shows how it ends", e.RunID, s.group, e.Job)
	case v.Run != nil && ok:
		text = fmt.Sprintf("%s: %s after %s", e.RunID, outcome(e), fine(d))
	case v.Run != nil:
		text = fmt.Sprintf("%s: %s", e.RunID, outcome(e))
	}
	_, problem := fmt.Fprintln(a.stdout, line(text))
	return problem
}

// inspect opens the store and returns an inspector of the group, once the store has answered. The caller closes the store.
func (a *app) inspect(ctx context.Context, t *target, author string) (*opened, *scheduler.Inspector, error) {
	if err := t.check(); err != nil {
		return nil, nil, err
	}
	st, err := a.open(a.choose(t.store), 0, slog.New(slog.DiscardHandler)) // what matters is in the error
	if err != nil {
		return nil, nil, err
	}
	if st.alone {
		return nil, nil, usagef("--store memory: lives inside of one running cron process; nobody else can look into it")
	}
	inspector, err := scheduler.NewInspector(st, t.group, author)
	if err != nil {
		err = usage(err)
	} else if err = st.greet(ctx, t.group); err != nil {
		err = st.explain(err)
	}
	if err != nil {
		_ = st.Close() // the other error says more
		return nil, nil, err
	}
	return st, inspector, nil
}

// jobName returns the job that an argument names.
func jobName(text string) (string, error) {
	if store.CheckName("job", text) != nil {
		return "", usagef("the argument is no job name: use 1 to 128 letters, digits, '.', '_' and '-'")
	}
	return text, nil
}

// instant reads a time of day, of the next 24 hours, or a date with a time; one without an offset is meant in this
// machine's zone.
func (a *app) instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now := a.now().In(a.local)
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, a.local); err == nil {
			at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, a.local)
			if !at.After(now) {
				at = at.AddDate(0, 0, 1)
			}
			return at, nil
		}
	}
	at, err := parseTime(text, a.local)
	if err != nil {
		return at, usagef("--%s: %.40q is no time such as 18:00, 2026-12-24T18:00 or 2026-12-24T18:00:00Z", flag, text)
	}
	return at, nil
}
