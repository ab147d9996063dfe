package election

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

// queue calls functions in order and one at a time, without ever making the one who adds them wait. It has a goroutine
// only while there is something to call.
type queue struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting []func()
	busy    bool
	calls   sync.WaitGroup
}

// add appends f.
func (q *queue) add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, f)
	if !q.busy {
		q.busy = true
		q.calls.Go(q.drain)
	}
}

// wait returns when everything that was added has been called.
func (q *queue) wait() { q.calls.Wait() }

func (q *queue) drain() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting, q.busy = nil, false
			q.mu.Unlock()
			return
		}
		f := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.call(f)
	}
}

func (q *queue) call(f func()) {
	returned := false
	defer func() {
		switch r := recover(); {
		case r != nil:
			q.log.Error("callback panicked", "error", r, "stack", string(debug.Stack()))
		case !returned: // it ends this goroutine; another one goes on
			q.log.Error("callback called runtime.Goexit")
			q.calls.Go(q.drain)
		}
	}()
	f()
	returned = true
}
