// Package testlog keeps what is logged in a test, by however many goroutines.
package testlog

import (
	"log/slog"
	"strings"
	"sync"
)

// Log is an io.Writer that keeps what is written. The zero value is empty. Its methods are safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger of what is at least a level; each line is text.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}
