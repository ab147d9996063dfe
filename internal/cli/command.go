package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
)

// errNow is why a command is killed at a second signal.
var errNow = fmt.Errorf("second signal: %w", scheduler.ErrStopping)

// commands runs the commands of a crontab, each in a process group of its own.
type commands struct {
	group        string
	lease, grace time.Duration
	log          *slog.Logger
	now          context.Context // when it ends, all commands are killed at once
	guardian     *procgroup.Guardian
	running      sync.WaitGroup
	count        atomic.Int64 // of running
}

// do returns the work of a job: one run of its command.
func (c *commands) do(job crontab.Job) scheduler.Func {
	return func(ctx context.Context, run scheduler.Run) error {
		c.running.Add(1)
		c.count.Add(1)
		defer c.running.Done()
		defer c.count.Add(-1)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.now, func() { cancel(errNow) })()

		log := c.log.With("run", run.ID(), "job", run.Job, "tick", run.Tick, "attempt", run.Attempt)
		sessionLost := false // written and read by procgroup.Run's goroutine
		res, err := procgroup.Run(ctx, procgroup.Spec{
			Argv:     []string{job.Shell, "-c", job.Command},
			Env:      c.environment(job, run),
			Guardian: c.guardian,
			Output: func(stream string, text []byte) {
				log.Info("output", "stream", stream, "line", procgroup.Escape(text))
			},
			KillAfter: func(cause error) time.Duration {
				var after time.Duration
				after, sessionLost = c.killAfter(cause)
				log.Warn("command is told to end", "kill_after", after, "reason", reason(cause, job.Timeout))
				return after
			},
			// The session's end ends Valid a guard before anybody else may take the run over. Who has been told to end for
			// that reason has the guard to do it; who has been told before, for another, has had time enough.
			Alive: func() bool { return c.now.Err() == nil && (sessionLost || run.Valid()) },
		})
		if err != nil {
			return err
		}
		if res.Leftover {
			log.Error("a process of the command's group cannot be ended")
		}
		if res.ExitCode == 0 {
			return nil
		}
		if errors.Is(res.Cause, errNow) {
			return fmt.Errorf("%s (%w)", detail(res, job.Timeout), errNow)
		}
		return errors.New(detail(res, job.Timeout))
	}
}

// killAfter returns how long after SIGTERM the SIGKILL follows, and whether the replica's session is the reason.
func (c *commands) killAfter(cause error) (after time.Duration, sessionLost bool) {
	switch {
	case errors.Is(cause, errNow):
		return 0, false
	case errors.Is(cause, scheduler.ErrStopping): // four fifths of the grace have passed
		return c.grace/5 - c.margin(), false
	case errors.Is(cause, context.DeadlineExceeded), // the job's timeout
		errors.Is(cause, scheduler.ErrCancelled), errors.Is(cause, scheduler.ErrReplaced):
		return min(c.grace/5, 10*time.Second), false
	default:
		return lifetime.Guard(c.lease) / 5 * 4, true // the rest is for dying: at its end another replica may lead
	}
}

// reason says why a command is told to end.
func reason(cause error, timeout time.Duration) string {
	switch {
	case errors.Is(cause, errNow):
		return "second signal"
	case errors.Is(cause, scheduler.ErrStopping):
		return "the replica stops, and the grace is nearly over"
	case errors.Is(cause, context.DeadlineExceeded):
		return "timed out after " + fine(timeout)
	}
	return cause.Error()
}

// margin is how much of the grace is left after a SIGKILL, to see the command end and to tell the store.
func (c *commands) margin() time.Duration { return min(c.grace/10, 500*time.Millisecond) }

// wait waits until no command runs any more; false when they do not end in time.
func (c *commands) wait(limit time.Duration) bool {
	done := make(chan struct{})
	go func() { // ends with the last command; the kernel may hold on to one
		c.running.Wait()
		close(done)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// inherited returns the environment that commands get from this process.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "SINGLETON_ID=") // two replicas would call themselves the same
	})
}

// environment returns that of this process, the crontab's, and what tells the command which run it is.
func (c *commands) environment(job crontab.Job, run scheduler.Run) []string {
	return append(append(inherited(), job.Env...), runVariables(c.group, run)...)
}

// runVariables are what tells a command which run it is.
func runVariables(group string, run scheduler.Run) []string {
	return []string{
		"SINGLETON_GROUP=" + group,
		"SINGLETON_REPLICA=" + run.Replica,
		"SINGLETON_JOB=" + run.Job,
		"SINGLETON_TICK=" + run.Tick.UTC().Format(time.RFC3339),
		"SINGLETON_TICK_UNIX=" + strconv.FormatInt(run.Tick.Unix(), 10),
		"SINGLETON_RUN_ID=" + run.ID(),
		"SINGLETON_ATTEMPT=" + strconv.Itoa(run.Attempt),
		"SINGLETON_REASON=" + string(run.Reason),
		"SINGLETON_TOKEN=" + strconv.FormatUint(run.Token, 10),
	}
}

// maxDetail is how many bytes a failed run leaves in the history, a little less than the scheduler keeps.
const maxDetail = 4000

// detail says how a command has ended, and the last lines that it wrote.
func detail(res procgroup.Result, timeout time.Duration) string {
	ending := res.String()
	if errors.Is(res.Cause, context.DeadlineExceeded) {
		ending = reason(res.Cause, timeout) + "; " + ending
	}
	var last []string // the last one first
	left := maxDetail - len(ending)
	for _, l := range slices.Backward(bytes.Split(res.Tail, []byte("\n"))) {
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		text := procgroup.Escape(l)
		if left -= len(text) + 1; left < 0 {
			if len(last) == 0 {
				last = append(last, clipFront(text, len(text)+left))
			}
			break
		}
		last = append(last, text)
	}
	slices.Reverse(last)
	return strings.Join(append([]string{ending}, last...), "\n")
}

// clipFront cuts s to its last n bytes, or a little less, with a mark.
func clipFront(s string, n int) string {
	const mark = "…"
	at := len(s) - n + len(mark)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return mark + s[at:]
}
