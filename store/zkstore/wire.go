package zkstore

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// wire is a connection to a server that breaks when the server leaves what it was sent without an answer. The client
// would wait for two thirds of the session, and in a handshake for several sessions: a server that hangs would cost a
// lease although others live.
type wire struct {
	net.Conn
	patience time.Duration
	idle     time.Duration
	shaken   func(session int64, timeout time.Duration) // called with what the handshake grants

	mu    sync.Mutex
	asked time.Time // when the oldest bytes were sent that nothing has come after; zero for none
	reply []byte    // the beginning of what has come
}

// handshake is how many bytes of a server's first packet tell the session: length, version, timeout, ID.
const handshake = 20

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	if w.asked.IsZero() {
		w.asked = time.Now()
		_ = w.Conn.SetReadDeadline(w.asked.Add(w.patience)) // fails when it is closed, as the write will
	}
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	w.mu.Lock()
	w.asked = time.Time{}
	_ = w.Conn.SetReadDeadline(time.Now().Add(w.idle))
	told := false
	if len(w.reply) < handshake {
		w.reply = append(w.reply, b[:n]...)
		told = len(w.reply) >= handshake
	}
	reply := w.reply
	w.mu.Unlock()
	if told {
		ms := int32(binary.BigEndian.Uint32(reply[8:]))
		w.shaken(int64(binary.BigEndian.Uint64(reply[12:])), time.Duration(ms)*time.Millisecond)
	}
	return n, err
}

// SetReadDeadline implements net.Conn: Read and Write know better.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (w *wire) SetWriteDeadline(t time.Time) error {
	if most := time.Now().Add(w.patience); t.After(most) {
		t = most
	}
	return w.Conn.SetWriteDeadline(t)
}
