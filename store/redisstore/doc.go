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
// Redis 6.2 or later, or Valkey 7.2 or later. A user of its own needs, on the keys singleton:* and the channels
// singleton:*, the commands evalsha, eval, time, type, get, set, del, pttl, pexpire, pexpireat, hget, hmget, hset, hdel, hexists,
// hlen, hkeys, zadd, zscore, zrem, zrangebyscore, publish, subscribe, unsubscribe, ping and, for the connection, hello,
// auth, select and client; Check looks at info and config get where it may.
//
// # Connections
//
// Calls go over up to 8 connections of the store's own, made with the address, credentials and TLS of the client that New
// was given, but with timeouts of 3 s at most, deadlines of contexts obeyed, and no repetition of a command by the
// client: a pool that the application has exhausted, or a client without timeouts, delays no renewal. Hooks of the given
// client do not see them. They are made at the first call and end with Close. A client that is not a *redis.Client is
// used as it is, with a warning: its calls are given up when their context ends, and the client then finishes or repeats
// them on its own, which the contract bears.
//
// What fails is an error or a record of Options.Logger. go-redis besides writes each failed dial to standard error; silence
// it with the package logging of go-redis, or bridge it with redis.SetLogger.
//
// All watchers of a Store share one connection. It carries a PING every 5 s and is replaced when nothing has come since
// the last one, so that a connection that has died silently is noticed within 10 s.
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
