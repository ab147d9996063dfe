package cli

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/internal/asynclog"
	"github.com/spf13/pflag"
)

// logging is how a command logs.
type logging struct{ format, level string }

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
}

func (l *logging) register(flags *pflag.FlagSet) {
	l.format, l.level = "text", "info"
	flags.Var(choice{&l.format, []string{"text", "json"}}, "log-format", "how the log is written, to standard error")
	flags.Var(choice{&l.level, []string{"debug", "info", "warn", "error"}}, "log-level", "least important level that is logged")
}

// logger returns the logger. Both formats escape control characters in whatever they are given. Durations are numbers of
// seconds in JSON, and their keys say so.
func (l *logging) logger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: levels[l.level]}
	if l.format == "json" {
		opts.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				return slog.Float64(a.Key+"_seconds", seconds(a.Value.Duration()))
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// logLimit is how long the end of a process waits for whoever reads its log.
const logLimit = time.Second

// unblocked returns a logger that never waits for whoever reads w: a full pipe or a stopped terminal must not stop what
// ends commands before a lease does. Nor does the process end when that reader is gone. flush writes what is left, as far
// as somebody reads it.
func (l *logging) unblocked(w io.Writer) (log *slog.Logger, flush func()) {
	// SIGPIPE is taken and not ignored, because commands would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	out := asynclog.New(w, func(records int) {
		l.logger(w).Error("records of this log were dropped: nobody read it", "records", records)
	})
	return l.logger(out), func() {
		out.Close(logLimit)
		signal.Stop(pipes)
	}
}
