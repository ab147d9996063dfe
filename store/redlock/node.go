package redlock

import (
	"context"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

// node is one of the N independent servers, as the protocol sees it. Each method but identity and watch is one atomic step
// of that server, by its own clock. The protocol decides what an answer is worth: a node only tells facts.
//
// An error means that nobody knows whether the step was done (no answer, a server that is loading, a timeout), unless it is
// store.ErrPermanent: then it was surely not. Everything else comes as a value. A step whose context ends may still be done
// later, also after steps that were asked for after it: each is built so that a late one does no harm.
//
// Of each group, a node keeps:
//
//   - the lease, for a limited time: who holds it (replica, nonce), the attempt that put it there, and its token, which is 0
//     until it has been settled;
//   - the counter: the highest token ever settled, or repaired, there, and the run of the server in which a leader has vouched
//     for it;
//   - the nonces released last (at least 16), and the attempts withdrawn last (at least 16);
//   - the sessions: replica, info, end;
//   - the ledger: the records of all buckets but the inbox, which are one state, the head that says which one, and the
//     marker: the run of the server in which the whole state was last put there or vouched for ("" is never);
//   - the inbox.
//
// The methods are safe for concurrent use.
type node interface {
	// name is what logs and errors call the node: its address.
	name() string

	// identity tells which server answers and what becomes of its data when it ends. It may take several requests.
	identity(ctx context.Context) (identity, error)

	// acquire asks for the lease (phase 1). In this order:
	//   - the nonce has been released, or the attempt withdrawn: claimLost;
	//   - the replica has no session that is alive, and c.Start is false: claimEnded. Nothing has been changed;
	//   - the lease is held by another (another replica or nonce): claimHeld, with its holder. The session is started or
	//     lengthened to c.Session from now, never shortened;
	//   - the lease is held by this replica and nonce, through a later attempt: claimLost. This one comes late, and so may what
	//     takes it back;
	//   - it is held by this replica and nonce: claimGranted; its attempt becomes c.Attempt, but that of a repaired lease stays "";
	//     its end c.TTL from now, its token stays, and stands in the answer;
	//   - the lease is free: claimGranted, with token 0, for c.TTL from now. The counter stays as it is.
	// A grant lengthens the session to the lease's end, and never shortens it: one node alone grants nothing. Info that is
	// empty keeps what is known.
	acquire(ctx context.Context, group string, c claim) (claimed, error)

	// settle gives the lease its token (phase 2). It is refused (false) unless the lease is held by this replica and nonce
	// through this attempt, or was repaired with this token, and the counter is below token, or is token and the lease has that token already. Then token
	// becomes the lease's and the counter. The ends of lease and session stay.
	settle(ctx context.Context, l store.Lease, attempt string) (settled bool, s stamp, err error)

	// renew sets the ends of the lease and of the replica's session to l.TTL from now: renewDone. renewLost when the lease
	// is not held by exactly this replica, nonce and token; renewEnded when it is and the session is not alive. In neither
	// case is anything changed. With vouch, the caller leads, and vouches for the counter.
	renew(ctx context.Context, l store.Lease, vouch bool) (renewed, error)

	// repair puts the lease, its token and the session (with info, where it is not empty) where they are missing, for l.TTL
	// from now: renewDone. It is refused when the counter is above the token (renewOutrun: this lease is never held there), when
	// another holds the lease, or when the nonce has been released (renewLost). The counter becomes the token. Only a leader asks for it while it may
	// rely on its lease, and vouches for the counter where it is sure that it leads; the attempt of a lease that is put there is
	// "".
	repair(ctx context.Context, l store.Lease, info []byte, vouch bool) (renewed, error)

	// release ends the lease if it is held by this replica and nonce; the token is not compared. The nonce is remembered as
	// released, also where nothing was held. If a lease was ended, watchers of store.LeaseFree hear of event.
	release(ctx context.Context, l store.Lease, event string) error

	// withdraw ends the lease if it is held by this replica and nonce through this attempt, and remembers the attempt as
	// withdrawn, also where nothing was held. If a lease was ended and event is not "", watchers of store.LeaseFree hear of it.
	withdraw(ctx context.Context, l store.Lease, attempt, event string) error

	// leader tells who holds the lease; holder.Replica is "" when nobody does.
	leader(ctx context.Context, group string) (holder, error)

	// join starts or lengthens a session to ttl from now, never shortens it, and returns what is left of it. Without start, a
	// session that is not alive is not touched: left is 0.
	join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (left time.Duration, s stamp, err error)

	// leave ends a session; one that is not there is done.
	leave(ctx context.Context, group, replicaID string) error

	// replicas lists the sessions that are alive, in any order.
	replicas(ctx context.Context, group string) ([]store.Replica, stamp, error)

	// head tells which state of the ledger the node has, and whether the lease is held by exactly l's replica, nonce and
	// token; l may be nil.
	head(ctx context.Context, group string, l *store.Lease) (report, error)

	// write moves the ledger by one step. In this order:
	//   - the head is w.To: writeDone; nothing is changed, and the lease does not matter;
	//   - the lease is not held by exactly w.Lease's replica, nonce and token: writeLost;
	//   - the head is not w.From: writeBehind, whatever the difference;
	//   - else all changes are made, the head becomes w.To, and the answer is writeDone. The marker stays.
	// Changes of the inbox are deletions. What they delete is kept aside until the next write of a commit
	// that is done: that of a leader who takes over (w.To.At.Number is 0) leaves it there.
	write(ctx context.Context, w write) (written, error)

	// stage puts records aside for install, and removes such, under the name of a transfer that nobody else uses. Step 0 begins a
	// transfer, without changes; each step after it has the next number, and one that comes again, however late, is done and
	// changes nothing. A step of a transfer that has not begun, that has been forgotten, or that lacks a step before is an
	// error. What is never installed is forgotten after a while, not before copyLimit from its beginning, and then as a whole; and
	// by a server that restarts, which may have lost some of it.
	stage(ctx context.Context, group, transfer string, step int, changes []store.Change) error

	// install makes what was staged the ledger's state. In this order:
	//   - the lease is not held by exactly l's replica, nonce and token: writeLost;
	//   - the head is later than to (compared by At, then by Base): writeBehind; nothing is changed;
	//   - nothing of this transfer was staged, or it has been forgotten: writeNothing; nothing is changed;
	//   - else all buckets but the inbox are replaced by what was staged, the transfer is over, the head becomes to, the marker
	//     the server's run, and the answer is writeDone. Messages that were kept aside are in the inbox again: the step that
	//     has deleted them may be none of this state.
	install(ctx context.Context, l store.Lease, transfer string, to head) (written, error)

	// vouch makes the marker the server's run, whatever the ledger holds, and makes an empty ledger with a head of zero
	// where there is none: an operator has accepted that what is lost is lost.
	vouch(ctx context.Context, group string) (report, error)

	// buckets lists the buckets of the ledger that may have records, the inbox not among them, in any order.
	buckets(ctx context.Context, group string) ([]string, report, error)

	// read returns records of a bucket; store.InboxBucket is one. With keys nil it lists all: where they fit into a page, the
	// values come too, else the keys alone. Otherwise it returns the values of the first of keys, at least one, as many as
	// fit into a page; nil for a key that has none. With l, the report says whether the lease is held, as head does; the
	// records come all the same. Of the inbox, those that are kept aside come, too, where the head is of another token than l's.
	read(ctx context.Context, group string, l *store.Lease, bucket string, keys []string) (page, error)

	// post puts a message into the inbox unless one of this id lies there, and tells watchers of store.InboxFilled: the event
	// is the id. full: the inbox has store.MaxInbox messages, and this one is not among them; nothing was done.
	post(ctx context.Context, group, id string, message []byte) (full bool, err error)

	// deliver puts messages into the inbox that do not lie there, whatever the room is: a majority has taken them. Watchers hear
	// of none.
	deliver(ctx context.Context, group string, messages []store.Record) error

	// watch reports on a topic of a group until ctx ends or the node is closed. It returns at once and holds no goroutine
	// per group; listener must not block. Reports may be lost, doubled, late. The event of news is the same from each node.
	watch(ctx context.Context, group string, t store.Topic, listener func(hub.Notice)) error

	// close ends the node's connections and waits for its goroutines; calls under way fail.
	close() error
}

// identity is what a node is and how far it can be relied on.
type identity struct {
	Run      string // of the server process (run_id): another after each restart, and another on each server
	Durable  bool   // nothing that it has acknowledged is lost when it ends: appendonly yes, appendfsync always
	Replica  bool   // it follows another server
	Replicas int    // that follow it
}

// stamp comes with each answer that a vote may be made of.
type stamp struct {
	Run   string        // of the server process that has answered
	Up    time.Duration // for at least how long it has run
	Clock time.Time     // its wall clock
}

// claim is what phase 1 asks for.
type claim struct {
	store.Candidate        // Floor is taken into account by the protocol, not by nodes
	Attempt         string // one try of the candidate: 16 digits that are more with each, then 1 to 16 letters and digits that are fresh
}

// outcome of a claim.
type outcome uint8

// The outcomes of acquire.
const (
	claimGranted outcome = iota + 1
	claimHeld
	claimLost
	claimEnded
)

// claimed is the answer of phase 1.
type claimed struct {
	stamp
	Outcome outcome
	Counter uint64 // the highest token settled there
	Unsure  bool   // the server has restarted since a leader vouched for the counter, or none has: there may have been a higher one
	Token   uint64 // of the lease that was granted again; 0 when it has none yet
	Holder  holder // whoever holds it when Outcome is claimHeld
}

// holder is who holds a node's lease.
type holder struct {
	Replica   string        // "" when nobody does
	Attempt   string        // tells campaigns of one replica apart before they have a token; "" after a repair
	Token     uint64        // 0: a campaign that is not settled there
	Remaining time.Duration // at most this long
}

// renewal is how a renewal went.
type renewal uint8

// The outcomes of renew and repair.
const (
	renewDone renewal = iota + 1
	renewLost
	renewEnded
	renewOutrun
)

// renewed is the answer of renew and repair.
type renewed struct {
	stamp
	Outcome renewal
}

// point is a position of the ledger: the number of a commit under the lease of a token; zero is before the first.
type point struct{ Token, Number uint64 }

// head names one state of the ledger: no two different states of a group have the same.
type head struct {
	At   point // token of the lease it was written under; number 0 is what that leader found and wrote back
	Base point // position of what that leader found
}

// report is what a node tells of its ledger.
type report struct {
	stamp
	Head   head
	Marker string // the run in which the whole state was last put there; "" when there is no ledger
	Held   bool   // the lease asked about is held there
}

// write is one step of the ledger.
type write struct {
	Lease    store.Lease
	From, To head
	Changes  []store.Change // none: the state stays and gets another name
}

// effect is what became of a step of the ledger.
type effect uint8

// The outcomes of write and install.
const (
	writeDone effect = iota + 1
	writeLost
	writeBehind
	writeNothing // there is nothing to install
)

// written is the answer of write and install; the report is of the moment after it.
type written struct {
	report
	Effect effect
}

// page is what read returns.
type page struct {
	report
	Keys   []string // all keys, in any order, where the read named none
	Values [][]byte // of the first keys, those listed or those asked for; none when a list does not fit into a page
}
