//go:build unix

package zktest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/process"
)

// Ensemble is several servers that decide by majority.
type Ensemble struct {
	Servers []*Server

	ports []*process.Port     // of the members among themselves
	links [][]*netproxy.Proxy // from one member to another, for what followers say and for elections
}

// NewEnsemble starts n servers and waits until all of them serve; Close ends them.
func NewEnsemble(n int) (*Ensemble, error) {
	if err := installed(); err != nil {
		return nil, err
	}
	e := &Ensemble{links: make([][]*netproxy.Proxy, n)}
	if err := e.start(n); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Ensemble) start(n int) error {
	type ports struct{ quorum, election int }
	all := make([]ports, n)
	for i := range all {
		quorum, election := newPort(), newPort()
		e.ports = append(e.ports, quorum, election)
		all[i] = ports{quorum.Number, election.Number}
	}
	elections := map[[2]int]*netproxy.Proxy{} // from one member to another
	for i := range n {
		var member strings.Builder
		for j := range n {
			to := all[j]
			if i != j {
				for _, port := range []*int{&to.quorum, &to.election} {
					p, err := netproxy.New(fmt.Sprintf("127.0.0.1:%d", *port))
					if err != nil {
						return err
					}
					e.links[i] = append(e.links[i], p)
					e.links[j] = append(e.links[j], p)
					elections[[2]int{i, j}] = p // the second
					if _, err := fmt.Sscanf(p.Addr(), "127.0.0.1:%d", port); err != nil {
						return fmt.Errorf("zktest: %s: %w", p.Addr(), err)
					}
				}
			}
			fmt.Fprintf(&member, "server.%d=127.0.0.1:%d:%d\n", j+1, to.quorum, to.election)
		}
		s, err := newServer(i+1, newPort(), member.String())
		if err != nil {
			return err
		}
		e.Servers = append(e.Servers, s)
	}
	// A member that is called by one with a smaller number calls back, at the address that the caller says is its own: it
	// is told that of the proxy.
	for way, p := range elections {
		own := fmt.Appendf(nil, "127.0.0.1:%d", all[way[0]].election)
		back := []byte(elections[[2]int{way[1], way[0]}].Addr())
		p.Requests.Edit(func(piece []byte) {
			if at := bytes.Index(piece, own); at >= 0 {
				copy(piece[at:], back) // all ports have five digits
			}
		})
	}
	for _, s := range e.Servers {
		if err := s.Launch(); err != nil {
			return err
		}
	}
	for _, s := range e.Servers {
		if err := s.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Addrs returns the hosts and ports for clients.
func (e *Ensemble) Addrs() []string {
	var addrs []string
	for _, s := range e.Servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Leader returns the member that leads the others, waiting for one.
func (e *Ensemble) Leader() *Server {
	for {
		for _, s := range e.Servers {
			if s.Mode() == "leader" {
				return s
			}
		}
		time.Sleep(20 * time.Millisecond) // an election has no event to wait for
	}
}

// stuckAfter is how long an ensemble that serves may take for a write.
const stuckAfter = 10 * time.Second

// Heal waits until all members serve and a write goes through. ZooKeeper 3.8.0 sometimes comes out of a pause of a majority with
// a proposal that nobody acknowledges, and as it commits in order, all members serve and nothing is written any more (four
// times in 95 pauses). Then Heal does what an operator has to: it restarts the leader, and says so.
func (e *Ensemble) Heal() (restarted bool, err error) {
	for _, s := range e.Servers {
		if err := s.Wait(); err != nil {
			return false, err
		}
	}
	if e.writes() {
		return false, nil
	}
	if err := e.Leader().Restart(); err != nil {
		return true, err
	}
	if !e.writes() {
		return true, errors.New("zktest: the ensemble writes nothing, also after its leader was restarted")
	}
	return true, nil
}

// writes tells whether a client gets a session: the first write of each client.
func (e *Ensemble) writes() bool {
	conn, events, err := zk.Connect(e.Addrs(), stuckAfter, zk.WithLogInfo(false), zk.WithLogger(silence{}))
	if err != nil {
		return false
	}
	defer conn.Close()
	over := time.After(stuckAfter)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return true
			}
		case <-over:
			return false
		}
	}
}

// silence is a log that nobody reads.
type silence struct{}

// Printf implements zk.Logger.
func (silence) Printf(string, ...any) {}

// Cut cuts s off from the other members, silently, until it is called with false. Its clients still reach it.
func (e *Ensemble) Cut(s *Server, on bool) {
	for _, p := range e.links[slices.Index(e.Servers, s)] {
		if on {
			p.Requests.Drop()
			p.Replies.Drop()
			continue
		}
		p.Requests.Pass()
		p.Replies.Pass()
		p.Cut() // what has lost bytes carries nothing any more
	}
}

// Close ends all servers.
func (e *Ensemble) Close() error {
	var errs []error
	for _, s := range e.Servers {
		errs = append(errs, s.Close())
	}
	for _, links := range e.links {
		for _, p := range links {
			p.Close()
		}
	}
	for _, p := range e.ports {
		errs = append(errs, p.Release())
	}
	return errors.Join(errs...)
}
