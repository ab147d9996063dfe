// Package redlock keeps leases and records on a majority of N independent Redis servers, so that the loss of a minority of
// them, with all that they had, loses no lease, no token and no record that was acknowledged.
//
// # Model
//
// There are 3 to 15 servers, here called nodes, an odd number, each a primary of its own that replicates from no other and has
// no replica that could take its place. They may hang, be cut off, restart, and lose the tail of what they have written, or all
// of it, when they restart. Their clocks may differ by any amount and must go at the same rate, to within 10 %; a step of a
// clock forward ends the leases that this node has granted early, and counts like the loss of this node. What they answer is
// true. At each moment a majority is up, can be reached, has lost nothing since a leader gave it the records, and has no restart
// behind it that is no longer ago than a session lasts, unless it loses nothing. When that is so again, groups go on by themselves,
// unless too many nodes have lost their records (below).
//
// # Promises
//
// All of the contract ([store.Store]) holds as long as that is so; more in particular:
//
//   - Q1: a minority of nodes that hang, are gone, or refuse what they are asked, delays no call: each goes to all nodes at once
//     and returns when a majority has answered. What a node takes longer for goes on in the background, bounded for each
//     node, until it is done or the store is closed.
//   - Q2: tokens grow, whichever minority has lost its data. A grant has two phases: a majority grants the lease, and the
//     highest token that any of these knows is exceeded; then a majority accepts this token, each only while the lease is
//     still the candidate's there and it has accepted no higher one. A node that has restarted, or has none, may have forgotten
//     the highest token until a leader has vouched for the one it has: where no majority surely knows all tokens, every node is
//     asked that is not silent. Only if such a node is needed while another is silent or gone, which is more than is borne, do
//     tokens rest on the clocks: they grow if those are no further apart than a lease lasts.
//   - Q3: a node that has restarted may have forgotten a lease, and has no vote on leases until the longest one that this store
//     was asked for is over, unless it loses nothing (appendonly yes, appendfsync always).
//   - Q4: an attempt to acquire that fails leaves nothing behind: it is taken back on all nodes, and a request of it that arrives
//     later is refused. Repeating an acquire that was granted takes nothing back, and neither does an earlier try that arrives late.
//   - Q5: a commit that is acknowledged outlives the loss of any minority. The records are one state with one version; a node
//     takes a commit only on top of the version before, and one that has missed something, or may have lost something, counts
//     for nothing until it has been given the whole state. A new leader reads the newest state of a majority that has granted its
//     lease, and writes it back to a majority under its own token, before it reads or commits anything.
//   - Q6: where too few nodes are sure to have all records of a group, its leader reads and commits nothing, and says what an
//     operator can do. A new group needs all nodes once.
//   - Q7: one server under two names is refused, by its run_id.
//   - Q8: this package and redisstore refuse each other's groups.
//
// # Failures
//
// A call that a minority fails succeeds. A call that finds no majority returns an error that names each node and what is wrong
// with it; nobody knows then whether it was done, and asking again is right. Only when a majority refuses for good (wrong
// password, no permission) is that an error for good. A node that does not answer, or refuses, is logged once until it is
// well again.
//
// When a node comes back, the leader's next renewal gives it the lease again, and then the whole state; commits go on
// meanwhile. It counts from then on.
//
// A replica's next call gives a node its session again that does not know it, where a majority knows it or has promised it for
// longer than now. Where neither is so, and a majority answers, the session has ended: the replica goes on with another one.
// A node that has restarted and may have forgotten a session has no say in whether it has ended.
//
// A node that has lost everything must not come back within one lease if it says that it loses nothing (appendfsync always): it
// would be believed. Restart such a one after a lease at the earliest.
//
// # When too many nodes have lost their records
//
// If a majority has restarted and may have lost something, the group has leaders, but no ledger: nothing is claimed. Bring back
// the nodes that are missing. If they are gone for good, [Store.Trust] (singleton doctor --accept-loss GROUP) has the nodes
// count as they are: what only the others had is lost, and a tick that was claimed since may be claimed again.
//
// # Keys
//
// On each node, with one hash tag for all keys of a group:
//
//	singleton:{group}:lease      string "token replica nonce attempt", expires with the lease
//	singleton:{group}:fence      string that tells other stores to keep off
//	singleton:{group}:votes      hash: counter (the highest token settled) and run (run_id when a leader has vouched for it),
//	                             released and withdrawn (what is refused); expires 30 days after the last lease
//	singleton:{group}:ledger     hash: head (version of the records) and marker (run_id when all of them were last put there);
//	                             never expires
//	singleton:{group}:sessions   sorted set of replica IDs by the end of their session, in ms of the server's clock
//	singleton:{group}:info       hash of what the replicas say about themselves
//	singleton:{group}:buckets    set of the names of buckets
//	singleton:{group}:r:BUCKET   hash of records, one per bucket; never expires
//	singleton:{group}:inbox      hash of messages, by ID; never expires. inbox:deleted has those that the last commit has deleted
//	singleton:{group}:s:ID...    what is put aside for a copy; expires after eleven minutes
//
// and two channels, singleton:{group}:wake and singleton:{group}:post. The first word is Config.Prefix.
//
// # Servers
//
// Redis 6.2 or later, or Valkey 7.2 or later. A user of its own needs, on the keys singleton:* and the channels singleton:*, the
// commands evalsha, eval, time, info, type, get, set, del, unlink, exists, rename, persist, pttl, pexpire, pexpireat, hget,
// hmget, hset, hsetnx, hdel, hexists, hlen, hkeys, sadd, sismember, smembers, zadd, zscore, zrem, zrangebyscore, publish,
// subscribe, unsubscribe and ping; and config|get, without which no node is known to lose nothing. With a database other than
// 0 also select, with a ClientName client|setname. Each node's client brings its own user, password and TLS.
//
// # Time
//
// A lease lasts from the moment at which the first of the nodes that count was asked; the caller counts from before that. Leases
// and sessions end by each node's clock alone. A campaign that shares the votes with others takes back its own and tries
// again after a random rest of 10 ms at first and 320 ms at most. It does so when all nodes have answered that have not been
// silent for 250 ms.
//
// # Connections
//
// Each node has up to 8 connections of the store's own, and one for hints. A request is given up after 3 s, and what changes a
// group reaches a node in the order in which it was asked for: what one call has written, the next one sees on each node, also
// on those that neither has waited for. Of 2048 requests that one node has not answered, further ones to it fail at once.
package redlock
