// Package etcdstore keeps leases and records in an etcd cluster. It is a module of its own, so that nobody else inherits
// what the etcd client needs.
//
// # Keys
//
// All of a group lies under Config.Prefix in
//
//	singleton/GROUP/fence           token last given, nonces released lately; changes with each grant and release
//	singleton/GROUP/lease           on an etcd lease: token, replica, nonce
//	singleton/GROUP/sessions/ID     on an etcd lease: its seconds, what the replica says about itself
//	singleton/GROUP/ledger          the ledger's position: token and number of the last commit
//	singleton/GROUP/records/B/KEY   the records of bucket B, "history/x" as "history:x"
//	singleton/GROUP/inbox/ID        messages
//
// Each change is one transaction that is guarded by what was seen: a grant or a release by the revisions of fence and
// lease, a commit by the value of the lease, which no two terms share, and by the ledger's position. A change that was
// decided on something older changes nothing, however late it comes. A leader's reads are guarded by its lease, each page
// in one step. All reads are linearizable: a member without a majority answers none.
//
// A token is never less than the microseconds of the candidate's clock: etcd has no clock of its own. So tokens go on to grow
// when the servers have lost their data, and for candidates whose clocks are wrong by what is stored.
//
// # Time
//
// A lease or a session is an etcd lease with a key on it. Leases are whole seconds, two at least, and one and a half election
// timeouts of the servers: what is asked for in between or below is granted as the next longer one. While a replica leads,
// its session hangs on the etcd lease of its lease, so that one request keeps both alive.
//
// A renewal looks whether the key is there and ours, starts a new etcd lease, and moves the key there, guarded by what was
// looked at; a session is refreshed in the same way. So nothing relies on an etcd lease for longer than it was given when it
// began, and no server ends it earlier. To keep one alive would be cheaper, and is not safe: a server that has led, and has
// stood still for longer than the etcd lease lasts, ends it when it goes on, by what it knows, before it hears of another
// leader (seen with 3.7.3; etcd's issue 15247 tells of the same). An etcd lease that is left lapses. Only when the servers'
// quota is used up, and they start none, is the old one kept alive.
//
// It is not heard from the servers in time that an etcd lease has ended, and nothing waits for that: who holds a lease stands
// on its own clock, from before it asked. The servers end an etcd lease up to half a second late, and give all of them their
// whole time again after a change of their leader.
//
// # Connections
//
// The store makes its own: one from the first call on, for all groups, and one more for all watches while something is
// watched, which share one stream. Both go to one endpoint, and to the next when that does not serve: when it refuses
// connections, has no majority behind it, or leaves a request without an answer for 2 s or until the call's end. The
// client would spread requests over all endpoints and send each third one to a member that hangs. What the client says goes
// to Config.Logger at level debug. What grpc says goes where the process has it go (GRPC_GO_LOG_SEVERITY_LEVEL).
//
// Calls are given up when their context ends, and what was sent for them may be done all the same, as the contract bears.
// The client repeats no request that may have been done.
//
// # Permissions
//
// With authentication the user needs
//
//	etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX/singleton/
//
// or that of the groups it takes part in, PREFIX/singleton/GROUP/.
//
// # Limits
//
// A commit of [store.MaxChanges] is a transaction of 101 operations, of which a server takes 128, and [store.MaxBytes] fits in
// the 1.5 MiB of a request. When the servers have used up their quota, leases and sessions are renewed, and nothing is granted,
// started, released or committed: that is logged as an error, with the remedy. Every write is a revision, which the servers
// keep until they are compacted: set --auto-compaction-retention. A cluster of three survives the loss of one member, one of
// five that of two; without a majority nothing is answered and nobody leads.
package etcdstore
