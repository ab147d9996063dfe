package redlock

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// term is what a leader's store knows of the ledger while it leads. What stands below gate belongs to who has it.
type term struct {
	lease store.Lease
	info  []byte

	mu    sync.Mutex
	until time.Time // the lease's deadline; zero is not known
	ended bool      // it was called lost: what a late repair puts on nodes is nobody's
	asked time.Time // when it was asked for last

	gate     chan struct{} // full while somebody has it
	chosen   *write        // what was once found and is to be written back; never anything else under this token
	restored bool          // at is on a majority, under this lease
	at       head          // what the last commit that counts has made of the ledger
	open     *write        // the commit after that, when its outcome is not known

	books   sync.Mutex              // of the following: no I/O
	runs    map[*link]string        // whose node has the whole state, as far as is known, and in which run of its server
	copying map[*link]chan struct{} // to whose node the state is on its way; closed when it has come, or has not
	outran  map[*link]bool          // whose node has taken a higher token, of a campaign that came to nothing
	redo    []write                 // what was committed since the oldest of these copies has begun
}

func newTerm(l store.Lease, info []byte) *term {
	return &term{
		lease: l, info: bytes.Clone(info), gate: make(chan struct{}, 1),
		runs: map[*link]string{}, copying: map[*link]chan struct{}{}, outran: map[*link]bool{},
	}
}

// lead begins the term of a lease that was asked for at began, or goes on with it; false when that one was called lost.
func (s *Store) lead(l store.Lease, info []byte, began time.Time) bool {
	s.mu.Lock()
	t := s.terms[l.Group]
	if t == nil || !t.is(l) {
		t = newTerm(l, info)
		s.terms[l.Group] = t
	}
	s.mu.Unlock()
	t.last(began, l.TTL)
	return !t.lost()
}

// known returns the term of a lease, nil where it was granted to another store.
func (s *Store) known(l store.Lease) *term {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terms[l.Group]; t != nil && t.is(l) {
		return t
	}
	return nil
}

// term returns the term of a lease, a new one where it was granted to another store.
func (s *Store) term(l store.Lease) *term {
	if t := s.known(l); t != nil {
		return t
	}
	return newTerm(l, nil)
}

func (t *term) is(l store.Lease) bool {
	return t.lease.Replica == l.Replica && t.lease.Nonce == l.Nonce && t.lease.Token == l.Token
}

func (t *term) last(began time.Time, ttl time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until, t.asked = began.Add(ttl-drift(ttl)), began
}

// asks notes that the lease is being renewed.
func (t *term) asks(began time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = began
}

// renewed tells whether the lease was asked for again after it was asked for at began.
func (t *term) renewed(began time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked.After(began)
}

// past tells whether the lease is over.
func (t *term) past() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended || !t.until.IsZero() && !time.Now().Before(t.until)
}

// leads tells whether the lease is surely held: nobody has been granted another one. t may be nil.
func (t *term) leads() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended && !t.until.IsZero() && time.Now().Before(t.until)
}

// lose notes that the lease is called lost, for good.
func (t *term) lose() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// lost tells whether the lease was called lost. t may be nil.
func (t *term) lost() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// enter waits for the gate.
func (t *term) enter(ctx context.Context) error {
	select {
	case t.gate <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.gate <- struct{}{}:
		world.From(ctx).WaitTurn()
		return nil
	case <-ctx.Done():
		world.From(ctx).WaitTurn()
		return ctx.Err()
	}
}

func (t *term) leave() { <-t.gate }

// whole notes that a node has the whole state, in this run of its server.
func (t *term) whole(l *link, run string) {
	t.books.Lock()
	defer t.books.Unlock()
	t.runs[l] = run
}

// lacks notes that a node does not have the whole state.
func (t *term) lacks(l *link) {
	t.books.Lock()
	defer t.books.Unlock()
	delete(t.runs, l)
}

// lacking tells whether a node lacks the state, as far as is known.
func (t *term) lacking(l *link) bool {
	t.books.Lock()
	defer t.books.Unlock()
	_, has := t.runs[l]
	return !has
}

// outrun notes that a node never holds the term's lease again.
func (t *term) outrun(l *link) {
	t.books.Lock()
	defer t.books.Unlock()
	t.outran[l] = true
}

func (t *term) isOutrun(l *link) bool {
	t.books.Lock()
	defer t.books.Unlock()
	return t.outran[l]
}

// met notes which run of a server has answered: another one may have lost records.
func (t *term) met(l *link, run string, durable bool) {
	t.books.Lock()
	defer t.books.Unlock()
	if before, has := t.runs[l]; has && before != run && !durable {
		delete(t.runs, l)
	}
}

// record keeps a write for the copies that are under way. It comes before the write is sent: what a copy finds at a node
// has been recorded, or is older than the copy.
func (t *term) record(w write) {
	t.books.Lock()
	defer t.books.Unlock()
	if len(t.copying) > 0 {
		t.redo = append(t.redo, w)
	}
}

// begin begins a copy to a node; where there is one, it returns what is closed when that is over.
func (t *term) begin(l *link) (other <-chan struct{}) {
	t.books.Lock()
	defer t.books.Unlock()
	if t.copying[l] == nil {
		t.copying[l] = make(chan struct{})
		return nil
	}
	return t.copying[l]
}

// since returns what was recorded after the state of a position, in order, each on top of the one before: a state that was
// only named again, or a commit without the one before it, brings no node to where it leads. When that is nothing and last is
// set, the copy is over: what is recorded from now on is sent to the node itself, after it has got the rest.
func (t *term) since(at point, l *link, last bool) []write {
	t.books.Lock()
	defer t.books.Unlock()
	var list []write
	for _, w := range t.redo {
		if w.From.At.compare(at) <= 0 && w.To.At.compare(at) > 0 {
			list, at = append(list, w), w.To.At
		}
	}
	if last && len(list) == 0 {
		t.over(l)
	}
	return list
}

// end ends a copy that may not have come to its end.
func (t *term) end(l *link) {
	t.books.Lock()
	defer t.books.Unlock()
	t.over(l)
}

func (t *term) over(l *link) {
	close(t.copying[l])
	if delete(t.copying, l); len(t.copying) == 0 {
		t.redo = nil
	}
}

// compare orders positions.
func (p point) compare(other point) int {
	return cmp.Or(cmp.Compare(p.Token, other.Token), cmp.Compare(p.Number, other.Number))
}

// compare orders states by what they are made of; where one leader has tried twice to write back what it has found, the
// one that found more is the later.
func (h head) compare(other head) int {
	return cmp.Or(h.At.compare(other.At), h.Base.compare(other.Base))
}

// next names the state after one more commit.
func (h head) next() head {
	h.At.Number++
	return h
}

// position is that of the last commit.
func (h head) position() point {
	if h.At.Number == 0 {
		return h.Base
	}
	return h.At
}
