package cli

import (
	"io"
	"log/slog"

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
