// Package redisstore keeps leases and records in one Redis primary.
//
// # Keys
//
// All keys of a group share one hash tag, so that they lie in one slot of a Redis Cluster:
//
//	singleton:{group}:lease      string "token replica nonce", expires with the lease
//	singleton:{group}:fence      hash: token (the last one given), committed and number (the ledger's position) and
//	                             released (the nonces released lately); expires 30 days after the last term
//	singleton:{group}:sessions   sorted set of replica IDs by the end of their session, in ms of the server's clock
//	singleton:{group}:info       hash of what the replicas say about themselves
//	singleton:{group}:r:BUCKET   hash of records, one per bucket; never expires
//	singleton:{group}:inbox      hash of messages, by ID; never expires
//
// and two channels, singleton:{group}:wake (the lease was released) and singleton:{group}:post (a message has come).
// The first word is Options.Prefix. Each method is one script, run by EVALSHA and loaded again when the server has lost
// it; Read takes one request for up to 200 records of 256 KiB in all, and one for each such page of larger buckets.
//
// # Memory
//
// A group of a few replicas without records takes 2 KiB. An inbox holds at most [store.MaxInbox] messages of at most
// [store.MaxValue] bytes, a record at most [store.MaxValue]. Sessions that are over are cleared away, ten in each call that
// sets one; both session keys expire two days after the last such call.
//
// # Servers
//
// Redis 6.2 or later, or Valkey 7.2 or later: one server, the primary that Redis Sentinels name ([NewFailover]), or a Redis
// Cluster. A user of its own needs, on the keys singleton:* and the channels singleton:*, the commands evalsha, eval, time,
// type, get, set, del, pttl, pexpire, pexpireat, hget, hmget, hset, hdel, hexists, hlen, hkeys, zadd, zscore, zrem,
// zcount, zrangebyscore, publish, subscribe, unsubscribe and ping; with a database other than 0 also select, with a ClientName
// client|setname, with MinReplicas wait, and in a cluster cluster|slots and asking. The Sentinels' user needs
// sentinel|get-master-addr-by-name there. Check looks at info and config get where it may.
//
// # Connections
//
// Calls go over connections of the store's own, up to 8 at once, made with the credentials and TLS of the client that New
// was given, but with timeouts of 3 s at most, deadlines of contexts obeyed, reads from primaries alone, and no repetition
// of a command by the client: a pool that the application has exhausted, or a client without timeouts, delays no renewal.
// Hooks of the given client, and its NewClient in a cluster, do not see them. They are made at the first call and end with
// Close. A client of another kind is used as it is, with a warning: its calls are given up when their context ends, and the
// client then finishes or repeats them on its own, which the contract bears. One by redis.NewFailoverClient is served by
// connections of the store's own, with a warning: who the primary is, it finds out in its own time.
//
// What fails is an error or a record of Options.Logger. go-redis besides writes each failed dial to standard error; silence
// it with the package logging of go-redis, or bridge it with redis.SetLogger, which is one for the whole process.
//
// All watchers of a Store share one connection. It carries a PING every 5 s and is replaced when nothing has come since
// the last one, so that a connection that has died silently is noticed within 10 s, and at once when a call finds another
// primary. In a cluster it goes to any node: what is published at one comes to all. Channels are subscribed to 250 at a
// time.
//
// # Many elections and large groups
//
// Renewals of a Store that fall due within 20 ms share a round trip, up to 100 in a pipeline for each server, over up to
// four connections beside those of the other calls. Each has an outcome of its own, and one after which a connection broke
// goes by itself until it is answered. One whose call has less than 150 ms left, or that has been the only lease renewed
// for as long as it lasts, waits for nobody.
//
// A release says how many replicas the group has. In a group of more than 16, about 16 followers ask at once, the others in
// a random order 4 ms apart, until they hear that one of them leads. Then they ask no more before the lease that they know
// of ends; an observer of such a group may learn of the new leader only then.
//
// # Sentinels
//
// Before a call the Sentinels are asked which server is the primary, unless they were less than a second ago and the last
// call was answered. The word of a majority of SentinelAddrs counts at once, else, after up to a second or half of the
// call's time, that of most who have answered; when none does, the primary stays what it was. So a primary that was
// replaced while it stood still, and goes on granting leases for about ten seconds because it does not know, is asked by
// nobody who reaches the Sentinels. Against a primary that is cut off together with its clients, set min-replicas-to-write.
//
// # Clusters
//
// MOVED and ASK are followed within a call, which repeats nothing that got no answer. While some keys of a group are here
// and some there, as their slot moves, the nodes say TRYAGAIN and the call fails; so does one about keys of which some
// exist and some do not. That passes with the move; one that was left undone, mend with redis-cli --cluster fix. The owners
// of the slots are asked for after a call that got no answer, from nodes given and found.
//
// # Acknowledgement by replicas
//
// A primary answers before its replicas have what it has written, and a failover forgets what the new primary does not
// have: a lease may then be granted twice, and a tick be claimed twice. With MinReplicas, a lease counts when so many
// replicas have received it, else it is given back; and a commit is asked again until they have, or the lease ends, and its
// ticks do not start before. Renewals are not waited for: they are known to no failover that happens meanwhile, and a
// replica ends the lease earlier than its leader. This narrows the hazard and does not close it: a replica that has
// received nothing may become the primary while another has, and what was not acknowledged may still survive. With
// min-replicas-to-write the server itself refuses writes when replicas have lagged for min-replicas-max-lag seconds; until
// then it takes them. Only fencing, or a store with a majority, closes it. A server that does not know WAIT is recognised
// at the first call, and nothing is acquired there.
//
// # What one Redis can and cannot promise
//
// Scripts run one at a time, and the lease's end, the sessions and the tokens follow the server's clock alone; a replica's
// clock is never sent. All guarantees of [store.Store] hold as long as the server keeps what it has acknowledged. One that
// restarts without its data, loses the tail of its append-only file, or fails over to a replica that had not received the
// last writes, forgets: a lease may then be granted twice for a moment, and a commit may be gone. Tokens grow even then,
// because each is at least the server's clock in microseconds and above the highest that its candidate has seen; a commit
// that follows a lost one is refused with [store.ErrGap]. Configure the server with appendonly yes and maxmemory-policy
// noeviction; [Store.Check] tells what is not so. A step of the server's clock forward ends leases early, a step back
// makes them live longer.
package redisstore
