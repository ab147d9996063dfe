// Package asynclog keeps a log that nobody reads from stopping whoever writes it.
//
// A log goes to a pipe, a terminal or a driver, and each of them can stand still: then the next write blocks for ever, and
// with it whatever has something to say. A process that holds a lease must not depend on that. Records are formatted at
// once and put into a bounded queue; a goroutine writes them out. When the queue is full, records are dropped, and
// counted.
package asynclog

import (
	"io"
	"sync"
	"time"
)

// queued is how many bytes wait at most: some ten thousand lines.
const queued = 4 << 20

// Writer is an io.Writer that never blocks. Its methods are safe for concurrent use.
type Writer struct {
	out  io.Writer
	lost func(records int)

	mu      sync.Mutex
	lines   [][]byte
	bytes   int
	dropped int
	closed  bool
	more    chan struct{} // lines may have come, or closed
	done    chan struct{} // all is written
}

// New returns a writer to out; Close ends its goroutine. lost is called on that goroutine when records had to be dropped, to
// say so in out.
func New(out io.Writer, lost func(records int)) *Writer {
	w := &Writer{out: out, lost: lost, more: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write queues a line, or drops it where the queue is full. It returns no error: there is nobody to tell.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.closed || w.bytes+len(line) > queued {
		w.dropped++
	} else {
		w.lines = append(w.lines, append([]byte(nil), line...))
		w.bytes += len(line)
	}
	w.mu.Unlock()
	w.ring()
	return len(line), nil
}

func (w *Writer) ring() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		lines, dropped, closed := w.lines, w.dropped, w.closed
		w.lines, w.dropped = nil, 0
		w.mu.Unlock()
		for _, line := range lines {
			_, _ = w.out.Write(line)
			w.mu.Lock()
			w.bytes -= len(line)
			w.mu.Unlock()
		}
		if dropped > 0 {
			w.lost(dropped)
		}
		if len(lines) == 0 && closed {
			return
		}
		if len(lines) == 0 {
			<-w.more
		}
	}
}

// Close waits until everything is written, but no longer than limit, and reports whether it is. What is written later is
// dropped.
func (w *Writer) Close(limit time.Duration) bool {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.ring()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	}
}
