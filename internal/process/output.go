//go:build unix

package process

import (
	"io"
	"sync"
)

// kept is how much is kept of what a process says.
const kept = 64 << 10

// output keeps the last of what a process says, and hands all of it on.
type output struct {
	copy io.Writer // nil is nobody

	mu   sync.Mutex
	said []byte
}

// Write takes what the process says.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, b...)
	if more := len(o.said) - kept; more > 0 {
		o.said = append(o.said[:0], o.said[more:]...)
	}
	if o.copy == nil {
		return len(b), nil
	}
	return o.copy.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.said)
}
