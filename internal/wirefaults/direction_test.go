package wirefaults

import (
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// direction carries the bytes that one end of a connection sends to the other.
type direction struct {
	conn     *conn
	name     string // by which fates call what it carries
	from, to net.Conn
	draw     func(data []byte) fate // of what was sent
	arrives  func(fate)             // is called before something is handed over, or lost
	lost     atomic.Bool            // all vanishes
	sent     chan parcel
}

// parcel is some bytes on their way.
type parcel struct {
	data []byte
	due  time.Time
	fate fate
}

func newDirection(c *conn, name string, from, to net.Conn) *direction {
	return &direction{conn: c, name: name, from: from, to: to, sent: make(chan parcel, 256)}
}

// take takes what is sent.
func (d *direction) take() {
	defer close(d.sent)
	buf := make([]byte, 16<<10)
	for {
		n, err := d.from.Read(buf)
		if err != nil {
			return
		}
		p := parcel{data: slices.Clone(buf[:n])}
		p.fate = d.draw(p.data)
		p.due = time.Now().Add(p.fate.late[d.name])
		d.sent <- p
	}
}

// hand hands over what was sent.
func (d *direction) hand() {
	defer func() { _ = d.to.Close() }()
	for p := range d.sent {
		if p.fate.late[d.name] > 0 {
			d.conn.link.wait(p.due)
		}
		torn := false
		switch p.fate.kind {
		case d.name + " reset":
			d.conn.reset()
		case d.name + " torn":
			torn = true
			p.data = p.data[:len(p.data)/2]
		case "half-open", "mute":
			d.conn.swallow(p.fate.kind == "half-open")
		}
		d.arrives(p.fate)
		if d.lost.Load() {
			continue
		}
		_, _ = d.to.Write(p.data) // fails when the connection has been reset
		if torn {
			d.conn.reset()
		}
	}
}
