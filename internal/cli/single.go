package cli

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
)

// single is one running `singleton once`.
type single struct {
	*onceFlags
	argv           []string
	stdout, stderr *os.File // nil is the log
	guardian       *procgroup.Guardian
	log            *slog.Logger
	now            context.Context           // when it ends, the command is killed at once
	signal         atomic.Pointer[os.Signal] // the first

	// Set by do, which Once.Run waits for:
	ran    bool
	result error // with which this program ends
}

// await hands signals on until ctx ends: the first ends the command, the second kills it.
func (s *single) await(ctx context.Context, signals <-chan os.Signal, stop context.CancelCauseFunc, kill context.CancelFunc) {
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			switch {
			case since.IsZero():
				since = time.Now()
				s.signal.Store(&sig)
				stop(errStopped)
			case time.Since(since) > sameSignal:
				kill()
			}
		}
	}
}

// do runs the command.
func (s *single) do(ctx context.Context, run scheduler.Run) error {
	log := s.log.With("run", run.ID(), "token", run.Token)
	res, err := procgroup.Run(ctx, procgroup.Spec{
		Argv:      s.argv,
		Env:       append(inherited(), runVariables(s.group, run)...),
		Stdout:    s.stdout,
		Stderr:    s.stderr,
		Output:    func(stream string, text []byte) { log.Info("output", "stream", stream, "line", procgroup.Escape(text)) },
		Guardian:  s.guardian,
		KillAfter: func(error) time.Duration { return s.grace },
		Alive:     func() bool { return s.now.Err() == nil },
	})
	s.ran = err == nil || ctx.Err() == nil
	switch {
	case err != nil:
		s.result = cannotStart(err)
		return err
	case res.Leftover:
		log.Error("a process of the command's group cannot be ended")
	}
	log.Info("command has ended", "status", res.String())
	if res.ExitCode != exitDone {
		s.result = &failure{code: res.ExitCode}
	}
	return res.Err()
}
