//go:build unix

package process

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// Port is a TCP port of 127.0.0.1 that no other server of these tests takes, also while the one that it belongs to is down:
// whoever wants one has to get the UDP port of the same number, too, which nobody uses.
type Port struct {
	Number int

	held net.PacketConn
}

// NewPort returns a port from first on and before end that nobody listens on; Release gives it up. The kernel hands out
// ports from 32768 on: those of servers that restart lie below.
func NewPort(first, end int) *Port {
	for {
		p := &Port{Number: first + rand.IntN(end-first)}
		held, err := net.ListenPacket("udp", p.Addr())
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", p.Addr()); err == nil {
			_ = l.Close()
			p.held = held
			return p
		}
		_ = held.Close()
	}
}

// Addr returns host and port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// String returns the number.
func (p *Port) String() string { return strconv.Itoa(p.Number) }

// Release lets others have the port.
func (p *Port) Release() error { return p.held.Close() }
