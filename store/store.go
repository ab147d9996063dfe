// Package store is the contract between elections, schedulers and what keeps their leases and records.
//
// Outcomes have three values: nil means done; ErrLost, *HeldError, ErrNoLeader, ErrStale, ErrTooLarge, ErrFull,
// ErrEnded, ErrGap and ErrPermanent mean that this call is surely not done; any other error, a context's included,
// means "not known": ask again. An earlier send of the same thing that got no answer stays not known.
//
// The clock of every duration that a method returns starts when the method was called: a caller that notes the time
// before the call and adds the duration never trusts a grant for longer than the store keeps it.
//
// Package store/storetest holds this contract as a test suite that every store runs.
package store

import (
	"context"
	"iter"
	"log/slog"
	"time"
)

// What every store takes, so that no caller has to ask (etcd: 128 operations and 1.5 MB; ZooKeeper: 1 MB).
const (
	MaxChanges = 100       // changes per Commit
	MaxBytes   = 256 << 10 // bytes per Commit, buckets, keys and values together
	MaxValue   = 64 << 10  // bytes per value or message
	MaxInfo    = 4 << 10   // bytes of Replica.Info
	MaxInbox   = 10_000    // unread messages per group
)

// Replica is a process of a group.
type Replica struct {
	ID   string // a name (CheckName), unique per session
	Info []byte // opaque to the store, at most MaxInfo
}

// Candidate is one campaign of a replica.
type Candidate struct {
	Replica
	Nonce   string        // fresh for each campaign, kept over its retries; a secret
	TTL     time.Duration // lease wanted, whole milliseconds; the store may grant another
	Session time.Duration // session wanted while not leading
	Start   bool          // start this ID's session, not only refresh it
	Floor   uint64        // highest token this process has seen
}

// Grant is what Acquire and Renew give.
type Grant struct {
	TTL  time.Duration // from the call
	Time time.Time     // the store's clock, UTC; the caller's where a store has none
}

// Lease is what a campaign was granted: a value that may be copied. Group, Replica, Nonce and Token identify it; Grant
// is what Acquire gave, and its TTL is what Renew asks for again. The nonce is a secret that LogValue and String leave
// out.
type Lease struct {
	Group   string
	Replica string
	Nonce   string
	Token   uint64 // fencing token; grows over the terms of a group
	Grant
}

// String names the lease without its nonce.
func (l Lease) String() string { return l.LogValue().String() }

// LogValue names the lease without its nonce.
func (l Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("group", l.Group), slog.String("replica", l.Replica), slog.Uint64("token", l.Token))
}

// Leader is the holder of a group's lease.
type Leader struct {
	Replica   string
	Token     uint64
	Remaining time.Duration // at most this long; the whole TTL where the store cannot know
}

// Change puts a record or, with Delete, removes it; a bucket and key stand at most once in a Commit.
type Change struct {
	Bucket string // see CheckBucket; InboxBucket for deleting messages
	Key    string // 1 to 512 bytes of printable ASCII without blanks
	Value  []byte // at most MaxValue
	Delete bool
}

// Record is a stored value.
type Record struct {
	Key   string
	Value []byte
}

// InboxBucket is the bucket of the messages that Post has put: a leader reads and deletes there, nobody puts by Commit.
const InboxBucket = "inbox"

// Topic is what a hint is about.
type Topic uint8

// The topics.
const (
	LeaseFree   Topic = iota + 1 // the lease may be free
	InboxFilled                  // messages may have come
)

// Leases is the half of the contract that elections need.
type Leases interface {
	// Acquire tries once; *HeldError when another campaign holds the lease. The nonce of the current lease is granted that
	// lease again with the same token; one of those released last is refused with ErrLost. Granted or held, it starts or
	// refreshes the replica's session; refreshing one that has ended is ErrEnded. A grant sets the session's end to the
	// lease's; a held Acquire only lengthens it, to Session.
	Acquire(ctx context.Context, group string, c Candidate) (Lease, error)
	// Renew extends lease and session to the same instant, l.TTL from now, and returns what was granted. ErrLost: not
	// ours any more. It revives nothing: a session that has ended is ErrEnded.
	Renew(ctx context.Context, l Lease) (Grant, error)
	// Release gives the lease up if it is ours, wakes the followers, and remembers the nonce, at least the last 16; the
	// session goes on. The token is not compared: who gives up an Acquire that got no answer does not know it. Releasing
	// what is not held is done too, and remembers the nonce: that Acquire may still be on its way.
	Release(ctx context.Context, l Lease) error
	// Leader returns who leads, maybe a moment old; ErrNoLeader.
	Leader(ctx context.Context, group string) (Leader, error)
	// Watch calls hint, which must not block, until ctx ends: when the subscription stands (again), and when there may
	// be news. Hints may be lost, doubled or late. It returns at once and holds no goroutine per group.
	Watch(ctx context.Context, group string, t Topic, hint func()) error
	// Close ends the connections that the store itself has opened; leases it holds lapse.
	Close() error
}

// Ledger is the half of the contract that the scheduler needs besides.
type Ledger interface {
	// Join starts a session, or refreshes the one that this ID has started, without campaigning, and returns the time
	// granted. A session that has ended is not revived: ErrEnded. It only lengthens. Starting an ID that is alive is a
	// refresh.
	Join(ctx context.Context, group string, r Replica, ttl time.Duration, start bool) (time.Duration, error)
	// Leave ends a session; one that does not exist is done: nil.
	Leave(ctx context.Context, group, replicaID string) error
	// Replicas lists who has a session, by ID.
	Replicas(ctx context.Context, group string) ([]Replica, error)
	// Commit applies all changes or none, while l is held (ErrLost), in order: number starts at 1 for a lease. The
	// number applied last is answered nil and not applied again, also when the lease has ended; a lower one is ErrStale; a
	// gap means that records were lost: ErrGap. Over a limit it is ErrTooLarge. No changes are a commit too.
	Commit(ctx context.Context, l Lease, number uint64, changes []Change) error
	// Read yields a bucket by key, in pages, and ends at the first error. A leader passes its lease, which is checked
	// with each page (ErrLost); others pass nil and may see a moment old.
	Read(ctx context.Context, group string, l *Lease, bucket string) iter.Seq2[Record, error]
	// Position returns the ledger's: the token and number of its last commit, zero where there is none.
	Position(ctx context.Context, group string) (token, number uint64, err error)
	// Post puts a message into the inbox, unfenced. id is a UUIDv7: key order is each poster's order, and an id that
	// still lies there is not put twice. ErrFull, ErrTooLarge.
	Post(ctx context.Context, group, id string, message []byte) error
}

// Store keeps leases and records in one place, so that a commit can check the lease in the same atomic step.
type Store interface {
	Leases
	Ledger
}
