// Package zkstore keeps leases and records in a ZooKeeper ensemble.
//
// # Znodes
//
// All of a group lies under Config.Chroot in
//
//	/singleton/GROUP/fence           token last given, nonces released lately; changes with each grant and release
//	/singleton/GROUP/lease           ephemeral: token, replica, nonce, duration
//	/singleton/GROUP/sessions/ID     ephemeral: what the replica says about itself
//	/singleton/GROUP/ledger          the ledger's position: token and number of the last commit
//	/singleton/GROUP/ledger/B/KEY    the records of bucket B, "history/x" as "history:x", one znode each
//	/singleton/GROUP/inbox/ID        messages
//
// They are created when they are missing, with Config.ACL. Each change is one multi that checks the version of the fence
// and that the lease is there: a commit, a grant or a release that was decided on something older changes nothing. Buckets
// that were used once stay as empty znodes.
//
// # Time
//
// A ZooKeeper session has one timeout for all that lives on it, and a store has one session. A lease that is granted lasts
// for what was asked for, but at most for two thirds of that timeout, from the moment it was asked for; a lease or session
// that is not refreshed is deleted by the store that holds it, and by the servers when that process is gone, within the
// timeout and a tick. So after a crash a follower leads when the ZooKeeper session ends, not when the lease does; after a
// stop, at once.
//
// Two thirds, because what a server has acknowledged reaches the session's clock, which the ensemble's leader keeps, with
// that server's next ping half a tick later, or never, if it dies before. The client's pings come each third of the
// timeout. A lease is renewed by a write: reads and pings are answered by a server that has lost the majority, too. That a
// session has ended is never heard from the servers in time; who holds a lease stands on its own clock.
//
// When the servers have ended the session, the client opens another silently. What lived on the old one is lost
// ([store.ErrLost], [store.ErrEnded]), and is told by the owner of the ephemeral znodes. The store opens another, too, when
// there has been no connection for as long as the session lasts: servers that have lost their data refuse a client that
// has seen more than they know.
//
// # Connections
//
// The store makes its own: one from the first call on, and one more for all watches while something is watched. Nothing
// else may use them. A server that leaves a request without an answer for a sixth of the timeout, at most 3 s, is given up
// for the next one; the session moves with it. Names of servers are looked up at each connection. Calls are given up when
// their context ends, and what the client was sent for them may be done all the same, as the contract bears. What the
// client says goes to Config.Logger at level debug.
//
// # Limits
//
// ZooKeeper takes 1 MiB in one request (jute.maxbuffer) and holds all data in memory. [store.MaxBytes] fits; a request that
// does not is refused with [store.ErrTooLarge] before it is sent. The names in a bucket come in one reply, the records in
// pages of 100. A server needs ZooKeeper 3.5 or later; two connections count against its maxClientCnxns (60 for each
// address). An ensemble of three survives the loss of one member, one of five that of two; without a majority nothing is
// answered and nobody leads.
package zkstore
