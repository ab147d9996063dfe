package netproxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// Flow is one direction of a proxy. It starts out passing everything on at once.
type Flow struct {
	done <-chan struct{} // the proxy has been closed

	mu      sync.Mutex
	mode    mode
	delay   time.Duration
	left    int // bytes until the cut
	held    int // pieces that wait
	changed chan struct{}
	edit    func(piece []byte)
}

type mode int

const (
	pass mode = iota
	drop
	hold
	reset
	cut
)

func newFlow(p *Proxy) *Flow { return &Flow{done: p.done, changed: make(chan struct{})} }

// Pass forwards everything at once, first what has been held, in order, also when its client has gone meanwhile.
func (f *Flow) Pass() { f.set(pass, 0, 0) }

// Drop loses everything, silently. A connection that has lost bytes never carries any again in this direction, so that
// no torn message is seen later.
func (f *Flow) Drop() { f.set(drop, 0, 0) }

// Hold keeps everything until another mode is set, which then applies to it.
func (f *Flow) Hold() { f.set(hold, 0, 0) }

// Delay forwards each piece d after it has come.
func (f *Flow) Delay(d time.Duration) { f.set(pass, d, 0) }

// Reset resets each connection that something comes over.
func (f *Flow) Reset() { f.set(reset, 0, 0) }

// CutAfter forwards n more bytes, all connections together, resets the connection that the next byte comes over, and
// then passes everything on: a reply cut in the middle.
func (f *Flow) CutAfter(n int) { f.set(cut, 0, n) }

// Edit has f change each piece in place before it is forwarded; nil changes nothing.
func (f *Flow) Edit(edit func(piece []byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edit = edit
}

// AwaitHeld returns when at least n pieces are held, or with the error of ctx.
func (f *Flow) AwaitHeld(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		held, changed := f.held, f.changed
		f.mu.Unlock()
		if held >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *Flow) set(m mode, delay time.Duration, left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode, f.delay, f.left = m, delay, left
	f.broadcast()
}

func (f *Flow) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// pump forwards until its source ends. The end of one direction is not the end of the other: what is held for the server
// outlives the client that has sent it.
func (f *Flow) pump(l *link, from, to *net.TCPConn) {
	buffer := make([]byte, 32<<10)
	carrying := true
	for {
		n, err := from.Read(buffer)
		if n > 0 && carrying {
			carrying = f.carry(l, to, buffer[:n])
		}
		if err != nil {
			_ = to.CloseWrite()
			return
		}
	}
}

// carry does to piece what the mode says; false means that the connection carries nothing any more in this direction.
func (f *Flow) carry(l *link, to *net.TCPConn, piece []byte) bool {
	f.mu.Lock()
	edit := f.edit
	f.mu.Unlock()
	if edit != nil {
		edit(piece)
	}
	m, delay, n := f.next(len(piece))
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-f.done:
			return false
		}
	}
	switch m {
	case pass:
		_, err := to.Write(piece)
		return err == nil
	case cut:
		_, _ = to.Write(piece[:n])
		l.reset()
	case reset:
		l.reset()
	}
	return false
}

// next returns what to do with a piece of size bytes, once it is not to be held any longer, and how much of it to forward
// before a cut.
func (f *Flow) next(size int) (m mode, delay time.Duration, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode == hold {
		f.held++
		f.broadcast()
		defer func() { f.held-- }()
	}
	for f.mode == hold {
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
			f.mu.Lock()
		case <-f.done:
			f.mu.Lock()
			return drop, 0, 0
		}
	}
	if f.mode != cut {
		return f.mode, f.delay, 0
	}
	if size <= f.left {
		f.left -= size
		return pass, 0, 0
	}
	f.mode = pass
	return cut, 0, f.left
}
