package etcdstore

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// clientLog brings what the etcd client says of its connections into log, at level debug whatever it says itself: what a
// person has to know is in the errors.
func clientLog(log *slog.Logger) *zap.Logger { return zap.New(core{log}) }

// core implements zapcore.Core.
type core struct{ log *slog.Logger }

func (c core) Enabled(zapcore.Level) bool {
	return c.log.Enabled(context.Background(), slog.LevelDebug)
}

func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.log.With(attributes(fields)...)}
}

func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Debug("etcd client", append(attributes(fields), slog.String("line", e.Message))...)
	return nil
}

func (core) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	var all []any
	for _, f := range fields {
		all = append(all, slog.Any(f.Key, values.Fields[f.Key]))
	}
	return all
}
