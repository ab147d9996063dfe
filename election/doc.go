// Package election makes one replica of a group its leader.
//
// # Model
//
// Replicas of a group compete for one lease in a store. Whoever is granted it leads for a term: until the work returns,
// the lease can no longer be renewed, or somebody ends it. The lease bounds a term from outside; the token orders terms
// for everyone who takes part.
//
// # Promises
//
// They hold as long as the store keeps what it has acknowledged.
//
//	E1  At most one replica believes that it leads at any instant, as long as clocks run at rates within 10 % of each
//	    other and the store's clock makes no forward step larger than guard + drift.
//	E2  A leader that cannot renew has its context cancelled before its lease can end in the store. The moment is
//	    measured from before the last successful renewal was sent, never from its reply, and waits for no I/O.
//	E3  Tokens strictly grow over the terms of a group, also when the store has lost its data or the group has moved to
//	    another store: the store's clock is a floor, and so is the highest token that a replica has seen.
//	E4  A leader that stops releases only after its work has returned, and goes on renewing meanwhile; a follower then
//	    leads within one push and one round trip.
//	E5  After a crash a follower leads when the lease ends, not a polling interval later.
//	E6  No error is swallowed. Transient faults are retried until the lease's deadline; permanent ones
//	    (store.ErrPermanent) end Run with an error that says what to do: at once while acquiring, at the deadline while
//	    leading. An error while acquiring means "not leader".
//
// # States
//
//	         Run
//	          │
//	          v       held: sleep until a hint, or until the leader's lease would end
//	     ┌─ campaign <────┐
//	     │    │ └─────────┘
//	     │    │ granted                              ErrLost, ErrExpired
//	     │    v                                   ┌──────────────────────────> campaign
//	     │   lead ── work returns, is stopped, ───┤
//	     │            resigns, or loses the lease │ Resign; error, panic or nil of the work
//	ctx ends                                      ├──────────────────────────> cool down ──> campaign
//	     │                                        │ ctx ends, ErrStop, permanent fault
//	     v                                        v
//	wait for holds <──────────────────────────────┘
//	     │
//	     v
//	  Run returns
//
// A term ends in this order: the context of lead ends; lead returns; Valid is false; Lost is called; the lease is
// released; the next campaign begins. When the lease is over first, Valid and Lost come before the return of lead, and
// the release after it gives up only what a renewal without an answer may have left.
//
// # Time
//
//	drift    = TTL/100 + 2 ms
//	guard    = max(50 ms, TTL/10)
//	deadline = sent + TTL granted − drift       sent: before the first byte of the request
//	Valid and both contexts end at deadline − guard
//
// Elapsed time is the larger of monotonic and wall-clock time since sent: the monotonic clock stands still while a Linux
// machine is suspended. The clocks are compared by each Valid, and by a timer at least once a guard. Nothing revives a
// term or a session that is over: a success that arrives later is worth nothing.
//
//	renewal           every TTL/3, lease and session together
//	one attempt       max(200 ms, 4 × the slowest of the last five replies), at most TTL/5 and half of what is left;
//	                  one that ran out counts as a reply that took so long
//	retry             after a random part, half to whole, of 50 ms doubled up to 200 ms; while campaigning up to 1 s,
//	                  or TTL/15 where that is less
//	follower's sleep  the leader's remaining time, at most 1 min or 4 leases, + 1 ms + a random part of 10 ms; in a group
//	                  of n > 16 replicas, where the store counts them, 16 drawn at random do so, and each of the others
//	                  sleeps for 4 ms × its random place among them longer, at most a lease, and passes, once, where it
//	                  is known by then that somebody has got the lease (store.HeldError.Taken)
//	giving up         a campaign whose first attempt would be worthless by now: Release with its nonce, then another nonce
//	release           tried for TTL/5, at least 500 ms, and 500 ms where nothing may have been granted, whatever has
//	                  become of Run's context; without an answer again when the store says that this replica holds it
//	cool-down         1 s after Resign; after an error, panic or nil of lead 1 s, doubled up to 1 min, and from the start
//	                  again after a term of more than 1 min; up to a quarter is added at random
//
// One failed call never ends a term; "not yours" always does, at once. With a store whose replies take longer than a
// fifth of the lease nobody leads.
//
// # Sessions
//
// A session is the store's proof that a replica lives; the runs of a scheduler live on it. While a replica leads, its
// renewals extend it. A follower's is refreshed by its questions, for three leases, and not known here. Hold keeps it,
// for one lease at a time and whatever the role, until it is released; its deadline is computed like that of a lease.
// When only the wall clock says that a held session is over, it is suspect: Valid is false, and one refresh is asked for
// at once. ErrEnded, or no answer within guard, ends it. A session that has ended, by the store's word or under a hold,
// is followed by another one under a new ID.
//
// # Not promised
//
//   - That a leader's side effects are over when another one leads: a process can be stopped between Valid and the
//     effect. A resource that checks the token refuses what comes late.
//   - That work which ignores its context ends. Its lease is not released but lapses, Check returns ErrOverdue, and this
//     replica does not campaign before the work has returned; another one may lead meanwhile.
//   - A leader at every instant: after a crash there is none for up to a lease.
//   - One leader when the store forgets what it has acknowledged, as one Redis with asynchronous replicas can on failover:
//     there may be two until the next renewal. Their tokens differ, because the store's clock is a floor.
//   - Fairness: any follower may win.
package election
