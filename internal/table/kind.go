//go:build unix

package table

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Kind is a sort of store, and how it is run.
type Kind struct {
	Name  string // what -table.on calls it
	Title string // of its rows

	// Start starts servers that end with the test.
	Start func(t testing.TB) Servers

	// Open opens a store on servers of these addresses that are reached by way of a link, which may be nil; leases last
	// for lease. It is called in each replica's process. Closing the store closes everything that was opened for it.
	Open func(addrs []string, link *Link, lease time.Duration) (store.Store, error)

	// Faults are those of the servers. Each kind has those of replicas besides.
	Faults []Fault
}

// named tells whether a list of names, or of first words of names, is about the kind.
func (k Kind) named(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(n string) bool {
		return n == "all" || n == k.Name || strings.HasPrefix(k.Name, n+"-")
	})
}

// Servers are what the groups of a row live on.
type Servers struct {
	Addrs []string // for Open
	It    any      // for On
}

// Fault is something that goes wrong, and is all right again when Strike returns: all servers run, and all replicas, but
// they may have to find together again.
type Fault struct {
	Name   string
	Strike func(*Scene)

	// Forgets says that the store may forget what it has acknowledged, or that one part of it does not know what another
	// has acknowledged: then no promise holds, and what happens is only reported.
	Forgets bool
}

// On returns a fault of servers of type S.
func On[S any](name string, strike func(*Scene, S)) Fault {
	return Fault{Name: name, Strike: func(s *Scene) { strike(s, s.servers.It.(S)) }}
}

// ThatForgets returns the fault as one with Forgets.
func (f Fault) ThatForgets() Fault {
	f.Forgets = true
	return f
}

// replicaFaults are those that every store bears.
var replicaFaults = []Fault{
	{Name: "the leader is killed", Strike: func(s *Scene) {
		r, struck := s.Leader(), now()
		r.kill()
		s.awaitTerm(struck)
		s.launch(r.name)
	}},
	{Name: "the leader is told to stop", Strike: func(s *Scene) {
		r := s.Leader()
		r.stop(s)
		s.launch(r.name)
	}},
	{Name: "the leader is frozen past its lease", Strike: func(s *Scene) {
		r := s.Leader()
		r.process.Stop()
		s.Rest(Lease * 3 / 2)
		r.process.Cont()
	}},
	{Name: "the leader is cut off", Strike: func(s *Scene) {
		r := s.Leader()
		r.Reach(nothing)
		s.Rest(Lease * 3 / 2)
		r.Reach(everything)
	}},
}
