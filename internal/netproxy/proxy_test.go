package netproxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/netproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a server that answers each byte with the same byte and tells what has come.
type recorder struct {
	net.Listener
	came chan byte
}

func record(t *testing.T) *recorder {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Listener: l, came: make(chan byte, 100)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1)
			for {
				if _, err := c.Read(b); err != nil {
					break
				}
				r.came <- b[0]
				if _, err := c.Write(b); err != nil {
					break
				}
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return r
}

func (r *recorder) want(t *testing.T, text string) {
	t.Helper()
	for _, want := range []byte(text) {
		select {
		case got := <-r.came:
			if got != want {
				t.Fatalf("server got %q, want %q", got, want)
			}
		case <-t.Context().Done():
			t.Fatal("test ended")
		}
	}
}

func dial(t *testing.T, p *netproxy.Proxy) net.Conn {
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if n, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("client got %q, %v; want %q", b[:n], err, want)
	}
}

func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("client got %d bytes, %v", n, err)
	}
}

func TestProxyPassesAndLoses(t *testing.T) {
	r := record(t)
	p := netproxy.Start(t, r.Addr().String())
	c := dial(t, p)
	send(t, c, "a")
	receive(t, c, "a")
	r.want(t, "a")

	p.Replies.Drop()
	send(t, c, "b")
	r.want(t, "b")
	silent(t, c)
	c.Close()

	p.Replies.Pass()
	p.Requests.Drop()
	lost := dial(t, p)
	send(t, lost, "x")
	silent(t, lost)
	lost.Close()

	p.Requests.Pass()
	next := dial(t, p)
	send(t, next, "c")
	receive(t, next, "c")
	r.want(t, "c") // and no x before it
	if p.Accepted() != 3 {
		t.Errorf("%d connections were accepted, want 3", p.Accepted())
	}
}

func TestProxyDeliversHeldBytesAfterTheirClientHasGone(t *testing.T) {
	r := record(t)
	p := netproxy.Start(t, r.Addr().String())
	c := dial(t, p)
	p.Requests.Hold()
	send(t, c, "held")
	if err := p.Requests.AwaitHeld(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.Close()
	p.Requests.Pass()
	r.want(t, "held")
}

func TestProxyCutsAReplyInTheMiddle(t *testing.T) {
	r := record(t)
	p := netproxy.Start(t, r.Addr().String())
	c := dial(t, p)
	p.Replies.CutAfter(2)
	send(t, c, "abcd")
	if got, err := io.ReadAll(c); err == nil || len(got) > 2 {
		t.Errorf("client got %q, %v; want at most 2 bytes and a reset", got, err)
	}
}

func TestProxyResetsAndDelays(t *testing.T) {
	r := record(t)
	p := netproxy.Start(t, r.Addr().String())
	c := dial(t, p)
	p.Requests.Reset()
	send(t, c, "a")
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("got %v, want a reset", err)
	}
	p.Requests.Delay(20 * time.Millisecond)
	slow := dial(t, p)
	begin := time.Now()
	send(t, slow, "b")
	receive(t, slow, "b")
	if took := time.Since(begin); took < 20*time.Millisecond {
		t.Errorf("a delayed request was answered after %v", took)
	}
	p.Cut()
	if _, err := slow.Read(make([]byte, 1)); err == nil {
		t.Error("a cut connection is still open")
	}
}

func TestProxyEditsWhatItForwards(t *testing.T) {
	r := record(t)
	p := netproxy.Start(t, r.Addr().String())
	p.Requests.Edit(func(piece []byte) { piece[0]++ })
	c := dial(t, p)
	send(t, c, "a")
	receive(t, c, "b")
	r.want(t, "b")
}
