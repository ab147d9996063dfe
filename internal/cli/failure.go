package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2 // or a bad file
	exitNoLeader  = 3 // status, and what asks the leader for something
	exitAttention = 4 // status --check
	exitRefused   = 5 // by the leader
	exitRunFailed = 6 // trigger --wait

	exitWaited = 124 // for an answer, and of run --wait-timeout

	// Of run and once, which else have the exit code of their command:
	exitLost          = 75  // run --exit-on-loss
	exitOurs          = 125 // whatever is 1 or 2 of other commands
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
)

// wraps are the commands whose exit code is that of another program.
var wraps = map[string]bool{"run": true, "once": true}

// failure is an error with an exit code of its own.
type failure struct {
	code int
	err  error // nil when all has been said already
	help bool  // the command's help tells how to do it right
}

// Error returns the text of what went wrong.
func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

// Unwrap returns what went wrong.
func (f *failure) Unwrap() error { return f.err }

// usage marks err as a mistake of the command line.
func usage(err error) error { return &failure{code: exitUsage, err: err, help: true} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// cannotStart gives the error of a command that was not started its exit code.
func cannotStart(err error) error {
	start, ok := errors.AsType[*procgroup.StartError](err)
	if !ok {
		return err
	}
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	return &failure{code: code, err: fmt.Errorf("cannot start %q: %s", start.Program, start.Reason)}
}

// report prints err in one line and returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitDone
	}
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok:
		f = &failure{code: exitFailed, err: err}
	case f.err == nil:
		return f.code
	}
	if wraps[cmd.Name()] && (f.code == exitFailed || f.code == exitUsage) {
		f = &failure{code: exitOurs, err: f.err, help: f.help}
	}
	if bad, ok := errors.AsType[*crontab.Errors](err); ok { // many lines, made for a terminal
		fmt.Fprintln(a.stderr, bad.Error())
		return f.code
	}
	name := ""
	if cmd.HasParent() {
		name = cmd.Name() + ": "
	}
	hint := ""
	if f.help {
		hint = fmt.Sprintf("; see %s --help", cmd.CommandPath())
	}
	// That a fault is permanent is for programs; the text before that says what to do.
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), " ("+store.ErrPermanent.Error()+")", "")
	fmt.Fprintf(a.stderr, "singleton: %s%s%s\n", name, line(text), hint)
	return f.code
}

// line puts a text that may come from anywhere into one line without control characters.
func line(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ")
	return strings.ReplaceAll(procgroup.Escape([]byte(text)), "\t", " ")
}
