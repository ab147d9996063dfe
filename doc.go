// Package singleton is the map of a module that makes one replica out of N the leader and fires cron jobs on the leader
// only, each scheduled tick once, on the Redis that a team already runs. It holds no code: import the packages below.
//
//   - [github.com/go-singleton/singleton/election]: who leads. An elector campaigns for a replica, and calls your function
//     while it leads. Its documentation states the promises E1 to E6.
//   - [github.com/go-singleton/singleton/scheduler]: what runs. Jobs, due ticks, claims, runs and history on top of an
//     election. Its documentation states the promises S1 to S7.
//   - [github.com/go-singleton/singleton/schedule]: cron expressions; pure, and of use without the rest.
//   - [github.com/go-singleton/singleton/store]: the contract between the two above and what keeps their leases and
//     records. Package store/redisstore keeps them in one Redis, store/redlock on a majority of several, store/zkstore in
//     ZooKeeper, store/etcdstore, a module of its own, in etcd, store/memstore in the process, and store/storetest is the
//     contract as a test suite, for those who write another.
//   - [github.com/go-singleton/singleton/cmd/singleton]: the same for a crontab, without a line of Go.
//
// A service with cron jobs needs scheduler and redisstore; one that only wants to know whether it leads needs election
// and redisstore. Program examples/embed shows the first.
//
// Imports point one way: the command imports the scheduler, the scheduler imports election and schedule, election and
// scheduler import store, and a store imports only store. Neither election nor scheduler names a concrete store.
package singleton
